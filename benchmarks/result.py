"""What a benchmark found: tables of rows, to be printed and to be kept."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from benchmarks.timing import environment
from fairpass.files import write_text

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """Rows with the same keys, in the order of the columns."""

    title: str
    rows: list[dict[str, Cell]]


@dataclass(frozen=True)
class Result:
    """The tables of one benchmark."""

    name: str
    tables: list[Table]

    def show(self, console: Console) -> None:
        """Print the tables."""
        for table in self.tables:
            shown = RichTable(title=table.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1))
            for column, cell in table.rows[0].items():
                shown.add_column(column, justify="left" if isinstance(cell, str) else "right")
            for row in table.rows:
                shown.add_row(*(cell_text(cell) for cell in row.values()))
            console.print(shown)

    def write(self, folder: Path, *, quick: bool) -> Path:
        """Write the tables, and what they were measured on, to `<folder>/<name>.json`."""
        content = {"environment": environment(), "quick": quick, **asdict(self)}
        return write_text(folder / f"{self.name}.json", json.dumps(content, indent=1) + "\n")


def cell_text(cell: Cell) -> str:
    """Return a cell as it is shown: numbers with three digits."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}"
    return str(cell)
