"""`fairpass reproduce`: make the paper's tables and figures, and ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from fairpass.cli import output
from fairpass.cli.options import HERE, ExecutionOptions, Result, command, names_in
from fairpass.cli.output import STARTING, bar, choose_threads, note, print_line, rows, section, working
from fairpass.cli.results import show_table
from fairpass.errors import DataError

if TYPE_CHECKING:
    from fairpass.experiments import ItemResults
    from fairpass.runs import Executor, Progress, RunSpec, RunStore

ALL = "all"


@command
def reproduce(
    item: str,
    quick: bool = False,
    resume: bool = True,
    datasets: str = "german,credit,bail",
    execution: ExecutionOptions = HERE,
    out: Path | None = None,
) -> Result:
    with working(STARTING):
        from fairpass.experiments import ITEMS, ItemResults, write_item
        from fairpass.experiments.settings import DATASETS
        from fairpass.runs import RunStore

    executor = execution.open()
    items = list(ITEMS) if item == ALL else [item]
    if item not in (ALL, *ITEMS):
        raise DataError(f"'ITEM' must be one of {', '.join(ITEMS)} or {ALL} (got {item!r})")
    wanted = names_in("--datasets", datasets)
    if unknown := [name for name in wanted if name not in DATASETS]:
        raise DataError(f"'--datasets' must be among {', '.join(DATASETS)} (got {unknown[0]!r})")
    directory = out or Path("reproduction-quick" if quick else "reproduction")

    store = RunStore(directory / "records")
    cells = [cell for name in items for cell in ITEMS[name].cells(quick=quick) if cell.dataset in wanted]
    specs = list({spec.key: spec for cell in cells for spec in cell.specs()}.values())
    if not resume:
        store.forget(specs)
    made = run_missing(specs, store, wanted, executor)

    with working("Drawing"):
        found = {name: ItemResults(ITEMS[name], store, quick=quick, datasets=wanted) for name in items}
        written = {name: write_item(results, directory / name) for name, results in found.items()}
    errors = [record["error"] for spec in specs if (record := store.get(spec)) and record["error"] is not None]
    if errors:
        output.warn(f"{len(errors):,} of {len(specs):,} runs ended with an error, such as: {errors[0]}")
    shown = {name: _as_data(results, written[name]) for name, results in found.items()}
    yield {"runs": len(specs), "made": made, "records": str(store.directory), "items": shown}
    for results in found.values():
        _show(results, with_tables=item != ALL)
    print_line("")
    print_line(f"Tables and figures are in {directory}, the records of all runs in {store.directory}.")


def run_missing(
    specs: "Sequence[RunSpec]", store: "RunStore", datasets: Sequence[str], executor: "Executor | None" = None
) -> int:
    """Make the runs that have no record, with a progress bar; return how many were made."""
    import torch

    from fairpass.datasets import load
    from fairpass.experiments import EXTRA_MEASURES
    from fairpass.runs import Executor, run

    todo = store.missing(specs)
    needed = [name for name in datasets if any(spec.dataset == name for spec in todo)]
    _check_available(needed, datasets)
    if len(todo) < len(specs):
        note(f"{len(specs) - len(todo):,} of {len(specs):,} runs are already in {store.directory}")
    used, threads, before = executor or Executor(), torch.get_num_threads(), 0
    with used, bar(len(todo), store.directory, "the same command without --fresh") as show:

        def show_state(state: "Progress") -> None:
            done = before + state.done
            show(done, state.what, f"{done:,}/{len(todo):,} runs")

        show(0, "Training", f"0/{len(todo):,} runs")
        try:
            for name in needed:
                torch.set_num_threads(threads)
                choose_threads(load(name))
                of_dataset = [spec for spec in todo if spec.dataset == name]
                before += run(of_dataset, store, executor=used, measures=EXTRA_MEASURES, progress=show_state)
        finally:
            torch.set_num_threads(threads)
    return before


def _check_available(needed: Sequence[str], datasets: Sequence[str]) -> None:
    """Find out that a data set is missing before anything is trained, not hours later."""
    from fairpass.datasets import check_available, is_available

    try:
        check_available(*needed)
    except DataError as error:
        others = [name for name in datasets if is_available(name)]
        without = f"; or go without: --datasets {','.join(others)}" if others else ""
        raise DataError(f"{error}{without}") from None


def _as_data(found: "ItemResults", paths: Sequence[Path]) -> dict[str, Any]:
    claims = [{"claim": claim.text, "verdict": claim.verdict, "sentence": claim.sentence} for claim in found.claims]
    return {"tables": [table.to_dict() for table in found.tables], "claims": claims, "files": [*map(str, paths)]}


def _show(found: "ItemResults", *, with_tables: bool) -> None:
    for table in found.tables if with_tables else ():
        show_table(table)
    if found.claims:
        # A single item has the numbers, too; all items at once have a line for each claim.
        ends = [claim.sentence if with_tables else f"{claim.verdict.capitalize()}." for claim in found.claims]
        lines = [("-", Text(f"{claim.text} {end}")) for claim, end in zip(found.claims, ends, strict=True)]
        section(f"{found.item.title}: what the paper claims", rows(lines))
