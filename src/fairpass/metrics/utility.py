"""How well a classifier does its job, whatever the groups. Fractions in [0, 1].

Binary problems have a positive class, 1. With more classes every metric is the plain mean over classes of
its one-against-the-rest value (macro), save accuracy. The number of classes is that of `label_names`, else
it is taken from the arrays.
"""

import math
from collections.abc import Sequence

import numpy as np
from sklearn import metrics as sk

from fairpass.metrics.inputs import (
    Undefined,
    Values,
    as_labels,
    as_scores,
    is_defined,
    missing_labels,
    names_of_predicted,
    names_of_scored,
)


def auc(
    y: Values, scores: Values, *, label_names: Sequence[str] | None = None, undefined: Undefined = "error"
) -> float:
    """Area under the ROC curve of `scores`, `[N]` or `[N, C]` (class against rest, mean over classes).

    Hard predictions are refused: they have no ranking to measure. `scores` need not be probabilities.
    """
    labels = as_labels(y)
    values = as_scores(scores, labels.size)
    names = names_of_scored(label_names, labels, values)
    if not is_defined("AUC", missing_labels(labels, names), undefined):
        return math.nan
    if values.ndim == 1:
        return float(sk.roc_auc_score(labels, values))
    # scikit-learn's own multi_class="ovr" is this mean, for probabilities only.
    return float(np.mean([sk.roc_auc_score(labels == c, values[:, c]) for c in range(len(names))]))


def f1(y: Values, pred: Values, *, label_names: Sequence[str] | None = None, undefined: Undefined = "error") -> float:
    """F1 score of the positive class, `2 TP / (2 TP + FP + FN)`; with more classes the mean over classes."""
    labels = as_labels(y)
    decided = as_labels(pred, "pred", labels.size)
    names = names_of_predicted(label_names, labels, decided)
    if not is_defined("F1", missing_labels(labels, names), undefined):
        return math.nan
    average = "binary" if len(names) == 2 else "macro"
    return float(sk.f1_score(labels, decided, average=average, zero_division=0))


def accuracy(y: Values, pred: Values) -> float:
    """Share of nodes whose predicted class is the true one."""
    labels = as_labels(y)
    return float(sk.accuracy_score(labels, as_labels(pred, "pred", labels.size)))


def balanced_accuracy(
    y: Values, pred: Values, *, label_names: Sequence[str] | None = None, undefined: Undefined = "error"
) -> float:
    """Mean over classes of the share recognised: 1/C for a constant classifier, whatever the base rates."""
    labels = as_labels(y)
    decided = as_labels(pred, "pred", labels.size)
    names = names_of_predicted(label_names, labels, decided)
    if not is_defined("balanced accuracy", missing_labels(labels, names), undefined):
        return math.nan
    return float(sk.balanced_accuracy_score(labels, decided))
