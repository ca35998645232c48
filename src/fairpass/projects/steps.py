"""The steps of a project, each from files to files."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from fairpass.datasets import describe, find_bias
from fairpass.datasets.graph_gain import graph_gain
from fairpass.methods import Constant, Logistic, NodeClassifier, load_model
from fairpass.projects.predictions import prediction_table, write_table
from fairpass.projects.workspace import Workspace
from fairpass.runs import Comparison, RunRecord, fit_all, tradeoff
from fairpass.training import EpochRecord, fingerprint
from fairpass.tuning import Budget, Point, Progress, Tuned, decide, tune


@dataclass(frozen=True)
class Step:
    """One step: what it is called, what it builds on, and what makes its files."""

    name: str
    title: str
    needs: tuple[str, ...]
    sections: tuple[str, ...]
    """Of the configuration: those that its result depends on."""
    run: Callable[[Workspace], Sequence[str]]
    """Makes its files, and returns their names."""


def _load(space: Workspace) -> Sequence[str]:
    data = space.data
    known = [(data.sens == group) for group in range(len(data.group_names))]
    document = {
        "fingerprint": fingerprint(data),
        "nodes": data.num_nodes,
        "edges": data.edge_index.shape[1] // 2,
        "features": list(data.feature_names),
        "labels": {name: int((data.y == label).sum()) for label, name in enumerate(data.label_names)},
        "unlabelled": int((data.y < 0).sum()),
        "groups": {name: int(of_group.sum()) for name, of_group in zip(data.group_names, known, strict=True)},
        "unknown_group": int((data.sens < 0).sum()),
        "split": {part: int(data[f"{part}_mask"].sum()) for part in ("train", "val", "test")},
        "provenance": data.provenance,
    }
    return [space.write("data.json", document)]


def _audit(space: Workspace) -> Sequence[str]:
    statistics = describe(space.data, leakage_auc=True)
    findings = [finding.to_dict() for finding in find_bias(statistics)]
    document = {
        "statistics": statistics.to_dict(),
        "findings": findings,
        "graph_gain": graph_gain(space.data).to_dict(),
    }
    return [space.write("audit.json", document)]


def _tune(space: Workspace) -> Sequence[str]:
    wanted, written = space.config.tuning, []
    whole = Budget.of(wanted.budget)
    seconds = None if whole.seconds is None else whole.seconds / len(wanted.methods)
    for number, name in enumerate(wanted.methods):

        def show(progress: Progress, number: int = number, name: str = name) -> None:
            done = (number + progress.fraction) / len(wanted.methods)
            space.show(done, f"{name}, {progress.finished} configurations tried")

        tuned = tune(
            space.data,
            name,
            budget=dataclasses.replace(whole, seconds=seconds),
            storage=space.path("tuning.db"),
            seeds=wanted.seeds,
            fixed=wanted.fixed(name),
            strategy="motpe",
            callback=show,
        )
        tuned.save(space.path(f"tuning-{name}.json"))
        written.append(f"tuning-{name}.json")
    return written


def _points(space: Workspace) -> list[Point]:
    files = [space.path(f"tuning-{name}.json") for name in space.config.tuning.methods]
    return [point for file in files for point in Tuned.load(file).points]


def _train(space: Workspace) -> Sequence[str]:
    config, points = space.config, _points(space)
    decision = decide(points, **dataclasses.asdict(config.choice))
    chosen, reference = decision.point.method, config.training.reference
    plain = f"{reference}, not tuned" if reference == chosen else reference
    seeds = range(config.training.seeds)
    planned: dict[str, list[NodeClassifier]] = {
        Constant.name: [Constant(training=Constant.default_training().but(seed=seed)) for seed in seeds],
        plain: [space.plain(reference, seed) for seed in seeds],
        # Without a graph, and often hard to beat.
        Logistic.name: [space.plain(Logistic.name, seed) for seed in seeds],
        chosen: [decision.point.classifier(seed=seed) for seed in seeds],
    }
    stems = {Constant.name: "constant", Logistic.name: "logistic", plain: "reference", chosen: "chosen"}
    files = {name: [_model_file(stems[name], each) for each in planned[name]] for name in planned}
    todo = [
        (classifier, file)
        for name, each in planned.items()
        for classifier, file in zip(each, files[name], strict=True)
        if not (space.resuming and _is_stored(classifier, file, space))
    ]
    _fit(todo, space)
    load_model(space.path(files[chosen][0])).save(space.path("model.safetensors"))
    asked = {name: value for name, value in dataclasses.asdict(config.choice).items() if value is not None}
    document = {
        "chosen": chosen,
        "reference": plain,
        "asked": asked,
        "reason": decision.reason,
        "met": decision.met,
        "tried": len(points),
        "point": decision.point.to_dict(),
        "models": files,
    }
    return [space.write("models.json", document), "model.safetensors", *chain(*files.values())]


def _model_file(stem: str, classifier: NodeClassifier) -> str:
    return f"models/{stem}-{classifier.training.seed}.safetensors"


def _is_stored(classifier: NodeClassifier, file: str, space: Workspace) -> bool:
    """Return whether an interrupted run has left this very classifier, fitted to this very graph."""
    path = space.path(file)
    if not path.is_file():
        return False
    try:
        stored = load_model(path)
    except ValueError:
        return False
    same = stored.name == classifier.name and stored.get_params(deep=False) == classifier.get_params(deep=False)
    return same and stored.provenance_ == space.data.provenance


def _fit(todo: Sequence[tuple[NodeClassifier, str]], space: Workspace) -> None:
    """Fit and store the classifiers, those of one method together."""
    by_method: dict[str, list[tuple[NodeClassifier, str]]] = {}
    for classifier, file in todo:
        by_method.setdefault(file.rpartition("-")[0], []).append((classifier, file))
    epochs = sum(classifier.training.epochs for classifier, _ in todo)
    done = 0

    def show(_: int, record: EpochRecord) -> None:
        nonlocal done
        done += 1
        space.show(done / epochs, f"epoch {record.epoch + 1}")

    for group in by_method.values():
        errors = fit_all([classifier for classifier, _ in group], space.data, callback=show)
        for (classifier, file), error in zip(group, errors, strict=True):
            if error is not None:
                raise error
            classifier.save(space.path(file))


def _evaluate(space: Workspace) -> Sequence[str]:
    models = space.models()
    comparison = Comparison.of({name: each[0] for name, each in models.items()}, space.data)
    for name, each in models.items():
        for model in each:
            evaluation = model.evaluate(space.data, undefined="nan")
            comparison.add(RunRecord(name, model.training.seed, 0.0, evaluation))
    comparison.save(space.path("evaluation.json"))
    return ["evaluation.json"]


def cost(space: Workspace) -> str:
    """Return in a sentence for each plain model what the chosen one gains in fairness over it, and what it pays."""
    about, comparison = space.read("models.json"), Comparison.load(space.path("evaluation.json"))
    chosen = about["chosen"]
    plain = [name for name in about["models"] if name not in (Constant.name, chosen)]
    return " ".join(tradeoff(comparison.row(name), comparison.row(chosen)) for name in plain)


def _report(space: Workspace) -> Sequence[str]:
    from fairpass.report.collect import collect
    from fairpass.report.page import write_report

    about = space.read("models.json")
    evidence = collect(
        space.data,
        space.models(),
        title=space.config.name,
        question=space.config.question,
        chosen=about["chosen"],
        points=_points(space),
        choice=f"{about['tried']} settings were tried. {about['reason']}",
    )
    evidence.save(space.path("evidence.json"))
    write_report([evidence], space.path("report.html"))
    return ["evidence.json", "report.html"]


def _predict(space: Workspace) -> Sequence[str]:
    name = f"predictions.{space.config.predictions.format}"
    write_table(prediction_table(load_model(space.path("model.safetensors")), space.data), space.path(name))
    return [name]


_GRAPH = ("data", "groups", "features", "split")

STEPS: Mapping[str, Step] = {
    step.name: step
    for step in (
        Step("load", "Reading the tables", (), _GRAPH, _load),
        Step("audit", "Looking for bias in the data", ("load",), (), _audit),
        Step("tune", "Searching for good settings", ("load",), ("tuning",), _tune),
        Step("train", "Training", ("tune",), ("choice", "training"), _train),
        Step("evaluate", "Measuring on the test nodes", ("train",), (), _evaluate),
        Step("report", "Writing the report", ("evaluate",), ("name", "question"), _report),
        Step("predict", "Predicting", ("train",), ("predictions",), _predict),
    )
}
