"""`fairpass init`: look at a user's tables, and write a configuration to start from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from fairpass.cli.output import JsonFlag, examples, print_json, print_line, rows, section, table, working
from fairpass.errors import DataError
from fairpass.files import write_text

if TYPE_CHECKING:
    from fairpass.datasets.table_inspection import Inspection

EXAMPLES = examples(
    {
        "Look at two tables, and write fairpass.toml": "fairpass init people.csv friends.csv",
        "Without edges: people who are alike will be joined": "fairpass init people.csv",
        "Then": "fairpass run fairpass.toml",
    }
)

_ROLES = ("id", "label", "sensitive", "split")


def init(
    nodes: Annotated[
        Path,
        typer.Argument(metavar="NODES", help="The nodes, one per row: .csv, .tsv or .parquet.", show_default=False),
    ],
    edges: Annotated[
        Path | None, typer.Argument(metavar="[EDGES]", help="The edges, one per row.", show_default=False)
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The configuration to write.")] = Path("fairpass.toml"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite a configuration that is there.")] = False,
    text_encoding: Annotated[
        str, typer.Option(metavar="NAME", help="The encoding of CSV files, for example latin-1.")
    ] = "utf-8",
    as_json: JsonFlag = False,
) -> None:
    """Look at your tables, and write a configuration for `fairpass run`.

    It shows what each column holds, which one may be the id, the label and the
    sensitive attribute, and what looks wrong. The configuration has every choice
    in it, with its reason: read it, and change what is not right.
    """
    if out.exists() and not force:
        raise DataError(f"{str(out)!r} is there already: remove it, or overwrite it with --force")
    with working("Looking at the tables"):
        from fairpass.datasets.table_inspection import inspect_tables
        from fairpass.projects.template import template

        found = inspect_tables(nodes, edges, text_encoding=text_encoding)
        text = template(found, folder=out.parent, file=out.name, text_encoding=text_encoding)
    write_text(out, text)
    if as_json:
        print_json({"config": str(out), **found.to_dict()})
        return
    section(f"{nodes}, {found.rows:,} nodes", _columns(found))
    if found.edges is not None:
        ends = " and ".join(repr(found.best(role)) for role in ("source", "target"))
        section(f"{found.edges}, {found.edge_rows:,} edges", Text(f"between {ends}"))
    section("Guessed from names and values", _guesses(found))
    if found.problems:
        section("What to know", _problems(found))
    print_line("")
    lacking = [role for role in ("label", "sensitive") if found.best(role) is None]
    todo = f"; it still needs {' and '.join(map(repr, lacking))}" if lacking else ""
    print_line(f"Every choice is in {out}{todo}. Read it, change what is not right, then: fairpass run {out}")


def _columns(found: "Inspection") -> Table:
    made = table("column", "holds", "values", "missing", "for example", numbers=("values", "missing"))
    for column in found.columns:
        cells = (f"{column.distinct:,}", f"{column.missing:,}" if column.missing else "-")
        made.add_row(Text(column.name), column.kind, *cells, Text(", ".join(column.examples)))
    return made


def _guesses(found: "Inspection") -> Table:
    cells = []
    for role in _ROLES:
        for place, guess in enumerate(found.roles[role]):
            name = Text(guess.column, style="bold" if place == 0 else "dim")
            cells.append((role if place == 0 else "", name, Text(guess.reason, style="" if place == 0 else "dim")))
        if not found.roles[role] and role != "split":
            by_row = ": edges name nodes by row number" if role == "id" and found.edges is not None else ""
            nothing = f"no column looks like one{by_row}"
            cells.append((role, Text("-"), Text(nothing)))
    return rows(cells)


def _problems(found: "Inspection") -> Table:
    return rows(
        (Text("stops", style="bold red") if problem.stops else Text("-"), Text(problem.sentence))
        for problem in found.problems
    )
