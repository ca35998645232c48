"""The steps of a project; each reads files of the run directory and writes others."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Self

import torch
from pydantic import AfterValidator, Field, model_validator
from torch_geometric.data import Data

from fairpass.datasets import describe, find_bias
from fairpass.datasets.graph import Floats, part_sizes
from fairpass.datasets.graph_gain import graph_gain
from fairpass.documents import Count, Stored, Values
from fairpass.methods import Constant, Logistic, NodeClassifier, load_model
from fairpass.metrics import Interval
from fairpass.metrics.promise import Promise
from fairpass.projects.delivery import FOLDS, Delivery, deliver
from fairpass.projects.predictions import prediction_table, write_table
from fairpass.runs import Comparison, RunRecord, fit_all, tradeoff
from fairpass.training import EpochRecord, Task, Training, fingerprint
from fairpass.tuning import Budget, Point, Progress, Tuned, decide, tune

if TYPE_CHECKING:
    from fairpass.projects.pipeline import Workspace


@dataclass(frozen=True)
class Step:
    """A step: the steps and the settings (sections, or keys of them) it depends on, and what makes its files."""

    name: str
    title: str
    needs: tuple[str, ...]
    sections: tuple[str, ...]
    run: Callable[["Workspace"], Sequence[str]]  # makes the files and returns their names


def _readable(promise: Values) -> Values:
    Promise.from_dict(promise)
    return promise


TRAINED, _LOSSES = "models.json", "losses.json"


class Trained(Stored, extra="ignore"):
    """What is in `models.json`: the choice, and the files of all models by name."""

    chosen: str
    reference: str
    reason: str
    met: bool
    tried: Count
    models: dict[str, Annotated[list[str], Field(min_length=1)]]
    promise: Annotated[Values, AfterValidator(_readable)] | None

    @model_validator(mode="after")
    def _has_models(self) -> Self:
        if self.chosen not in self.models:
            raise ValueError(f"there is no model of {self.chosen!r}")
        return self


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
        "split": part_sizes(data),
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


def _plain(space: "Workspace") -> list[str]:
    """Return the methods without fairness to compare with; logistic regression has no graph and is hard to beat."""
    return list(dict.fromkeys([space.config.training.reference, Logistic.name]))


def _tune(space: "Workspace") -> Sequence[str]:
    wanted = space.config.tuning
    searches = [(name, False) for name in wanted.methods] + [(name, True) for name in _plain(space)]
    for number, (name, plain) in enumerate(searches):

        def show(progress: Progress, number: int = number, name: str = name) -> None:
            words = f"{name}, configurations tried: {progress.finished}"
            space.show((number + progress.fraction) / len(searches), words)

        tuned = _search(space, space.data, name, plain=plain, share=1 / len(searches), callback=show)
        tuned.save(space.path(_tuned_file(name, plain=plain)))
    return [_tuned_file(name, plain=plain) for name, plain in searches]


def _tuned_file(name: str, *, plain: bool = False) -> str:
    return f"tuning-{name}{'-plain' if plain else ''}.json"


def _search(space: "Workspace", data: Data, name: str, *, plain: bool = False, share: float, **options: Any) -> Tuned:
    """Search for configurations of a method on a graph, with a share of the time."""
    wanted = space.config.tuning
    budget = Budget.of(wanted.budget)
    if budget.seconds is not None:
        budget = replace(budget, seconds=budget.seconds * share)
    common: dict[str, Any] = {"storage": space.path("tuning.db"), "seeds": wanted.seeds, "strategy": "motpe"}
    return tune(data, name, budget=budget, fixed=wanted.fixed(name, plain=plain), **common, **options)


def _points(space: "Workspace") -> list[Point]:
    files = [space.path(_tuned_file(name)) for name in space.config.tuning.methods]
    return [point for file in files for point in Tuned.load(file).points]


def _deliver(space: "Workspace") -> Delivery:
    """Choose the configuration to deliver and, if a limit was asked for, check it."""
    names, choice = space.config.tuning.methods, space.config.choice

    def fit(point: Point, data: Data) -> NodeClassifier:
        space.show(0.0, "training a candidate for the check")
        return point.classifier(seed=0).fit(data)

    def search(data: Data, number: int) -> list[Point]:
        space.show(0.0, f"searching again without fold {number + 1} of {FOLDS}")
        found = [_search(space, data, name, share=1 / (FOLDS * len(names))) for name in names]
        return [point for tuned in found for point in tuned.points]

    return deliver(
        space.data,
        _points(space),
        fit=fit,
        search=search,
        limits=choice.limits,
        confidence=choice.confidence,
        check=choice.check,
        fairness=choice.fairness,
    )


def _train(space: "Workspace") -> Sequence[str]:
    delivery = _deliver(space)
    chosen = delivery.decision.point.method
    points: dict[str, Point] = {}
    for name in [name for name in _plain(space) if name != Logistic.name or name != chosen]:
        tuned = Tuned.load(space.path(_tuned_file(name, plain=True)))
        points[f"{name}, plain" if name == chosen else name] = decide(tuned.points, fairness=0.0).point
    points[chosen] = delivery.decision.point
    stems = {Constant.name: "constant", **dict(zip(points, ("reference", "logistic"), strict=False)), chosen: "chosen"}
    seeds = range(space.config.training.seeds)
    files = {name: [f"models/{stem}-{seed}.safetensors" for seed in seeds] for name, stem in stems.items()}

    def classifier(name: str, seed: int) -> NodeClassifier:
        return (
            points[name].classifier(seed=seed) if name in points else Constant(training=Training(epochs=1, seed=seed))
        )

    planned = {file: classifier(name, seed) for name in files for seed, file in enumerate(files[name])}
    delivered = files[chosen][0]
    if delivery.model is not None:  # the model that was checked, to the last bit
        delivery.model.save(space.path(delivered))
    stored = [file for file, each in planned.items() if space.resuming and _is_stored(each, file, space)]
    stored += [delivered] if delivery.model is not None else []
    _fit({file: each for file, each in planned.items() if file not in stored}, space)
    model = load_model(space.path(delivered))
    if delivery.promise is not None:
        model.mark(delivery.promise)
    model.save(space.path("model.safetensors"))
    document = {
        "chosen": chosen,
        "reference": next(iter(points)),
        "asked": {name: value for name, value in space.config.choice.model_dump().items() if value is not None},
        "reason": delivery.decision.reason,
        "met": delivery.decision.met,
        "tried": len(_points(space)),
        "point": delivery.decision.point.to_dict(),
        "models": files,
        "promise": None if delivery.promise is None else delivery.promise.to_dict(),
    }
    return [space.write(TRAINED, document), "model.safetensors", *planned]


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
    correct = {name: _correct(each, space.data) for name, each in models.items()}
    chosen = correct[space.trained.chosen]
    losses = {name: asdict(_mean_interval(each - chosen)) for name, each in correct.items()}
    return ["evaluation.json", space.write(_LOSSES, losses)]


def _correct(models: Sequence[NodeClassifier], data: Data) -> Floats:
    """Return for each test node how many of the models are right, as a share."""
    nodes = Task(data).nodes("test")
    right = [(model.predict(data)[nodes] == data.y[nodes]).double() for model in models]
    share: Floats = torch.stack(right).mean(0).numpy()
    return share


def _mean_interval(values: Floats) -> Interval:
    """Return a 95 % interval of the mean over people of whom these are a sample."""
    margin = 1.96 * values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Interval(float(values.mean() - margin), float(values.mean() + margin))


def cost(space: "Workspace") -> str:
    """Return a sentence for each plain model: what the chosen one gains in fairness over it, and at which cost."""
    about, comparison = space.trained, Comparison.load(space.path("evaluation.json"))
    losses, chosen = space.read(_LOSSES, dict[str, Interval]), about.chosen
    plain = [name for name in about.models if name not in (Constant.name, chosen)]
    return " ".join(tradeoff(comparison.row(name), comparison.row(chosen), losses[name]) for name in plain)


def _report(space: "Workspace") -> Sequence[str]:
    from fairpass.report import collect, write_model_card, write_report

    about, asked = space.trained, space.config.report
    evidence = collect(
        space.data,
        space.models(),
        title=space.config.name,
        question=space.config.question,
        chosen=about.chosen,
        points=_points(space),
        choice=f"{about.tried} settings were tried. {about.reason}",
        promise=about.promise,
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
        Step("tune", "Searching for good settings", ("load",), ("tuning", "training.reference"), _tune),
        Step("train", "Training, and checking limits", ("tune",), ("choice", "training"), _train),
        Step("evaluate", "Measuring on the test nodes", ("train",), (), _evaluate),
        Step("report", "Writing the report", ("evaluate",), ("name", "question", "report"), _report),
        Step("predict", "Predicting", ("train",), ("predictions",), _predict),
    )
}
