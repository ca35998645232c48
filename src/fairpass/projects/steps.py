"""The steps of a project; each reads files of the run directory and writes others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from fairpass.datasets import describe, find_bias
from fairpass.datasets.graph_gain import graph_gain
from fairpass.methods import Constant, Logistic, NodeClassifier, load_model, method
from fairpass.projects.predictions import prediction_table, write_table
from fairpass.runs import Comparison, RunRecord, fit_all, tradeoff
from fairpass.training import EpochRecord, fingerprint
from fairpass.tuning import Budget, Point, Progress, Tuned, decide, tune

if TYPE_CHECKING:
    from fairpass.projects.pipeline import Workspace


@dataclass(frozen=True)
class Step:
    """A step: the steps and the sections of the settings file that its result depends on, and what makes its files."""

    name: str
    title: str
    needs: tuple[str, ...]
    sections: tuple[str, ...]
    run: Callable[["Workspace"], Sequence[str]]  # makes the files and returns their names


def _load(space: "Workspace") -> Sequence[str]:
    data = space.data
    document = {
        "fingerprint": fingerprint(data),
        "nodes": data.num_nodes,
        "edges": data.edge_index.shape[1] // 2,
        "features": list(data.feature_names),
        "labels": {name: int((data.y == label).sum()) for label, name in enumerate(data.label_names)},
        "unlabelled": int((data.y < 0).sum()),
        "groups": {name: int((data.sens == group).sum()) for group, name in enumerate(data.group_names)},
        "unknown_group": int((data.sens < 0).sum()),
        "split": {part: int(data[f"{part}_mask"].sum()) for part in ("train", "val", "test")},
        "provenance": data.provenance,
    }
    return [space.write("data.json", document)]


def _audit(space: "Workspace") -> Sequence[str]:
    statistics = describe(space.data, leakage_auc=True)
    document = {
        "statistics": statistics.to_dict(),
        "findings": [finding.to_dict() for finding in find_bias(statistics)],
        "graph_gain": graph_gain(space.data).to_dict(),
    }
    return [space.write("audit.json", document)]


def _tune(space: "Workspace") -> Sequence[str]:
    wanted = space.config.tuning
    whole, share = Budget.of(wanted.budget), 1 / len(wanted.methods)
    budget = whole if whole.seconds is None else replace(whole, seconds=whole.seconds * share)
    common: dict[str, Any] = {"storage": space.path("tuning.db"), "seeds": wanted.seeds, "strategy": "motpe"}
    for number, name in enumerate(wanted.methods):

        def show(progress: Progress, number: int = number, name: str = name) -> None:
            space.show((number + progress.fraction) * share, f"{name}, {progress.finished} configurations tried")

        tuned = tune(space.data, name, budget=budget, fixed=wanted.fixed(name), callback=show, **common)
        tuned.save(space.path(f"tuning-{name}.json"))
    return [f"tuning-{name}.json" for name in wanted.methods]


def _points(space: "Workspace") -> list[Point]:
    files = [space.path(f"tuning-{name}.json") for name in space.config.tuning.methods]
    return [point for file in files for point in Tuned.load(file).points]


def _train(space: "Workspace") -> Sequence[str]:
    points, wishes, wanted = _points(space), space.config.choice.model_dump(), space.config.training
    decision = decide(points, **wishes)
    chosen = decision.point.method
    reference = f"{wanted.reference}, not tuned" if wanted.reference == chosen else wanted.reference
    # Logistic regression has no graph and is often hard to beat. A later entry replaces one with the same name.
    stems = {Constant.name: "constant", reference: "reference", Logistic.name: "logistic", chosen: "chosen"}
    seeds = range(wanted.seeds)
    files = {name: [f"models/{stem}-{seed}.safetensors" for seed in seeds] for name, stem in stems.items()}

    def classifier(name: str, seed: int) -> NodeClassifier:
        if name == chosen:
            return decision.point.classifier(seed=seed)
        kind = method(wanted.reference if name == reference else name)
        # At its last epoch: a plain classifier that validation selects would be a little fair.
        training = kind.default_training().but(seed=seed, select="last")
        return kind(training=training if training.epochs == 1 else training.but(epochs=space.config.tuning.epochs))

    planned = {file: classifier(name, seed) for name in files for seed, file in enumerate(files[name])}
    stored = [file for file, each in planned.items() if space.resuming and _is_stored(each, file, space)]
    _fit({file: each for file, each in planned.items() if file not in stored}, space)
    load_model(space.path(files[chosen][0])).save(space.path("model.safetensors"))
    document = {
        "chosen": chosen,
        "reference": reference,
        "asked": {name: value for name, value in wishes.items() if value is not None},
        "reason": decision.reason,
        "met": decision.met,
        "tried": len(points),
        "point": decision.point.to_dict(),
        "models": files,
    }
    return [space.write("models.json", document), "model.safetensors", *planned]


def _is_stored(classifier: NodeClassifier, file: str, space: "Workspace") -> bool:
    try:
        stored = load_model(space.path(file))
    except (OSError, ValueError):
        return False
    same = stored.name == classifier.name and stored.get_params(deep=False) == classifier.get_params(deep=False)
    return same and stored.provenance_ == space.data.provenance


def _fit(planned: Mapping[str, NodeClassifier], space: "Workspace") -> None:
    epochs, done = sum(each.training.epochs for each in planned.values()), 0

    def show(_: int, record: EpochRecord) -> None:
        nonlocal done
        done += 1
        space.show(done / epochs, f"epoch {record.epoch + 1}")

    for _, group in groupby(planned, lambda file: file.rpartition("-")[0]):
        files = list(group)
        errors = fit_all([planned[file] for file in files], space.data, callback=show)
        for file, error in zip(files, errors, strict=True):
            if error is not None:
                raise error
            planned[file].save(space.path(file))


def _evaluate(space: "Workspace") -> Sequence[str]:
    models = space.models()
    comparison = Comparison.of({name: each[0] for name, each in models.items()}, space.data)
    for name, each in models.items():
        for model in each:
            comparison.add(RunRecord(name, model.training.seed, 0.0, model.evaluate(space.data, undefined="nan")))
    comparison.save(space.path("evaluation.json"))
    return ["evaluation.json"]


def cost(space: "Workspace") -> str:
    """Return a sentence for each plain model: what the chosen one gains in fairness over it, and at which cost."""
    about, comparison = space.read("models.json"), Comparison.load(space.path("evaluation.json"))
    chosen = about["chosen"]
    rows = [comparison.row(name) for name in about["models"] if name not in (Constant.name, chosen)]
    return " ".join(tradeoff(row, comparison.row(chosen)) for row in rows)


def _report(space: "Workspace") -> Sequence[str]:
    from fairpass.report import collect, write_model_card, write_report

    about, asked = space.read("models.json"), space.config.report
    evidence = collect(
        space.data,
        space.models(),
        title=space.config.name,
        question=space.config.question,
        chosen=about["chosen"],
        points=_points(space),
        choice=f"{about['tried']} settings were tried. {about['reason']}",
        identity=asked.identity,
        model_file=space.path("model.safetensors"),
        favourable=asked.favourable,
        min_group=asked.min_group,
        include_people=asked.include_people,
    )
    evidence.save(space.path("evidence.json"))
    write_report([evidence], space.path("report.html"), include_people=asked.include_people)
    write_model_card(evidence, space.path("model-card.md"))
    return ["evidence.json", "report.html", "report.json", "model-card.md"]


def _predict(space: "Workspace") -> Sequence[str]:
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
        Step("report", "Writing the report", ("evaluate",), ("name", "question", "report"), _report),
        Step("predict", "Predicting", ("train",), ("predictions",), _predict),
    )
}
