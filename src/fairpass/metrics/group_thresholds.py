"""Thresholds for each group: scores become decisions so that a rate is equal between groups."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from fairpass.errors import DataError
from fairpass.metrics.inputs import Floats, Integers, Values, as_groups, as_labels, as_scores

Constraint = Literal["demographic_parity", "true_positive_rate_parity", "equalized_odds"]


@dataclass(frozen=True)
class GroupRule:
    r"""How one group's scores become decisions.

    A node with score :math:`s` is decided positive with the probability

    .. math:: q\, c + (1 - q) \big(p_0 [s > t_0] + p_1 [s > t_1]\big).
    """

    thresholds: tuple[float, float]
    """:math:`t_0` and :math:`t_1`; -1 is below every score, 1 above or at every score."""
    probabilities: tuple[float, float]
    """:math:`p_0` and :math:`p_1`, which sum to 1."""
    p_ignore: float = 0.0
    """:math:`q`: how often the score is ignored."""
    prediction_constant: float = 0.0
    """:math:`c`: probability of a positive decision where the score is ignored."""

    def positive_probability(self, scores: Floats) -> NDArray[np.float64]:
        """Return the probability of a positive decision for scores of this group, `[N]`."""
        above = sum(p * (scores > t) for p, t in zip(self.probabilities, self.thresholds, strict=True))
        return np.asarray(self.p_ignore * self.prediction_constant + (1 - self.p_ignore) * above, dtype=np.float64)


@dataclass(frozen=True)
class GroupThresholds:
    """Group-specific thresholds (Hardt et al. 2016, `arXiv:1610.02413 <https://arxiv.org/abs/1610.02413>`_).

    **This treats people of different groups by different standards.** Two people with the same score can get
    different decisions because they are of different groups. In some places that is unlawful: United States law on
    credit and hiring, for example, knows it as disparate treatment. The group of everybody must be known whenever a
    decision is made.

    Which rate is equal depends on the constraint: the share of positive decisions (`"demographic_parity"`), the
    share of positive decisions among those whose label is positive (`"true_positive_rate_parity"`), or that and the
    share among the others (`"equalized_odds"`). It is equal on the nodes that the thresholds were fitted on, and
    on other nodes as far as these are like them. Among the rules that achieve it, fairlearn's `ThresholdOptimizer`
    finds one of the highest accuracy.

    A rate can be met exactly only if some decisions are drawn at random, so most groups have two thresholds, and a
    node between them is decided by lot.
    """

    constraint: Constraint
    groups: tuple[GroupRule, ...]
    """The rule of each group, by its index."""

    @classmethod
    def fit(cls, y: Values, scores: Values, *, sens: Values, constraint: Constraint) -> "GroupThresholds":
        """Return the most accurate rule that meets a constraint on some nodes.

        Args:
            y: Labels `[N]`, 0 and 1; both must occur in every group.
            scores: Probabilities of the positive class `[N]`, or of both `[N, 2]`.
            sens: Groups `[N]`, 0..G-1. Nodes of unknown group (negative) are left out.
            constraint: Which rates shall be equal between groups.
        """
        from fairlearn.postprocessing import ThresholdOptimizer

        labels = as_labels(y)
        values = _as_probabilities(scores, labels.size)
        groups = as_groups(sens, labels.size)
        check_groups_have_both_labels(labels, groups)
        known = groups >= 0
        optimizer = ThresholdOptimizer(
            estimator=_Scores(), constraints=constraint, prefit=True, predict_method="predict_proba"
        )
        optimizer.fit(values[known, None], labels[known], sensitive_features=groups[known])
        found = optimizer.interpolated_thresholder_.interpolation_dict
        return cls(constraint, tuple(_rule(found[group]) for group in sorted(found)))

    def positive_probability(self, scores: Values, *, sens: Values) -> NDArray[np.float64]:
        """Return the probability with which each node is decided positive, `[N]`; nan if its group is unknown.

        Args:
            scores: Probabilities of the positive class `[N]`, or of both `[N, 2]`.
            sens: Groups `[N]`; negative for unknown.
        """
        values = _as_probabilities(scores, len(scores))  # type: ignore[arg-type] # whatever it is, it has a length
        groups = as_groups(sens, values.size)
        if groups.max() >= len(self.groups):
            raise DataError(f"'sens' must be below {len(self.groups)}, the number of groups (got {groups.max()})")
        out = np.full(values.size, np.nan)
        for group, rule in enumerate(self.groups):
            inside = groups == group
            out[inside] = rule.positive_probability(values[inside])
        return out

    def decide(self, scores: Values, *, sens: Values, seed: int) -> Integers:
        """Return the decision for each node, `[N]`: 1, 0, or -1 if its group is unknown.

        What is left to chance is drawn from `seed`, one number for each node in their order. So a node's decision
        can depend on its place among the nodes, but the same nodes always get the same decisions.

        Args:
            scores: Probabilities of the positive class `[N]`, or of both `[N, 2]`.
            sens: Groups `[N]`; negative for unknown.
            seed: Of the draws.
        """
        probability = self.positive_probability(scores, sens=sens)
        drawn = torch.rand(probability.size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        decided = drawn.numpy() < np.nan_to_num(probability)
        return np.where(np.isnan(probability), -1, decided).astype(np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; `from_dict` is the inverse."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "GroupThresholds":
        """Rebuild the rule from `to_dict`."""
        rules = [
            GroupRule(**{**rule, **{name: tuple(rule[name]) for name in ("thresholds", "probabilities")}})
            for rule in values["groups"]
        ]
        return cls(values["constraint"], tuple(rules))


def check_groups_have_both_labels(y: Integers, sens: Integers, names: Sequence[str] | None = None) -> None:
    """Raise `DataError` unless there are nodes of both labels in every group, which its thresholds are found from."""
    if y.max(initial=0) > 1:
        raise DataError(f"'y' must have 2 labels for thresholds per group (got {y.max() + 1})")
    for group in range(int(sens.max(initial=-1)) + 1):
        inside = y[sens == group]
        for label in (0, 1):
            if not (inside == label).any():
                name = names[group] if names else str(group)
                raise DataError(
                    f"every group must have nodes of both labels for thresholds per group "
                    f"(got none of label {label} in group {name!r})"
                )


class _Scores(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """The scores themselves as an estimator, which is what fairlearn asks for."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, x: Floats, y: Integers) -> "_Scores":
        """Return itself; there is nothing to fit, but without this it is no estimator."""
        return self

    def predict_proba(self, x: Floats) -> Floats:
        """Return the probabilities of both classes."""
        return np.column_stack([1 - x[:, 0], x[:, 0]])


def _as_probabilities(scores: Values, size: int) -> NDArray[np.float64]:
    values = as_scores(scores, size).astype(np.float64)
    if values.ndim != 1 or values.min() < 0 or values.max() > 1:
        raise DataError(
            "'scores' must be probabilities of the positive class (got more classes, or numbers beyond 0..1)"
        )
    return values


def _rule(found: Any) -> GroupRule:
    """Return fairlearn's rule for a group as plain numbers."""
    operations = (found.operation0, found.operation1)
    # Infinite thresholds have no place in JSON; scores are between 0 and 1.
    first, second = (min(max(float(operation.threshold), -1.0), 1.0) for operation in operations)
    return GroupRule(
        (first, second),
        (float(found.p0), float(found.p1)),
        float(found.get("p_ignore", 0.0)),
        float(found.get("prediction_constant", 0.0)),
    )
