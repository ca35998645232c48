"""The results as files: the tables and figures of an item, and the page with all of them."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairpass.experiments.benchmark import BenchmarkResults, benchmark_section
from fairpass.experiments.figures import write_all, write_figure
from fairpass.experiments.item import ItemResults
from fairpass.experiments.items import ITEMS
from fairpass.experiments.items.comparisons import CONSTANT
from fairpass.experiments.tables import seeds_in_words
from fairpass.experiments.texts import TEXTS, TITLES, listed, span
from fairpass.files import write_text
from fairpass.runs import RunStore

FIGURES = "figures/results"  # of the page, beside it
REFERENCE = "gcn"  # from which the benchmark takes differences


def write_item(found: ItemResults, directory: str | os.PathLike[str]) -> list[Path]:
    """Write the tables (.md, .tex, .csv) and figures (.png, .svg) of an item, and return their paths."""
    return write_all(found.tables, found.figures, directory)


def write_results_page(
    store: RunStore, docs_dir: str | os.PathLike[str], *, benchmark: BenchmarkResults | None = None, quick: bool = False
) -> Path:
    """Write `results.md` with every table, figure and claim, and its figures beside it; return its path.

    The page begins with the `benchmark`, if there is one.
    """
    docs = Path(docs_dir)
    found = [ItemResults(item, store, quick=quick) for item in ITEMS.values()]
    parts = [TEXTS["introduction"].strip(), _overview(store, found)]
    if benchmark is not None:
        parts += benchmark_section(benchmark, docs, FIGURES, REFERENCE)
        parts += [TEXTS["paper_section"].strip()]
    for item in found:
        parts += _section(item, docs)
    return write_text(docs / "results.md", "\n\n".join(parts) + "\n")


def _overview(store: RunStore, found: Sequence[ItemResults]) -> str:
    verdicts = [claim.verdict for item in found for claim in item.claims]
    counts = [(name, verdicts.count(name)) for name in ("seen", "partly seen", "not seen", "not measured")]
    words = listed([f"{count} {name}" for name, count in counts if count])
    versions = {f"torch {r['environment']['torch']}, Python {r['environment']['python']}" for r in store}
    return f"{len(store):,} runs ({' and '.join(sorted(versions))}). Of {len(verdicts)} claims: {words}."


def _section(found: ItemResults, docs: Path) -> Iterator[str]:
    item = found.item
    yield f"## {item.title}"
    yield f"```bash\nfairpass reproduce {item.name}\n```"
    yield _extent(found)
    if not item.figure_only:
        yield from (table.folded().to_markdown().strip() for table in found.tables)
    for name, figure in found.figures.items():
        path = write_figure(figure, docs / FIGURES / f"{name}.svg")
        stem, _, dataset = name.partition("-")
        caption = TEXTS["figures"][name if name in TEXTS["figures"] else stem]["caption"]
        caption = f"{TITLES[dataset]}: {caption}" if dataset in TITLES else caption
        yield f"![{caption}]({FIGURES}/{path.name})\n\n*{caption}*"
    if item.name == "main" and found.tables:
        yield TEXTS["against_paper"].format(met=found.tables[-2].rows[-1][-1].text)
    if found.claims:
        yield "**What the paper claims, and whether we see it**"
        yield "\n".join(f"- {claim.text} *{claim.sentence}*" for claim in found.claims)


def _extent(found: ItemResults) -> str:
    """Return how many seeds and epochs there are on each data set, and how many cells are missing."""
    extents = []
    for title, dataset in found.datasets().items():
        if results := [result for result in found.of(dataset) if result.cell.label != CONSTANT]:
            epochs = [r["epochs"] for result in results for r in result.records if r["method"] != "constant"]
            training = f"{span(epochs)} epochs" if epochs else "no training"
            extents.append(f"{title}: {seeds_in_words(results)}, {training}")
    sentences = [f"{'; '.join(extents)}."] if extents else []
    if missing := found.results.count(None):
        sentences.append(f"{missing:,} of its cells were not run.")
    return " ".join(sentences) or "No training."
