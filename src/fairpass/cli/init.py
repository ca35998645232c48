"""`fairpass init`: inspect tables and write a settings file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from fairpass.cli.options import Result, command
from fairpass.cli.output import Cells, print_line, rows, section, table, working
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.locks import in_use
from fairpass.plain_text import is_utf8

if TYPE_CHECKING:
    from fairpass.datasets.role_guesses import Guess
    from fairpass.datasets.table_inspection import Inspection


@command
def init(
    nodes: Path,
    edges: Path | None = None,
    out: Path = Path("fairpass.toml"),
    force: bool = False,
    label: str | None = None,
    sensitive: list[str] | None = None,
    id: str | None = None,
    separator: str | None = None,
    text_encoding: str | None = None,
    old_text_encoding: str | None = None,
) -> Result:
    tables = [path for path in (nodes, edges) if path is not None]
    _check_out(out, tables, force)
    with working("Looking at the tables"):
        from fairpass.datasets.table_inspection import inspect_tables
        from fairpass.projects.config import in_toml
        from fairpass.projects.template import relative, template

        for name, path in {"nodes": nodes, "edges": edges, "--out": out}.items():
            # As it is given, and as it will be written: relative to the file.
            if path is not None and not (is_utf8(path) and is_utf8(relative(path, out.parent))):
                raise DataError(f"{name} must have a name in UTF-8, which a settings file needs (got {str(path)!r})")
        reading: dict[str, Any] = {"separator": _mark(separator), "text_encoding": text_encoding or old_text_encoding}
        found = inspect_tables(nodes, edges, label=label, sensitive=sensitive or (), id=id, **reading)
    features = [guess.column for guess in found.undecided if _is_terminal() and _may_be_used(guess)]
    with in_use(out):
        _check_out(out, tables, force)  # again: another process may have written it in the meantime
        write_text(out, template(found, folder=out.parent, file=out.name, features=features))
    yield {"config": str(out), "features": features, **found.to_dict()}
    _show_tables(found)
    _show_roles(found)
    left = [guess for guess in found.undecided if guess.column not in features]
    if left:
        questions = (f"May a decision depend on {each.column!r}? {_sentence(each.reason)}" for each in left)
        hint = Text(f"Left out for now. To use one as a feature, remove it from [features] drop in {out}.", "dim")
        section("To decide", rows(("?", Text(question)) for question in questions), hint)
    if found.problems:
        stops = Text("stops", style="bold red")
        lines = [(stops if each.stops else "-", Text(in_toml(each.sentence))) for each in found.problems]
        section("What to know", rows(lines))
    lacking = [role for role in ("label", "sensitive") if found.best(role) is None]
    todo = f"; it still needs {' and '.join(map(repr, lacking))}" if lacking else ""
    print_line(f"\nAll settings are in {out}{todo}. Read it, change what is not right, then:\n  fairpass run {out}")


def _check_out(out: Path, tables: list[Path], force: bool) -> None:
    if out.exists() and any(path.exists() and out.samefile(path) for path in tables):
        raise DataError(f"--out must not be one of the tables, which would be overwritten (got {str(out)!r})")
    if out.exists() and not force:
        raise DataError(f"{str(out)!r} exists: remove it, or overwrite it with --force")


def _mark(separator: str | None) -> str | None:
    """Return a separator as a mark; a tab cannot be typed in every shell."""
    if separator is None:
        return None
    mark = {"tab": "\t", "\\t": "\t"}.get(separator, separator)
    if len(mark) != 1:
        raise DataError(f"--separator must be one mark, for example ';' or tab (got {separator!r})")
    return mark


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _may_be_used(guess: "Guess") -> bool:
    question = f"{_sentence(guess.reason)} May a decision depend on {guess.column!r}, so that it is a feature?"
    return typer.confirm(question, err=True)  # by default it is left out


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}."


def _show_tables(found: "Inspection") -> None:
    lines: list[Cells] = []
    for each in found.columns:
        counts = (f"{each.distinct:,}", f"{each.missing:,}" if each.missing else "-")
        lines.append((Text(each.name), each.kind, *counts, Text(", ".join(each.examples))))
    columns = ("column", "holds", "values", "missing", "for example")
    section(f"{found.nodes}, {found.rows:,} nodes", table(columns, lines, words=["holds", "for example"]))
    if found.edges is not None:
        ends = [found.best(role) for role in ("source", "target")]
        weight = found.settings.get("edge_weight")
        weighted = "" if weight is None else f", weighted by {weight!r}"
        joined = "their ends are not known" if None in ends else "between {!r} and {!r}".format(*ends) + weighted
        section(f"{found.edges}, {found.edge_rows:,} edges", Text(joined))


def _show_roles(found: "Inspection") -> None:
    guesses = []
    for role in ("id", "label", "sensitive", "split"):
        chosen = found.sensitive if role == "sensitive" else (found.best(role),)
        for place, guess in enumerate(found.roles[role]):
            style = ("bold", "") if guess.column in chosen else ("dim", "dim")
            guesses.append((role if place == 0 else "", Text(guess.column, style[0]), Text(guess.reason, style[1])))
        if not found.roles[role] and role != "split":
            by_row = ": edges refer to row numbers" if role == "id" and found.edges is not None else ""
            option = f"; name it with --{role}" if role != "id" else ""
            guesses.append((role, Text("-"), Text(f"no column looks like one{by_row}{option}")))
    section("Guessed from names and values", rows(guesses))
