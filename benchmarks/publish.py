"""Put the stored results into the documentation: `python -m benchmarks.publish`."""

import json
import re
from pathlib import Path

from benchmarks.result import Cell, cell_text
from benchmarks.rivals import GRAPHS
from fairpass.files import write_text

ROOT = Path(__file__).parent
NAMES = ("performance.md", "rivals.md", "how-it-works.md", "theory.md", "promise.md", "scale.md")
PAGES = tuple(ROOT.parent / "docs" / name for name in NAMES)
# Marker on a page -> benchmark and position of its table.
TABLES = {
    "kernel": ("kernels", 0),
    "kernel-growth": ("kernels", 1),
    "fit": ("fits", 0),
    "epoch": ("epochs", 0),
    "sampled": ("epochs", 1),
    "growth": ("growth", 0),
    "population": ("population", 0),
    "classes": ("classes", 0),
    "classes-rules": ("classes", 1),
    "classes-fairness": ("classes", 3),
    "steps-german": ("quality", 0),
    "steps-bail": ("quality", 1),
    "momentum": ("choices", 0),
    "calibration": ("choices", 1),
    "window": ("choices", 2),
    "person": ("people", 0),
    "unknown": ("people", 1),
    "theorems": ("theorems", 0),
    "promise-kept": ("promise", 0),
    "promise-rivals": ("promise", 1),
    "promise-alone": ("promise", 2),
    "promise-small": ("promise", 3),
    "parts-overhead": ("distributed", 0),
    "parts-scaling": ("distributed", 1),
    "parts-traffic": ("distributed", 2),
    "parts-memory": ("distributed", 3),
    "parts-costs": ("distributed", 4),
    "parts-errors": ("distributed", 5),
    "halos": ("halo_sizes", 0),
    "scale-plan": ("scale_plan", 0),
    **{f"rivals-{graph}": ("rivals", position) for position, graph in enumerate(GRAPHS)},
}


def markdown(rows: list[dict[str, Cell]]) -> str:
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([cell_text(row[c]) for c in columns] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def fill(page: str, marker: str, content: str) -> str:
    """Replace what stands between a marker and its end (or put both there at the first time)."""
    block = f"<!-- bench:{marker} -->\n\n{content}\n\n<!-- /bench:{marker} -->"
    pattern = rf"<!-- bench:{marker} -->(?:.*?<!-- /bench:{marker} -->)?"
    return re.sub(pattern, lambda _: block, page, flags=re.DOTALL)


def main() -> None:
    for path in PAGES:
        page = path.read_text()
        for marker, (name, position) in TABLES.items():
            stored = ROOT / "results" / f"{name}.json"
            if not stored.exists() or f"<!-- bench:{marker} -->" not in page:
                continue
            result = json.loads(stored.read_text())
            if position < len(result["tables"]):
                table = result["tables"][position]
                caption = f"{table['title']}. `python -m benchmarks {name}`"
                page = fill(page, marker, f"{markdown(table['rows'])}\n\n*{caption}*")
        write_text(path, page)


if __name__ == "__main__":
    main()
