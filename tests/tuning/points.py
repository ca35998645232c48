"""Points to choose from."""

from typing import Any

from fairpass.tuning import Point


def point(utility: float, unfairness: float, *, near_constant: bool = False, **parameters: Any) -> Point:
    """Return a point whose three useful metrics are equal, and whose two differences are."""
    metrics = {"AUC": utility, "F1": utility, "ACC": utility, "DP": unfairness, "EO": unfairness}
    return Point("gcn", parameters, validation=metrics, near_constant=near_constant)


def with_gaps(utility: float, dp: float, eo: float) -> Point:
    """Return a point whose two differences are not equal."""
    return Point("gcn", validation={"AUC": utility, "F1": utility, "ACC": utility, "DP": dp, "EO": eo})
