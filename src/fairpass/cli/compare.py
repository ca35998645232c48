"""`fairpass compare`: several methods on one graph, over several seeds, in one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.options import TrainingOptions, with_option_groups
from fairpass.cli.output import JsonFlag, print_json, print_line, working
from fairpass.cli.progress import bar, choose_threads, note
from fairpass.cli.report import keep
from fairpass.cli.results import show_rows, title_of
from fairpass.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.methods import NodeClassifier
    from fairpass.methods.comparison import Comparison
    from fairpass.methods.runs import Run, Trial


_REFERENCE = "constant"


@with_option_groups
def compare(
    graph: GraphOptions,
    training: TrainingOptions,
    methods: Annotated[str, typer.Option(metavar="NAMES", help="`all`, or names with commas between them.")] = "all",
    seeds: Annotated[
        int, typer.Option(metavar="NUMBER", min=1, help="How many seeds each method is trained with.")
    ] = 5,
    jobs: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="How many processes share the work.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A .json file for the results, written after every run; the same command again, or one "
            "with more methods or seeds, goes on from it.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY",
            help="Where to put report.html and the evidence it is made of. The page shows models, not only their "
            "results: those in --out are trained again for it, in this process.",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Train several methods with several seeds, and show how accurate and how fair each is on the test nodes.

    The constant classifier is always among them: what does not beat it is of no use.
    """
    with working("Starting"):
        from fairpass.methods import method, names
        from fairpass.methods.comparison import Comparison
        from fairpass.methods.runs import trials

    if report is not None and jobs > 1:
        raise typer.BadParameter("--report cannot go with --jobs: the models have to stay in this process")
    wanted = names() if methods == "all" else [name.strip() for name in methods.split(",")]
    found = {name: method(name) for name in dict.fromkeys([_REFERENCE, *wanted])}
    classifiers = {name: each(training=training.applied_to(each.default_training())) for name, each in found.items()}
    data = graph.load()
    comparison = Comparison.of(classifiers, data)
    if out is not None and out.exists():
        try:
            comparison = comparison.join(Comparison.load(out))
        except DataError as error:
            raise DataError(f"{error}; remove {str(out)!r}, or choose another --out") from None
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)  # finds out early if it cannot be written
    planned = trials(classifiers, range(seeds))
    comparison = run_trials(comparison, planned, data, jobs=jobs, out=out, rerun=report is not None)
    page = None
    if report is not None:
        title = f"{title_of(data)}: {len(wanted)} methods compared"
        page = keep(data, fitted(planned, comparison), report, title=title)
    if as_json:
        print_json(comparison.to_dict() | ({} if page is None else {"report": str(page)}))
        return
    show_rows(title_of(data), comparison.rows)
    if out is not None:
        print_line(f"\nAll results are in {out}.")
    if page is not None:
        print_line(f"\nThe report is {page}.")


def run_trials(
    comparison: "Comparison",
    planned: "Sequence[Trial]",
    data: "Data",
    *,
    jobs: int = 1,
    out: Path | None = None,
    rerun: bool = False,
) -> "Comparison":
    """Return a comparison with every run it lacked, showing how far it is and storing each result at once.

    With `rerun`, the runs that it has are made again, too: with `jobs=1` the classifiers are fitted afterwards.
    """
    from fairpass.methods.runs import run_all

    choose_threads(data)
    todo = [trial for trial in planned if rerun or not comparison.has(trial)]
    if len(todo) < len(planned):
        note(f"{len(planned) - len(todo)} of {len(planned)} runs are in {out} already")
    if out is not None:
        comparison.save(out)  # finds out early if it cannot be written
    epochs = {(trial.method, trial.seed): trial.classifier.training.epochs for trial in todo}
    done: list[Run] = []
    with bar(sum(epochs.values()), out) as show:

        def show_epoch(epoch: int = 0) -> None:
            # In this process the runs are made in their order; in others, several at a time.
            current = next(iter(todo[len(done) :]), None) if jobs == 1 else None
            label = f"{current.method}, seed {current.seed}" if current else "Training"
            before = sum(epochs[run.method, run.seed] for run in done)
            show(before + epoch, label, f"{len(done)}/{len(todo)} runs")

        show_epoch()
        for run in run_all(todo, data, jobs=jobs, callbacks=[lambda record: show_epoch(record.epoch + 1)]):
            comparison = comparison.plus(run)
            if out is not None:
                comparison.save(out)
            done.append(run)
            show_epoch()
    return comparison


def fitted(planned: "Sequence[Trial]", comparison: "Comparison") -> "dict[str, list[NodeClassifier]]":
    """Return the classifiers that were fitted, by method; those that failed are left out."""
    models: dict[str, list[NodeClassifier]] = {}
    for trial in planned:
        if comparison.has(trial):
            models.setdefault(trial.method, []).append(trial.classifier)
    return models
