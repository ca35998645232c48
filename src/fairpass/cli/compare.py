"""`fairpass compare` and `fairpass report`: several methods on one graph in a table, and on a page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.options import HERE, ExecutionOptions, Result, TrainingOptions, command, names_in
from fairpass.cli.output import STARTING, bar, choose_threads, note, print_line, working
from fairpass.cli.results import show_rows, title_of
from fairpass.errors import DataError
from fairpass.locks import in_use

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.methods import NodeClassifier
    from fairpass.runs import Comparison, Executor, Progress, RunSpec

_REFERENCE = "constant"
PAGE = "report.html"


@command
def compare(
    graph: GraphOptions,
    training: TrainingOptions,
    methods: str = "all",
    seeds: int = 5,
    execution: ExecutionOptions = HERE,
    out: Path | None = None,
    report: Path | None = None,
    include_people: bool = False,
) -> Result:
    if out is not None and out.suffix != ".json":
        raise typer.BadParameter(f"--out must end in .json (got {str(out)!r})")
    with working(STARTING):
        from fairpass.methods import method, names
        from fairpass.runs import Comparison

    if out is not None and out.is_file():
        Comparison.load(out)  # raises if it holds no results, before an error advises to remove it
    if report is not None and not execution.is_here:
        option = "--jobs" if execution.executor == HERE.executor else "--executor"
        raise typer.BadParameter(f"--report cannot be used with {option}: it needs the models in this process")
    executor = execution.open()
    wanted = names() if methods == "all" else names_in("--methods", methods)
    found = {name: method(name, "methods") for name in dict.fromkeys([_REFERENCE, *wanted])}
    classifiers = {name: each(training=training.applied_to(each.default_training())) for name, each in found.items()}
    data = graph.load()
    try:
        comparison = Comparison.of(classifiers, data, out)
    except DataError as error:
        raise DataError(f"{error}; remove {str(out)!r}, or choose another --out") from None
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)  # finds out early if it cannot be written
    specs = comparison.specs(classifiers, range(seeds))
    models = run_comparison(comparison, specs, data, executor=executor, keep_models=report is not None)
    page = None
    if report is not None:
        title = f"{title_of(data)}: {len(wanted)} methods compared"
        page = keep(data, models, report, title=title, include_people=include_people)
    yield comparison.to_dict() | ({} if page is None else {"report": str(page)})
    show_rows(title_of(data), comparison.rows, comparison.runs)
    if out is not None:
        print_line(f"\nAll results are in {out}.")
    if page is not None:
        print_line(f"\nThe report is {page}.")


def run_comparison(
    comparison: "Comparison",
    specs: "Sequence[RunSpec]",
    data: "Data",
    *,
    executor: "Executor | None" = None,
    keep_models: bool = False,
) -> "dict[str, list[NodeClassifier]]":
    """Make the runs that a comparison lacks, with a progress bar; return the fitted classifiers by name.

    With `keep_models` all runs are made (those that the comparison has are made again), in this process; otherwise no
    classifiers are returned.
    """
    from fairpass.runs import Executor, run

    choose_threads(data)
    out = comparison.path
    models: dict[str, list[NodeClassifier]] = {spec.label: [] for spec in specs}
    todo = list(specs) if keep_models else comparison.missing(specs)
    if len(todo) < len(specs):
        note(f"{len(specs) - len(todo)} of {len(specs)} runs are already in {out}")
    if out is not None:
        comparison.write()  # finds out early if it cannot be written
    used = executor or Executor()
    in_order = used.is_here(len(todo))
    epochs = [spec.classifier().training.epochs for spec in todo]
    done = 0
    with used, bar(sum(epochs), out) as show:

        def show_epoch(epoch: int = 0) -> None:
            # In this process the runs are made in their order; in others, several at a time.
            label = f"{todo[done].label}, seed {todo[done].seed}" if in_order and done < len(todo) else "Training"
            show(sum(epochs[:done]) + epoch, label, f"{done}/{len(todo)} runs")

        def after_run(state: "Progress") -> None:
            nonlocal done
            done = state.done
            show_epoch()

        show_epoch()
        run(
            todo,
            comparison,
            graphs={comparison.graph: data},
            executor=used,
            together=False,
            again=keep_models,
            progress=after_run,
            on_epoch=lambda _, record: show_epoch(record.epoch + 1),
            on_fitted=(lambda spec, model: models[spec.label].append(model)) if keep_models else None,
        )
    return {name: fitted for name, fitted in models.items() if fitted}


@command
def report(
    paths: list[Path], out: Path = Path(PAGE), model_card: Path | None = None, include_people: bool = False
) -> Result:
    with working("Writing the report"):
        from fairpass.report import find_evidence, write_model_card, write_report

        evidences = find_evidence(paths)
        if model_card is not None and len(evidences) > 1:
            raise DataError(f"--model-card is about one model (got the evidence of {len(evidences)} audits)")
        if include_people and not any(each.neighbourhoods for each in evidences):
            raise DataError(
                "the evidence has no people to include: collect it again with --include-people (of `fairpass run` or "
                "`fairpass compare`)"
            )
        if model_card is not None and model_card.suffix != ".md":
            raise DataError(f"--model-card must end in .md (got {str(model_card)!r})")
        page = write_report(evidences, out, include_people=include_people)
        if model_card is not None:
            write_model_card(evidences[0], model_card)
    figures = page.with_suffix(".json")
    audits = [{"title": each.title, "chosen": each.chosen, "made": each.made} for each in evidences]
    card = {} if model_card is None else {"model_card": str(model_card)}
    yield {"report": str(page), "figures": str(figures), **card, "audits": audits}
    print_line(f"The report is {page}, and its figures are in {figures}.")
    if model_card is not None:
        print_line(f"The model card is {model_card}.")


def keep(
    data: "Data",
    models: "Mapping[str, Sequence[NodeClassifier]]",
    directory: Path,
    *,
    include_people: bool = False,
    **about: Any,
) -> Path:
    """Write the evidence of fitted models and the page to a directory; return the page. `about` goes to `collect`."""
    with working("Writing the report"):
        from fairpass.report import collect, write_report

        evidence = collect(data, models, include_people=include_people, **about)
        with in_use(directory):  # so that page, figures and evidence are of one command
            evidence.save(directory)
            return write_report([evidence], directory / PAGE, include_people=include_people)
