"""Accuracy against bias: the points of each method, and which of them no other one beats."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairpass.experiments.findings import Finding, Findings
from fairpass.tuning.front import dominated_area, non_dominated


@dataclass(frozen=True)
class Front:
    """What one method can have, with fairness weighed little to much.

    Attributes:
        label: the method.
        points: accuracy and bias of all of its configurations, in percent.
        constant: the indices of those that are near constant.
        best: the indices of the points that no other point beats, near-constant ones apart.
    """

    label: str
    points: tuple[tuple[float, float], ...]
    constant: frozenset[int]
    best: tuple[int, ...]

    def area(self, reference: tuple[float, float]) -> float:
        """Return the area between the front and a reference point."""
        return dominated_area([self.points[i] for i in self.best], reference=reference)


def fronts(findings: Findings, dataset: str, bias: str) -> list[Front]:
    """Return the front of each method in accuracy and one kind of bias, `"DP"` or `"EO"`."""
    found = (
        _front(label, list(findings.of("pareto", dataset, label)), bias) for label in findings.labels("pareto", dataset)
    )
    return [front for front in found if front.points]


def _front(label: str, findings: Sequence[Finding], bias: str) -> Front:
    points = tuple((finding.mean("ACC"), finding.mean(bias)) for finding in findings)
    constant = frozenset(i for i, finding in enumerate(findings) if finding.chosen.is_near_constant)
    informative = [i for i in range(len(points)) if i not in constant]
    best = [informative[i] for i in non_dominated([points[i] for i in informative])]
    return Front(label, points, constant, tuple(sorted(best, key=lambda i: points[i])))


def reference_point(found: Sequence[Front]) -> tuple[float, float]:
    """Return the worst accuracy and the worst bias among all points of all methods."""
    points = [point for front in found for point in front.points]
    return min(accuracy for accuracy, _ in points), max(bias for _, bias in points)
