"""`fairpass reproduce`: the paper's tables and figures, and ours, made again."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from fairpass.cli import output
from fairpass.cli.options import command
from fairpass.cli.output import print_json, print_line, rows, section, working
from fairpass.cli.progress import bar, choose_threads, note
from fairpass.errors import DataError, DownloadError

if TYPE_CHECKING:
    from fairpass.experiments import Records, Spec
    from fairpass.experiments.findings import Findings
    from fairpass.experiments.runner import Progress
    from fairpass.experiments.table import Entry, Table


ALL, RECORDS = "all", "records"
_DIRECTORY, _QUICK_DIRECTORY = Path("reproduction"), Path("reproduction-quick")
_STYLES = {"": "", "best": "bold", "second": "italic"}


@command
def reproduce(
    item: str,
    quick: bool = False,
    resume: bool = True,
    datasets: str = "german,credit,bail",
    jobs: int = 1,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Make the runs of a table or figure of the paper, or of all, then the tables and figures themselves.

    Every run is kept as soon as it is done: after an interruption the same command goes on, and runs whose
    configuration has changed are made again. Tables are written as Markdown, LaTeX and CSV, figures as PNG and SVG.
    """
    with working("Starting"):
        from fairpass.experiments import ITEMS, Records, cells_of
        from fairpass.experiments.findings import Findings
        from fairpass.experiments.results import write_item
        from fairpass.experiments.settings import DATASETS

    items = list(ITEMS) if item == ALL else [item]
    if unknown := [name for name in items if name not in ITEMS]:
        raise DataError(f"'ITEM' must be one of {', '.join(ITEMS)} or {ALL} (got {unknown[0]!r})")
    wanted = [name.strip() for name in datasets.split(",")]
    if unknown := [name for name in wanted if name not in DATASETS]:
        raise DataError(f"'--datasets' must be among {', '.join(DATASETS)} (got {unknown[0]!r})")
    directory = out if out is not None else _QUICK_DIRECTORY if quick else _DIRECTORY

    records = Records(directory / RECORDS)
    cells = [cell for name in items for cell in cells_of(name, quick=quick) if cell.dataset in wanted]
    specs = list({spec.key: spec for cell in cells for spec in cell.specs()}.values())
    if not resume:
        records.forget(specs)
    made = run_missing(specs, records, wanted, jobs=jobs)

    with working("Drawing"):
        findings = Findings(records, quick=quick, datasets=wanted)
        written = {name: write_item(name, findings, directory / name) for name in items}
    _warn_of_failures(specs, records)
    if as_json:
        found = {name: _as_data(name, findings, paths) for name, paths in written.items()}
        print_json({"runs": len(specs), "made": made, "records": str(records.directory), "items": found})
        return
    for name in items:
        _show(name, findings, with_tables=item != ALL)
    print_line("")
    print_line(f"Tables and figures are in {directory}, the records of all runs in {records.directory}.")


def run_missing(specs: "Sequence[Spec]", records: "Records", datasets: Sequence[str], *, jobs: int = 1) -> int:
    """Make the runs that have no record, showing how far it is; return how many were made."""
    import torch

    from fairpass.datasets import load
    from fairpass.experiments import run_specs

    todo = [spec for spec in specs if spec not in records]
    needed = [name for name in datasets if any(spec.dataset == name for spec in todo)]
    _fetch(needed, datasets)
    if len(todo) < len(specs):
        note(f"{len(specs) - len(todo):,} of {len(specs):,} runs are in {records.directory} already")
    threads, before = torch.get_num_threads(), 0
    with bar(len(todo), records.directory, "the same command without --fresh") as show:

        def show_state(state: "Progress") -> None:
            done = before + state.done
            show(done, state.what, f"{done:,}/{len(todo):,} runs")

        show(0, "Training", f"0/{len(todo):,} runs")
        try:
            for name in needed:
                torch.set_num_threads(threads)
                choose_threads(load(name))
                of_dataset = [spec for spec in todo if spec.dataset == name]
                before += run_specs(of_dataset, records, jobs=jobs, on_progress=show_state)
        finally:
            torch.set_num_threads(threads)
    return before


def _fetch(needed: Sequence[str], datasets: Sequence[str]) -> None:
    """Find out that a data set is missing before anything is trained, and not hours later."""
    from fairpass.datasets import fetch

    for name in needed:
        try:
            fetch(name)
        except DownloadError as error:
            others = ",".join(other for other in datasets if other != name)
            without = f"; or go without {name}: --datasets {others}" if others else ""
            raise DownloadError(f"{error}{without}") from None


def _warn_of_failures(specs: "Sequence[Spec]", records: "Records") -> None:
    errors = [record["error"] for spec in specs if (record := records.get(spec)) and record["error"] is not None]
    if errors:
        output.warn(f"{len(errors):,} of {len(specs):,} runs ended with an error, such as: {errors[0]}")


def _as_data(item: str, findings: "Findings", paths: Sequence[Path]) -> dict[str, Any]:
    from fairpass.experiments.claims import claims_of
    from fairpass.experiments.tables import tables_of

    return {
        "tables": [table.to_dict() for table in tables_of(item, findings)],
        "claims": [
            {"claim": claim.text, "verdict": claim.verdict, "sentence": claim.sentence}
            for claim in claims_of(item, findings)
        ],
        "files": [str(path) for path in paths],
    }


def _show(item: str, findings: "Findings", *, with_tables: bool) -> None:
    from fairpass.experiments.claims import claims_of
    from fairpass.experiments.tables import tables_of
    from fairpass.experiments.titles import ITEM_TITLES

    if with_tables:
        for table in tables_of(item, findings):
            _show_table(table)
    if claims := claims_of(item, findings):
        # All items in one go have a line for each claim; one item has the numbers, too.
        sentences = [claim.sentence if with_tables else f"{claim.verdict.capitalize()}." for claim in claims]
        lines = [("-", Text(f"{claim.text} {said}")) for claim, said in zip(claims, sentences, strict=True)]
        section(f"{ITEM_TITLES[item]}: what the paper claims", rows(lines))


def _show_table(table: "Table") -> None:
    widths = [max([len(name), *(len(row[i].text) for row in table.rows)]) for i, name in enumerate(table.columns)]
    if sum(width + 1 for width in widths) + 2 > output.console.width:
        table = table.folded()
    lines = [[*map(_styled, row)] for row in table.rows]
    made = output.table(table.columns, lines, words=table.columns[: table.words], narrow=True)
    section(table.title, made, *(Text(sentence, style="dim") for sentence in table.notes))


def _styled(entry: "Entry") -> Text:
    first, *others = entry.text.split("\n")
    return Text("\n").join([Text(first, style=_STYLES[entry.emphasis]), *(Text(line, style="dim") for line in others)])
