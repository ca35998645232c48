"""`fairpass init`: inspect tables and write a settings file."""

from pathlib import Path

from rich.text import Text

from fairpass.cli.options import Result, command
from fairpass.cli.output import Cells, print_line, rows, section, table, working
from fairpass.errors import DataError
from fairpass.files import write_text


@command
def init(
    nodes: Path,
    edges: Path | None = None,
    out: Path = Path("fairpass.toml"),
    force: bool = False,
    text_encoding: str = "utf-8",
) -> Result:
    if out.exists() and not force:
        raise DataError(f"{str(out)!r} exists: remove it, or overwrite it with --force")
    with working("Looking at the tables"):
        from fairpass.datasets.table_inspection import inspect_tables
        from fairpass.projects.template import template

        found = inspect_tables(nodes, edges, text_encoding=text_encoding)
        text = template(found, folder=out.parent, file=out.name, text_encoding=text_encoding)
    write_text(out, text)
    yield {"config": str(out), **found.to_dict()}
    lines: list[Cells] = []
    for each in found.columns:
        counts = (f"{each.distinct:,}", f"{each.missing:,}" if each.missing else "-")
        lines.append((Text(each.name), each.kind, *counts, Text(", ".join(each.examples))))
    columns = ("column", "holds", "values", "missing", "for example")
    section(f"{nodes}, {found.rows:,} nodes", table(columns, lines, words=["holds", "for example"]))
    if found.edges is not None:
        ends = " and ".join(repr(found.best(role)) for role in ("source", "target"))
        section(f"{found.edges}, {found.edge_rows:,} edges", Text(f"between {ends}"))
    guesses = []
    for role in ("id", "label", "sensitive", "split"):
        for place, guess in enumerate(found.roles[role]):
            first = place == 0
            column, reason = Text(guess.column, "bold" if first else "dim"), Text(guess.reason, "" if first else "dim")
            guesses.append((role if first else "", column, reason))
        if not found.roles[role] and role != "split":
            by_row = ": edges refer to row numbers" if role == "id" and found.edges is not None else ""
            guesses.append((role, Text("-"), Text(f"no column looks like one{by_row}")))
    section("Guessed from names and values", rows(guesses))
    if found.problems:
        stops = Text("stops", style="bold red")
        section("What to know", rows((stops if each.stops else "-", Text(each.sentence)) for each in found.problems))
    lacking = [role for role in ("label", "sensitive") if found.best(role) is None]
    todo = f"; it still needs {' and '.join(map(repr, lacking))}" if lacking else ""
    print_line(f"\nAll settings are in {out}{todo}. Read it, change what is not right, then: fairpass run {out}")
