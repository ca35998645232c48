"""The benchmark as files: its tables and figures, and its part of the results page."""

import os
from collections.abc import Iterator
from pathlib import Path

from fairpass.experiments.benchmark.claims import benchmark_claims
from fairpass.experiments.benchmark.figures import all_figures
from fairpass.experiments.benchmark.protocol import BUDGET, SPLITS
from fairpass.experiments.benchmark.results import BenchmarkResults
from fairpass.experiments.benchmark.tables import all_tables
from fairpass.experiments.figures import write_all, write_figure
from fairpass.experiments.texts import TEXTS, listed
from fairpass.files import write_text
from fairpass.plain_text import to_csv


def write_benchmark(found: BenchmarkResults, directory: str | os.PathLike[str], reference: str) -> list[Path]:
    """Write all tables (.md, .tex, .csv) and figures (.png, .svg), and one row per graph, method and split."""
    written = write_all(all_tables(found, reference), all_figures(found), directory)
    return [*written, write_text(Path(directory) / "results.csv", to_csv(found.frame()))]


def benchmark_section(found: BenchmarkResults, docs: Path, figures: str, reference: str) -> Iterator[str]:
    """Yield the parts of the results page about the benchmark; its figures are written below `docs`."""
    whole = found.frame()
    if whole.empty:
        return
    splits = min(found.protocol.splits.values())
    command = "fairpass benchmark" if splits == SPLITS else f"fairpass benchmark --splits {splits}"
    introduction = TEXTS["benchmark"]["introduction"].strip()
    yield introduction.format(command=command, extent=_extent(found), budget=BUDGET)
    drawn = all_figures(found)
    for table in all_tables(found, reference):
        yield table.to_markdown().strip()
        # Each figure comes after the table that it is about.
        about = {"benchmark-worth": "fronts", "benchmark-hypervolume-eo": "ranks", "benchmark-effects-acc": "effects"}
        name = f"benchmark-{about.get(table.name, '')}"
        if name in drawn:
            path = write_figure(drawn[name], docs / figures / f"{name}.svg")
            caption = TEXTS["figures"][name]["caption"]
            yield f"![{caption}]({figures}/{path.name})\n\n*{caption}*"
    yield "**What the paper claims, and whether we see it over many splits**"
    yield TEXTS["benchmark"]["claims"]
    yield "\n".join(f"- {claim.text} *{claim.sentence}*" for claim in benchmark_claims(found))


def _extent(found: BenchmarkResults) -> str:
    """Return how many runs, methods, graphs and splits there are, and how long they took."""
    whole = found.frame()
    counts = whole.groupby("graph")["split"].nunique()
    splits = {int(n): [g for g in found.protocol.graphs if counts.get(g) == n] for n in sorted(set(counts))}
    words = listed([f"{n} splits of {listed(graphs)}" for n, graphs in splits.items()])
    hours = sum(record["seconds"] for record in found.records) / 3600
    rows = whole["entry"].nunique()
    return (
        f"{len(found.records):,} runs of {rows} rows on {len(counts)} graphs: {words}; {hours:.1f} hours on one core."
    )
