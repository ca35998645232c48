"""`fairpass train` and `fairpass methods`: fit a method to a graph and evaluate it, and list the methods."""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from rich.text import Text

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.options import Result, TrainingOptions, command, parse_parameters
from fairpass.cli.output import STARTING, bar, in_short, note, print_line, section, table, working
from fairpass.cli.results import show_evaluation, title_of
from fairpass.cli.train_source import check_options, explained_to_parent, opened, start_workers
from fairpass.documents import write_document
from fairpass.files import finite, write_text
from fairpass.locks import in_use

if TYPE_CHECKING:
    from fairpass.training import EpochRecord

MODEL, EVALUATION, HISTORY = "model.safetensors", "evaluation.json", "history.json"
CHECKPOINT = "checkpoint.safetensors"
GROUPS_NEEDED = {"never": "never", "training": "in training", "prediction": "at prediction"}


@command
def train(
    graph: GraphOptions,
    training: TrainingOptions,
    method: str = "gmmd",
    settings: list[str] | None = None,
    seed: int = 0,
    out: Path | None = None,
    track: list[str] | None = None,
    workers: int | None = None,
) -> Result:
    check_options(graph, workers, track or ())
    with working(STARTING):
        from fairpass import methods
        from fairpass.distributed.processes import is_worker
        from fairpass.training.tracking import open_tracker

    found = methods.method(method)
    parameters = parse_parameters(found, settings or ())
    chosen = training.applied_to(found(**parameters).training).but(seed=seed)
    model = found(**parameters, training=chosen)
    with ExitStack() as stack:
        if out is not None and not is_worker():
            # Until all files are written: those of two trainings would be mixed.
            stack.enter_context(in_use(out))
        if graph.parts is not None and not is_worker():
            start_workers(graph.parts, workers, model)
            return
        stack.enter_context(explained_to_parent())
        trackers = [stack.enter_context(open_tracker(each)) for each in track or ()]
        source = stack.enter_context(opened(graph, model))
        for tracker in trackers:
            tracker.start(model, source.data)  # only a whole graph is tracked
        checkpoint = None if out is None else out / CHECKPOINT
        if checkpoint is not None and checkpoint.exists():
            note(f"Continuing the interrupted training in {out}")
        start = time.perf_counter()
        with bar(chosen.epochs, out) as show:

            def show_epoch(record: "EpochRecord") -> None:
                done = record.epoch + 1
                show(done, method, f"{done}/{chosen.epochs} loss {record.loss:.3f} {in_short(record.metrics)}")

            to = None if out is None else out / MODEL
            source.fit(model, [show_epoch, *trackers], checkpoint, to)
        seconds = time.perf_counter() - start
        if out is not None and source.is_first:
            # A diverged training ends with nan, which JSON does not have.
            write_text(out / HISTORY, json.dumps([finite(record.flat()) for record in model.history_], indent=1))
        evaluation, counts = source.evaluate(model), source.label_counts()
        for tracker in trackers:
            tracker.finish(evaluation)
        document = {
            "method": method,
            "parameters": model.hyperparameters,
            "training": chosen.to_dict(),
            "epoch": model.epoch_,
            "epochs": len(model.history_),
            "seconds": seconds,
            "split": "test",
            "evaluation": evaluation.to_dict(),
            "provenance": source.provenance,
        }
        if model.chosen_ is not None:
            document |= {"chosen": model.chosen_, "candidates": model.candidates_}
        if out is not None and source.is_first:
            write_document(out / EVALUATION, document)
    if not source.is_first:
        return
    yield document
    show_evaluation(f"{method} on {title_of(source)}", evaluation, "test", counts, source.label_names)
    print_line(f"\n{len(model.history_):,} epochs in {seconds:.1f} s; validation chose epoch {model.epoch_:,}.")
    if model.chosen_ is not None:
        preferred = [f"{name} {value}" for name, value in model.chosen_.items() if value != model.hyperparameters[name]]
        print_line(f"Among {len(model.candidates_)} candidates validation chose {', '.join(preferred)}.")
    if out is not None:
        print_line(f"{MODEL}, {EVALUATION} and {HISTORY} are in {out}.")


@command
def methods() -> Result:
    with working(STARTING):
        from fairpass.methods import method, names
        from fairpass.methods.estimator import Stage

        found = {name: method(name) for name in names()}
    yield [
        {
            "name": name,
            "summary": each.summary,
            "stage": each.stage,
            "needs_groups": each.needs_groups,
            "takes_two": list(each.takes_two),
            "control": dict(each.switched_off),
            "parameters": {key: declared.default for key, declared in each.declared.items() if key != "training"},
            "training": each.default_training().to_dict(),
        }
        for name, each in found.items()
    ]
    columns = ("method", "idea", "groups needed")
    for stage in get_args(Stage):
        lines = [
            (Text(name, "bold"), Text(each.summary), GROUPS_NEEDED[each.needs_groups])
            for name, each in found.items()
            if each.stage == stage
        ]
        if lines:
            section(stage.capitalize(), table(columns, lines, words=columns))
