"""The configurations that tuning tried, as the page's trade-off chart needs them."""

from collections.abc import Sequence
from typing import Any

from fairpass.methods import NodeClassifier
from fairpass.report.measures import finite
from fairpass.tuning import Point, pareto_front


def described(points: Sequence[Point], chosen: NodeClassifier) -> list[dict[str, Any]]:
    """Return the points with their utility and unfairness on validation, the front and the chosen one marked."""
    front = pareto_front(points) if points else []
    made = [
        {
            **point.to_dict(),
            "utility": point.utility,
            "unfairness": point.unfairness,
            "front": point in front,
            "chosen": _is(point, chosen),
        }
        for point in points
    ]
    plain: list[dict[str, Any]] = finite(made)
    return plain


def _is(point: Point, model: NodeClassifier) -> bool:
    """Return whether a model was made from a point: it has all of its settings."""
    parameters, training = finite(model.hyperparameters), finite(model.training.to_dict())
    return (
        point.method == model.name
        and all(parameters.get(name) == value for name, value in finite(dict(point.parameters)).items())
        and all(training.get(name) == value for name, value in finite(dict(point.training)).items())
    )
