"""`fairpass attribute`: a fair method against its own control."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairpass.cli import output
from fairpass.cli.data_options import GraphOptions
from fairpass.cli.options import HERE, ExecutionOptions, Result, TrainingOptions, command, names_in, parse_parameters
from fairpass.cli.output import STARTING, bar, choose_threads, print_line, section, working
from fairpass.cli.results import show_table

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.runs import Progress


@command
def attribute(
    method: str,
    graph: GraphOptions,
    training: TrainingOptions,
    settings: list[str] | None = None,
    splits: int = 6,
    seeds: int = 2,
    encoders: str | None = None,
    execution: ExecutionOptions = HERE,
    out: Path | None = None,
) -> Result:
    with working(STARTING):
        from fairpass import methods
        from fairpass.experiments.attribution import Attribution
        from fairpass.metrics.detectable import detectable
        from fairpass.runs import Configuration, RunStore
        from fairpass.training import fingerprint

    executor = execution.open()
    found = methods.method(method)
    parameters = parse_parameters(found, settings or ())
    model = found(**parameters)
    chosen = training.applied_to(model.training)
    # Benchmarks are loaded by the runs, which read the scale from the configuration.
    is_own = graph.name is None
    scale = graph.given.get("scale", "standard")
    configuration = Configuration.of(model.with_params(training=chosen)).but(scale=scale)
    names = None if encoders is None else names_in("--encoders", encoders)
    refused = {"split_seed": "--split-seed", "split": "--split"}
    if not is_own:
        refused["keep_sensitive"] = "--keep-sensitive or --drop-sensitive"
    for name, flag in refused.items():
        if name in graph.given:
            raise typer.BadParameter(f"{flag} cannot be used here: runs have random splits, and a benchmark's features")
    configuration.control()  # a plain method is refused before the graph is read
    first = graph.load(split_seed=0)
    choose_threads(first)
    # Records of own tables are found by what is in them.
    title = graph.name if graph.name else f"{Path(str(graph.nodes)).stem}-{fingerprint(first)[:12]}"
    attribution = Attribution.of(
        title,
        configuration,
        RunStore(None if out is None else out / "records"),
        splits=splits,
        seeds=seeds,
        encoders=names,
        is_own=is_own,
    )

    def own(split: int) -> "Data":
        return first if split == 0 else graph.load(split_seed=split)

    total = len(attribution.store.missing(attribution.specs()))
    with executor, bar(total, out) as show:

        def show_state(state: "Progress") -> None:
            show(state.done, state.what, f"{state.done:,}/{total:,} runs")

        show(0, "Training", f"0/{total:,} runs")
        attribution.run(graphs=own if is_own else None, executor=executor, progress=show_state)
    for reason, count in attribution.failures.items():
        output.warn(f"{count} of {len(attribution.specs())} runs failed: {reason}")
    limit = detectable(first.y[first.test_mask], first.sens[first.test_mask])
    yield {**attribution.to_dict(), "detectable": limit._asdict()}
    for table in attribution.tables():
        show_table(table)
    section("In words", output.bullets([attribution.sentence, limit.sentence]))
    if out is not None:
        print_line(f"The records of all runs are in {attribution.store.directory}.")
