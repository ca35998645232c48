"""Configurations as points between utility and unfairness, and those of them that no other one beats in both.

All of this looks at the validation nodes only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from fairpass.errors import DataError

if TYPE_CHECKING:
    from fairpass.methods import NodeClassifier

UTILITY, UNFAIRNESS = ("AUC", "F1", "ACC"), ("DP", "EO")


@dataclass(frozen=True)
class Point:
    """One configuration of a method, and how it did: metrics are fractions, means over the seeds.

    Attributes:
        method: name of the method.
        parameters: all of its hyper-parameters.
        training: all training settings but the seed.
        validation: AUC, F1, ACC, DP and EO on the validation nodes; whatever is chosen is chosen by these.
        test: the same on the test nodes, for the reader; None if they have no labels.
        near_constant: whether, with at least half of the seeds, almost every validation node is predicted to be of one
            class.
    """

    method: str
    parameters: Mapping[str, Any]
    training: Mapping[str, Any]
    validation: Mapping[str, float]
    test: Mapping[str, float] | None = None
    near_constant: bool = False

    @property
    def utility(self) -> float:
        """Return the mean of AUC, F1 and ACC."""
        return fmean(self.validation[name] for name in UTILITY)

    @property
    def unfairness(self) -> float:
        """Return the mean of DP and EO."""
        return fmean(self.validation[name] for name in UNFAIRNESS)

    @property
    def selection(self) -> float:
        """Return `AUC + F1 + ACC - DP - EO`, the rule that epochs are selected by, too."""
        return sum(self.validation[name] for name in UTILITY) - sum(self.validation[name] for name in UNFAIRNESS)

    def classifier(self, *, seed: int = 0) -> "NodeClassifier":
        """Return a classifier with this configuration, not fitted."""
        from fairpass.methods import method
        from fairpass.training import Training

        return method(self.method)(**self.parameters, training=Training(**self.training, seed=seed))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; `from_dict` is the inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Point":
        """Rebuild a point from `to_dict`."""
        return cls(**values)


def informative(points: Iterable[Point]) -> list[Point]:
    """Return the points that are not near constant; all of them if there is no other.

    What says the same of everybody is fair and, where one label is common, often right, but it tells nobody
    anything: it must not crowd out those that do.
    """
    points = list(points)
    if not points:
        raise DataError("'points' must hold at least one configuration (got none)")
    return [point for point in points if not point.near_constant] or points


def pareto_front(points: Iterable[Point]) -> list[Point]:
    """Return the informative points that no other one beats, from the most useful to the fairest.

    A point is beaten by one that is no worse in utility and in unfairness, and better in one of them.
    """
    candidates: list[Point] = []
    for point in informative(points):
        if point not in candidates:
            candidates.append(point)
    chosen = non_dominated([(point.utility, point.unfairness) for point in candidates])
    front = [candidates[i] for i in chosen]
    # The order must not depend on that of the points, not even among equals.
    return sorted(front, key=lambda point: (-point.utility, point.unfairness, repr(sorted(point.parameters.items()))))


def non_dominated(pairs: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indices of the pairs (utility, unfairness) that no other one beats."""
    best, kept = float("inf"), set()
    # From the most useful on: each has to be fairer than all before it.
    for pair in sorted(set(pairs), key=lambda pair: (-pair[0], pair[1])):
        if pair[1] < best:
            best = pair[1]
            kept.add(pair)
    return [i for i, pair in enumerate(pairs) if pair in kept]


def hypervolume(points: Iterable[Point], *, reference: tuple[float, float] = (0.0, 1.0)) -> float:
    """Return the area between the front and a reference point; larger is better, and 1 the most by default.

    Args:
        points: of which the informative ones count.
        reference: utility and unfairness that everything is compared with; by default the worst there is.
    """
    return dominated_area([(point.utility, point.unfairness) for point in informative(points)], reference=reference)


def dominated_area(pairs: Iterable[tuple[float, float]], *, reference: tuple[float, float] = (0.0, 1.0)) -> float:
    """Return the area of what is worse than one of the pairs (utility, unfairness), and better than `reference`."""
    worst_utility, worst_unfairness = reference
    area, limit = 0.0, worst_unfairness
    for utility, unfairness in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
        if utility > worst_utility and unfairness < limit:
            area += (utility - worst_utility) * (limit - unfairness)
            limit = unfairness
    return area
