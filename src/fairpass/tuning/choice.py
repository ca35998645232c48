"""Which configuration to take, for users who do not want to look at all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairpass.tuning.front import Point, informative, pareto_front


@dataclass(frozen=True)
class Decision:
    """A configuration, the reason for it in a sentence, and whether it is within the limits that were asked for."""

    point: Point
    reason: str
    met: bool = True


def check_wishes(*, fairness: float | None = None, max_dp: float | None = None, max_eo: float | None = None) -> None:
    """Raise `ValueError` if a wish (see :func:`decide`) is not between 0 and 1, or if `fairness` comes with a limit.

    `fairness` chooses a trade-off, a limit the most useful configuration within it: together they have no clear
    meaning.
    """
    limits = {"max_dp": max_dp, "max_eo": max_eo}
    for name, value in {"fairness": fairness, **limits}.items():
        if value is not None and not 0 <= value <= 1:
            raise ValueError(f"'{name}' must be between 0 and 1 (got {value})")
    for name, limit in limits.items():
        if fairness is not None and limit is not None:
            raise ValueError(f"'fairness' and '{name}' must not be given together (got {fairness} and {limit})")


def choose(points: Sequence[Point], **wishes: float | None) -> Point:
    """Return the configuration to take; see :func:`decide`, which also gives the reason."""
    return decide(points, **wishes).point


def decide(
    points: Sequence[Point], *, fairness: float | None = None, max_dp: float | None = None, max_eo: float | None = None
) -> Decision:
    r"""Return the configuration to take, by the metrics on the validation nodes, and why.

    By default it is the one with the largest `AUC + F1 + ACC - DP - EO`; with limits, the most useful one within them.
    Near-constant configurations are only taken if there are no others.

    Args:
        fairness: how much fairness counts, from 0 to 1: the point of the front with the largest
            :math:`(1 - \text{fairness})\, u - \text{fairness}\, d`, with utility `u` and unfairness `d` scaled to
            [0, 1] over the front. 0 is the most useful point, 1 the fairest. Cannot be combined with limits.
        max_dp: largest DP allowed. If no configuration is within the limits, the nearest is taken.
        max_eo: largest EO allowed.
    """
    check_wishes(fairness=fairness, max_dp=max_dp, max_eo=max_eo)
    limits = {name: value for name, value in (("DP", max_dp), ("EO", max_eo)) if value is not None}
    candidates = informative(points)
    within = [point for point in candidates if not _excess(point, limits)]
    asked = " and ".join(f"{name} of at most {100 * value:.1f} %" for name, value in limits.items())
    if not within:
        point = min(candidates, key=lambda point: (_excess(point, limits), -point.utility))
        has = " and ".join(f"{name} {100 * point.validation[name]:.1f} %" for name in limits)
        reason = f"No configuration has a {asked} on validation: the nearest, with {has}, was taken."
    elif fairness is None and not limits:
        point = max(within, key=lambda point: (point.selection, -point.unfairness))
        reason = "It has the largest AUC + F1 + ACC - DP - EO on validation."
    else:
        point = _weigh(pareto_front(within), fairness or 0.0)
        what = "most useful" if not fairness else "fairest" if fairness == 1 else f"best for fairness {fairness:g}"
        reason = f"It is the {what} on the validation front{f' with a {asked}' if asked else ''}."
    warning = " Beware: it is near constant, as all are." if point.near_constant else ""
    return Decision(point, reason + warning, met=bool(within))


def _weigh(front: Sequence[Point], fairness: float) -> Point:
    """Return the point of a front with the best sum of utility and unfairness, each scaled to [0, 1] over it."""
    # The front goes from the most useful point to the fairest, so its ends are the extremes of both.
    first, last = front[0], front[-1]
    utilities = (first.utility - last.utility) or 1.0
    differences = (first.unfairness - last.unfairness) or 1.0

    def score(point: Point) -> float:
        useful = (point.utility - last.utility) / utilities
        unfair = (point.unfairness - last.unfairness) / differences
        return (1 - fairness) * useful - fairness * unfair

    return max(front, key=score)


def _excess(point: Point, limits: Mapping[str, float]) -> float:
    return sum(max(0.0, point.validation[name] - limit) for name, limit in limits.items())
