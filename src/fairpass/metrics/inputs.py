"""What every metric accepts, checked once and in one place: tensors or arrays in, numpy arrays out."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import UndefinedMetricWarning
from torch import Tensor

from fairpass.errors import DataError

Values = Tensor | ArrayLike
Integers = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Undefined = Literal["error", "nan"]


def as_array(values: Values) -> NDArray[Any]:
    """View a tensor (of any device) or anything array-like as a numpy array."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        # numpy has no bfloat16
        return values.float().numpy() if values.is_floating_point() and values.element_size() < 4 else values.numpy()
    return np.asarray(values)


def _as_integers(values: Values, name: str, size: int | None) -> Integers:
    array = as_array(values)
    if array.dtype.kind not in "biu":
        raise DataError(f"'{name}' must hold integers (got {array.dtype})")
    if array.ndim != 1 or array.size == 0 or (size is not None and array.size != size):
        expected = "[N] with N > 0" if size is None else f"[{size}], one for each node"
        raise DataError(f"'{name}' must have shape {expected} (got {list(array.shape)})")
    return array.astype(np.int64, copy=False)


def as_labels(values: Values, name: str = "y", size: int | None = None) -> Integers:
    """Check class indices, 0..C-1; an unlabelled node (-1) has no place in a metric."""
    labels = _as_integers(values, name, size)
    negative = int((labels < 0).sum())
    if negative:
        raise DataError(f"'{name}' must not hold unlabelled nodes, pass the labelled ones (got {negative} below 0)")
    return labels


def as_groups(values: Values, size: int) -> Integers:
    """Check group indices, 0..G-1; any negative value stands for an unknown group."""
    return _as_integers(values, "sens", size)


def as_scores(values: Values, size: int) -> Floats:
    """Check scores: `[N]` for the positive class, or `[N, C]` with C > 2.

    `[N, 2]` becomes its second column. It must hold probabilities: two logits do not compare to a threshold.
    """
    scores = as_array(values)
    if scores.dtype.kind != "f":
        raise DataError(f"'scores' must hold floating-point numbers, not hard predictions (got {scores.dtype})")
    if scores.ndim not in {1, 2} or len(scores) != size or 0 in scores.shape:
        raise DataError(f"'scores' must have shape [{size}] or [{size}, C] (got {list(scores.shape)})")
    bad = int((~np.isfinite(scores)).sum())
    if bad:
        raise DataError(f"'scores' must be finite (got {bad} NaN or infinite)")
    if scores.ndim == 2 and scores.shape[1] == 2:
        if not np.allclose(scores.sum(axis=1), 1, atol=1e-3):
            raise DataError("'scores' of shape [N, 2] must be probabilities (got rows that do not sum to 1)")
        return scores[:, 1]
    return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores


def predict(scores: Floats, threshold: float) -> Integers:
    """Turn checked scores into classes: `score > threshold`, or the class of the largest score."""
    if not np.isfinite(threshold):
        raise DataError(f"'threshold' must be finite (got {threshold})")
    # A Python float adapts to the dtype of the scores, as it does in torch: both must decide a tie alike.
    decided = scores > float(threshold) if scores.ndim == 1 else scores.argmax(axis=1)
    return decided.astype(np.int64)


def as_decisions(values: Values, size: int, num_classes: int) -> Integers:
    """Check classes that were decided otherwise than by a threshold, 0..C-1."""
    decisions = as_labels(values, "decisions", size)
    if decisions.max() >= num_classes:
        raise DataError(f"'decisions' must be below {num_classes}, the number of classes (got {decisions.max()})")
    return decisions


def as_names(names: Sequence[str] | None, argument: str, indices: Integers, at_least: int = 0) -> tuple[str, ...]:
    """Return one name for each index; without names, the indices themselves name what they count."""
    highest = int(indices.max(initial=-1))
    if names is None:
        return tuple(str(index) for index in range(max(highest + 1, at_least)))
    if highest >= len(names):
        raise DataError(f"'{argument}' must name every index up to {highest} (got {len(names)} names)")
    if len(set(names)) < len(names):
        raise DataError(f"'{argument}' must be distinct (got {list(names)})")
    return tuple(str(name) for name in names)


def names_of_predicted(names: Sequence[str] | None, y: Integers, pred: Integers) -> tuple[str, ...]:
    """Name the classes of hard predictions; there are at least two, whatever a split happens to hold."""
    return as_names(names, "label_names", np.concatenate((y, pred)), at_least=2)


def names_of_scored(names: Sequence[str] | None, y: Integers, scores: Floats) -> tuple[str, ...]:
    """Name the classes of scores: two for `[N]`, C for `[N, C]`."""
    classes = 2 if scores.ndim == 1 else scores.shape[1]
    if names is not None and len(names) != classes:
        raise DataError(f"'label_names' must name the {classes} classes of 'scores' (got {len(names)} names)")
    if y.max() >= classes:
        raise DataError(f"'y' must be below {classes}, the number of classes of 'scores' (got {y.max()})")
    return as_names(names, "label_names", y, at_least=classes)


def classes_of(num_classes: int) -> list[int]:
    """Return the classes that are taken against the rest: of a binary problem only the positive one."""
    return [1] if num_classes == 2 else list(range(num_classes))


def missing_labels(y: Integers, names: tuple[str, ...]) -> list[str]:
    """Say which classes no node has."""
    present = np.bincount(y, minlength=len(names)) > 0
    return [f"no node has label '{name}'" for name, there in zip(names, present, strict=True) if not there]


def is_defined(metric: str, reasons: Sequence[str], undefined: Undefined) -> bool:
    """Return whether nothing speaks against a metric; if something does, raise or warn by the policy."""
    if undefined not in {"error", "nan"}:
        raise DataError(f"'undefined' must be 'error' or 'nan' (got {undefined!r})")
    if not reasons:
        return True
    message = f"{metric} is undefined: {'; '.join(reasons)}"
    if undefined == "error":
        raise DataError(f"{message} (undefined='nan' goes on without it)")
    warnings.warn(message, UndefinedMetricWarning, stacklevel=3)
    return False
