"""The results of the experiments as files: the tables and figures of an item, and the page with all of them."""

import os
from collections.abc import Iterator
from pathlib import Path

from fairpass.experiments.claims import claims_of
from fairpass.experiments.figures import figures_of
from fairpass.experiments.figures.style import write_figure
from fairpass.experiments.findings import TITLES, Findings
from fairpass.experiments.items import ITEMS
from fairpass.experiments.records import Records
from fairpass.experiments.tables import tables_of
from fairpass.experiments.tables.main import count_met
from fairpass.experiments.titles import CAPTIONS, INTRODUCTION, ITEM_TITLES
from fairpass.experiments.words import epochs_in_words, listed, seeds_in_words
from fairpass.files import write_text

FIGURES = "figures/results"
"""Where the page's figures are, beside it."""

# Their figures say it better; the tables are for programs.
_FIGURE_ONLY = ("hyper", "layers", "alpha", "mlp")


def write_item(item: str, findings: Findings, directory: str | os.PathLike[str]) -> list[Path]:
    """Write the tables (.md, .tex, .csv) and figures (.png, .svg) of an item, and return their paths."""
    target = Path(directory)
    written = []
    for table in tables_of(item, findings):
        for kind, text in (("md", table.to_markdown()), ("tex", table.to_latex()), ("csv", table.to_csv())):
            written.append(write_text(target / f"{table.name}.{kind}", text))
    return written + _write_figures(item, findings, target, ("png", "svg"))


def _write_figures(item: str, findings: Findings, target: Path, kinds: tuple[str, ...]) -> list[Path]:
    figures = figures_of(item, findings).items()
    return [write_figure(figure, target / f"{name}.{kind}") for name, figure in figures for kind in kinds]


def write_results_page(records: Records, docs_dir: str | os.PathLike[str], *, quick: bool = False) -> Path:
    """Write `results.md` with every table, figure and claim, and its figures beside it; return its path."""
    docs, findings = Path(docs_dir), Findings(records, quick=quick)
    parts = [INTRODUCTION, *_overview(findings)]
    for item in ITEMS:
        figures = _write_figures(item, findings, docs / FIGURES, ("svg",))
        parts += _section(item, findings, figures)
    return write_text(docs / "results.md", "\n\n".join(parts) + "\n")


def _overview(findings: Findings) -> Iterator[str]:
    verdicts = [claim.verdict for item in ITEMS for claim in claims_of(item, findings)]
    counts = [(name, verdicts.count(name)) for name in ("seen", "partly seen", "not seen", "not measured")]
    words = listed([f"{count} {name}" for name, count in counts if count])
    versions = {f"torch {r['environment']['torch']}, Python {r['environment']['python']}" for r in findings.records}
    yield f"{len(findings.records):,} runs ({' and '.join(sorted(versions))}). Of {len(verdicts)} claims: {words}."


def _section(item: str, findings: Findings, figures: list[Path]) -> Iterator[str]:
    yield f"## {ITEM_TITLES[item]}"
    yield f"```bash\nfairpass reproduce {item}\n```"
    yield _extent(item, findings)
    if item not in _FIGURE_ONLY:
        yield from (table.folded().to_markdown().strip() for table in tables_of(item, findings))
    for path in figures:
        caption = _caption(path.stem)
        yield f"![{caption}]({FIGURES}/{path.name})\n\n*{caption}*"
    if item == "main" and findings.datasets(item):
        met, cells = count_met(findings)
        yield (
            f"**Against the paper's numbers**: the better of our two methods is at least as good as the better of the "
            f"paper's two in {met} of {cells} cells."
        )
    if claims := claims_of(item, findings):
        yield "**What the paper claims, and whether we see it**"
        yield "\n".join(f"- {claim.text} *{claim.sentence}*" for claim in claims)


def _extent(item: str, findings: Findings) -> str:
    found = [
        f"{TITLES[dataset]}: {seeds_in_words(runs)}, {epochs_in_words(runs)}"
        for dataset in findings.datasets(item)
        if (runs := [finding for finding in findings.of(item, dataset) if finding.cell.label != "constant"])
    ]
    sentences = [f"{'; '.join(found)}." if found else "", _missing(findings.missing(item))]
    return " ".join(filter(None, sentences)) or "No training."


def _missing(cells: int) -> str:
    return "" if not cells else f"{cells:,} of its cells were not run."


def _caption(name: str) -> str:
    stem, _, dataset = name.partition("-")
    return CAPTIONS.get(name) or f"{TITLES[dataset]}: {CAPTIONS[f'{stem}-dataset']}"
