"""One threshold rule per group: scores become decisions such that a rate is equal between groups."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from fairpass.documents import STRICT, validate
from fairpass.errors import DataError
from fairpass.metrics.inputs import Floats, Integers, Values, as_integers, as_scores, check_seed

Constraint = Literal["demographic_parity", "true_positive_rate_parity", "equalized_odds"]


@dataclass(frozen=True)
class GroupRule:
    r"""How one group's scores become decisions.

    A node with score :math:`s` gets a positive decision with probability

    .. math:: q\, c + (1 - q) \big(p_0 [s > t_0] + p_1 [s > t_1]\big).
    """

    __pydantic_config__ = STRICT

    thresholds: tuple[float, float]  # t_0 and t_1; -1 is below every score, 1 above or at every score
    probabilities: tuple[float, float]  # p_0 and p_1, which sum to 1
    p_ignore: float = 0.0  # q: how often the score is ignored
    prediction_constant: float = 0.0  # c: probability of a positive decision where the score is ignored

    def positive_probability(self, scores: Floats) -> NDArray[np.float64]:
        above = sum(p * (scores > t) for p, t in zip(self.probabilities, self.thresholds, strict=True))
        return np.asarray(self.p_ignore * self.prediction_constant + (1 - self.p_ignore) * above, dtype=np.float64)


@dataclass(frozen=True)
class GroupThresholds:
    """Group-specific thresholds (Hardt et al. 2016, `arXiv:1610.02413 <https://arxiv.org/abs/1610.02413>`_).

    **This treats people of different groups by different standards.** Two people with the same score can get different
    decisions because of their groups. In some places that is unlawful: in the United States, for example, it is
    disparate treatment under credit and hiring law. The group of everybody must be known for every decision.

    The constraint says which rate is equal: the share of positive decisions (`"demographic_parity"`), the same among
    nodes with a positive label (`"true_positive_rate_parity"`), or that and the share among the others
    (`"equalized_odds"`). It is equal on the nodes the thresholds were fitted on, and about equal on similar nodes.
    fairlearn's `ThresholdOptimizer` finds the most accurate such rule. To meet a rate exactly, some decisions must be
    random: most groups have two thresholds, and a node between them is decided by a random draw.
    """

    __pydantic_config__ = STRICT

    constraint: Constraint
    groups: tuple[GroupRule, ...]  # by the index of the group

    @classmethod
    def fit(cls, y: Values, scores: Values, *, sens: Values, constraint: Constraint) -> "GroupThresholds":
        """Return the most accurate rule that meets a constraint on some nodes.

        Args:
            y: Labels `[N]`, 0 and 1; both must occur in every group.
            scores: Probabilities of the positive class `[N]`, or of both `[N, 2]`.
            sens: Groups `[N]`, 0..G-1. Nodes of unknown group (negative) are left out.
            constraint: Which rates are equal between groups.
        """
        from fairlearn.postprocessing import ThresholdOptimizer
        from sklearn.linear_model import LinearRegression

        labels = as_integers(y, "y", labels=True)
        values = _as_probabilities(scores, labels.size)
        groups = as_integers(sens, "sens", labels.size)
        check_groups_have_both_labels(labels, groups)
        known = groups >= 0
        # fairlearn asks for an estimator: this one predicts the score it is given.
        identity = LinearRegression()
        identity.coef_, identity.intercept_ = np.ones(1), 0.0
        fitted = ThresholdOptimizer(
            estimator=identity, constraints=constraint, prefit=True, predict_method="predict"
        ).fit(values[known, None], labels[known], sensitive_features=groups[known])
        found = fitted.interpolated_thresholder_.interpolation_dict
        return cls(constraint, tuple(_rule(found[group]) for group in sorted(found)))

    def positive_probability(self, scores: Values, *, sens: Values) -> NDArray[np.float64]:
        """Return the probability of a positive decision for each node, `[N]`; nan if its group is unknown."""
        values = _as_probabilities(scores)
        groups = as_integers(sens, "sens", values.size)
        if groups.max() >= len(self.groups):
            raise DataError(f"'sens' must be below {len(self.groups)}, the number of groups (got {groups.max()})")
        out = np.full(values.size, np.nan)
        for group, rule in enumerate(self.groups):
            out[groups == group] = rule.positive_probability(values[groups == group])
        return out

    def decide(self, scores: Values, *, sens: Values, seed: int) -> Integers:
        """Return the decision for each node, `[N]`: 1, 0, or -1 if its group is unknown.

        Random decisions are drawn from `seed`, one number per node in their order. So a decision can depend on the
        position of a node, but the same nodes always get the same decisions.
        """
        check_seed(seed)
        probability = self.positive_probability(scores, sens=sens)
        drawn = torch.rand(probability.size, generator=torch.Generator().manual_seed(int(seed)), dtype=torch.float64)
        decided = drawn.numpy() < np.nan_to_num(probability)
        return np.where(np.isnan(probability), -1, decided).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; `from_dict` is the inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "GroupThresholds":
        """Read what `to_dict` returned; raise `ValueError` if it is something else."""
        return validate(dict(values), cls)


def check_groups_have_both_labels(y: Integers, sens: Integers, names: Sequence[str] | None = None) -> None:
    """Raise `DataError` unless every group has nodes of both labels, which its thresholds are found from."""
    if y.max(initial=0) > 1:
        raise DataError(f"'y' must have 2 labels for thresholds per group (got {y.max() + 1})")
    for group, label in product(range(int(sens.max(initial=-1)) + 1), (0, 1)):
        if not (y[sens == group] == label).any():
            lacking = f"got none of label {label} in group {names[group] if names else str(group)!r}"
            raise DataError(f"every group must have nodes of both labels for thresholds per group ({lacking})")


def _as_probabilities(scores: Values, size: int | None = None) -> NDArray[np.float64]:
    values = as_scores(scores, size).astype(np.float64)
    if values.ndim != 1 or values.min() < 0 or values.max() > 1:
        raise DataError("'scores' must be probabilities of the positive class (got more classes, or not in 0..1)")
    return values


def _rule(found: Any) -> GroupRule:
    # JSON cannot hold infinite thresholds; scores are between 0 and 1.
    first, second = (min(max(float(o.threshold), -1.0), 1.0) for o in (found.operation0, found.operation1))
    ignored = (float(found.get(name, 0.0)) for name in ("p_ignore", "prediction_constant"))
    return GroupRule((first, second), (float(found.p0), float(found.p1)), *ignored)
