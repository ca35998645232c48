"""`fairpass benchmark`: every method on many splits of many graphs, and which of them is worth it."""

from pathlib import Path
from typing import TYPE_CHECKING

from fairpass.cli import output
from fairpass.cli.options import HERE, ExecutionOptions, Result, command, names_in
from fairpass.cli.output import STARTING, bar, choose_threads, note, print_line, working
from fairpass.cli.results import show_table
from fairpass.errors import DataError

if TYPE_CHECKING:
    from fairpass.runs import Progress

ALL = "all"


@command
def benchmark(
    graphs: str = ALL,
    methods: str = ALL,
    splits: int = 10,
    seeds: int = 1,
    reference: str = "gcn",
    controls: bool = True,
    resume: bool = True,
    execution: ExecutionOptions = HERE,
    out: Path = Path("benchmark"),
) -> Result:
    with working(STARTING):
        from fairpass.datasets import check_available
        from fairpass.experiments.benchmark import BenchmarkResults, Protocol, run_benchmark, write_benchmark
        from fairpass.experiments.benchmark.tables import metric_table, worth_table
        from fairpass.runs import RunStore

    executor = execution.open()
    protocol = Protocol.of(_names("--graphs", graphs), _names("--methods", methods), splits=splits, seeds=seeds)
    labels = [entry.label for entry in protocol.entries]
    if reference not in labels:
        raise DataError(f"'--reference' must be one of the methods, {', '.join(labels)} (got {reference!r})")
    check_available(*protocol.graphs)
    store = RunStore(out / "records")
    total = len(protocol.specs())
    missing = len(store.missing(protocol.specs())) if resume else total
    if missing < total:
        note(f"{total - missing:,} of {total:,} runs are already in {store.directory}")
    # The controls come on top: one for each fair row, split and seed.
    fair = sum(entry.is_fair for entry in protocol.entries)
    todo = missing + (round(fair * sum(protocol.splits.values()) * seeds * missing / total) if controls else 0)
    choose_threads()
    with executor, bar(todo, store.directory, "the same command without --fresh") as show:

        def show_state(state: "Progress") -> None:
            show(min(todo, state.done), state.what, f"{state.done:,}/{todo:,} runs")

        show(0, "Training", f"0/{todo:,} runs")
        made = run_benchmark(
            protocol, store, executor=executor, progress=show_state, controls=controls, again=not resume
        )
    found = BenchmarkResults(protocol, store)
    with working("Drawing"):
        written = write_benchmark(found, out, reference)
    tables = [each for each in (worth_table(found), *(metric_table(found, g) for g in protocol.graphs)) if each]
    failures = sum(map(len, found.failures.values()))
    if failures:
        output.warn(f"{failures:,} of {total:,} runs ended with an error; the tables name them")
    yield {
        "runs": total,
        "made": made,
        "failed": failures,
        "records": str(store.directory),
        "tables": [each.to_dict() for each in tables],
        "files": [*map(str, written)],
    }
    for each in tables:
        show_table(each)
    print_line("")
    print_line(f"All tables and figures are in {out}, the records of all runs in {store.directory}.")


def _names(option: str, given: str) -> list[str] | None:
    return None if given == ALL else names_in(option, given)
