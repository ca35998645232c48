"""The arguments of all metrics, checked: tensors or arrays of any kind in, one `Sample` out."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from fairpass.errors import DataError, some_of
from fairpass.metrics import catalog
from fairpass.metrics.counts import Counts, Nodes
from fairpass.parameters import LARGEST_SEED, MOST, check_count, check_index

Values = Tensor | ArrayLike
Names = Sequence[str] | None
Integers = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Undefined = Literal["error", "nan"]

_ROUNDING = 1e-3  # sums of probabilities in half precision may be a little above 1


def _as_array(values: Values, name: str) -> NDArray[Any]:
    try:
        if isinstance(values, Tensor):
            values = values.detach().cpu()
            # numpy has no bfloat16
            is_short = values.is_floating_point() and values.element_size() < 4
            return values.float().numpy() if is_short else values.numpy()
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:  # ragged lists; tensors that are sparse or have no values
        raise DataError(f"'{name}' must be a dense array (got {type(values).__name__}: {error})") from None


def as_indices(values: Values, name: str, size: int | None = None) -> Integers:
    """Check indices of labels or groups `[N]`; negative ones are unknown."""
    array = _as_array(values, name)
    if array.size and array.dtype.kind not in "biu":  # an empty list has no integers
        raise DataError(f"'{name}' must hold integers (got {array.dtype})")
    if array.ndim != 1 or (size is not None and array.size != size):
        expected = "[N]" if size is None else f"[{size}], one for each node"
        raise DataError(f"'{name}' must have shape {expected} (got {list(array.shape)})")
    check_index(name, int(array.max(initial=0)))
    return array.astype(np.int64, copy=False)


def as_integers(values: Values, name: str, size: int | None = None, *, labels: bool = False) -> Integers:
    """Check indices `[N]` of one node or more; a negative group is unknown, a negative label is refused."""
    array = as_indices(values, name, size)
    if not array.size:
        raise DataError(f"'{name}' must have shape [N] with N > 0 (got [0])")
    if labels and (negative := int((array < 0).sum())):
        raise DataError(f"'{name}' must not hold unlabelled nodes, pass the labelled ones (got {negative} below 0)")
    return array


def as_scores(values: Values, size: int | None = None) -> Floats:
    """Check scores: `[N]` for the positive class, or `[N, C]` with C > 2.

    `[N, 2]` becomes its second column. It must hold probabilities: logits cannot be compared with a threshold.
    """
    scores = _as_array(values, "scores")
    if scores.dtype.kind != "f":
        raise DataError(f"'scores' must hold floating-point numbers, not hard predictions (got {scores.dtype})")
    if scores.ndim not in {1, 2} or (size is not None and len(scores) != size) or 0 in scores.shape:
        nodes = "N" if size is None else size
        raise DataError(f"'scores' must have shape [{nodes}] or [{nodes}, C] (got {list(scores.shape)})")
    native = np.dtype(scores.dtype.type)  # torch takes neither another byte order nor more than 8 bytes
    scores = scores.astype(np.float64 if native.itemsize > 8 else native, copy=False)
    bad = int((~np.isfinite(scores)).sum())
    if bad:
        raise DataError(f"'scores' must be finite (got {bad} NaN or infinite)")
    if scores.ndim == 2 and scores.shape[1] == 2:
        if not np.allclose(scores.sum(axis=1), 1, atol=1e-3):
            raise DataError("'scores' of shape [N, 2] must be probabilities (got rows that do not sum to 1)")
        return scores[:, 1]
    return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores


def as_threshold(value: float) -> float:
    """Check a threshold, a finite number; an array or a tensor of no axes is one, too."""
    array = _as_array(value, "threshold")
    if array.ndim or array.dtype.kind not in "iuf" or not np.isfinite(array):
        raise DataError(f"'threshold' must be a finite number (got {value!r})")
    return float(array)


def check_number(name: str, value: int, least: int = 1, most: int = MOST) -> None:
    """Raise `DataError` unless a value is a whole number between `least` and `most`."""
    try:
        check_count(name, value, least, most)
    except ValueError as error:
        raise DataError(str(error)) from None


def check_seed(seed: int) -> None:
    check_number("seed", seed, 0, LARGEST_SEED)


def as_names(names: Names, argument: str, highest: int) -> tuple[str, ...]:
    """Return one name for each index up to `highest`; by default the indices themselves."""
    if names is None:
        return tuple(str(index) for index in range(highest + 1))
    if highest >= len(names):
        raise DataError(f"'{argument}' must name every index up to {highest} (got {len(names)} names)")
    if len(set(names)) < len(names):
        raise DataError(f"'{argument}' must be distinct (got {list(names)})")
    return tuple(str(name) for name in names)


class Sample:
    """Labels, predictions and groups of some nodes, checked; see `evaluate` for the arguments.

    With scores, predictions are `score > threshold` or the class of the largest score, unless they are given.
    """

    def __init__(
        self,
        y: Values,
        pred: Values | None,
        sens: Values | None,
        group_names: Names = None,
        label_names: Names = None,
        scores: Values | None = None,
        threshold: float = 0.5,
    ) -> None:
        if pred is None and scores is None:
            raise DataError("'scores' or 'pred' must be given (got None)")
        labels = as_integers(y, "y", labels=True)
        values = np.empty(0) if scores is None else as_scores(scores, labels.size)
        argument = "pred" if scores is None else "decisions"
        decided = _predict(values, threshold) if pred is None else as_integers(pred, argument, labels.size, labels=True)
        highest = int(max(labels.max(), decided.max(), 1))
        if scores is not None:
            classes = 2 if values.ndim == 1 else values.shape[1]
            named = classes if label_names is None else len(label_names)
            if named != classes:
                raise DataError(f"'label_names' must name the {classes} classes of 'scores' (got {named} names)")
            if highest >= classes:
                argument = "y" if labels.max() == highest else argument
                raise DataError(f"'{argument}' must be below {classes}, the number of classes (got {highest})")
            highest = classes - 1
        groups = np.full_like(labels, -1) if sens is None else as_integers(sens, "sens", labels.size)
        # Copies, as torch takes neither a read-only array (pandas) nor a reversed one.
        self.y, self.pred, self.sens = (torch.from_numpy(array.copy()) for array in (labels, decided, groups))
        self.scores = torch.from_numpy(values.copy())
        names = as_names(label_names, "label_names", highest)
        self.nodes = Nodes(self.y, self.sens, names, as_names(group_names, "group_names", int(groups.max())))
        self.counts = self.nodes.counts(self.pred, self.scores)

    def check_scores(self) -> None:
        """Raise `DataError` if there are none."""
        if not self.scores.numel():
            raise DataError("'scores' must be given (got None)")

    def check_probabilities(self) -> None:
        """Raise `DataError` unless the scores can be compared with a threshold, which logits cannot."""
        self.check_scores()
        low, high = float(self.scores.min()), float(self.scores.max())
        if low < -_ROUNDING or high > 1 + _ROUNDING:
            outside = int(((self.scores < -_ROUNDING) | (self.scores > 1 + _ROUNDING)).sum())
            got = f"got {outside} others, from {low:g} to {high:g}"
            raise DataError(f"'scores' must be probabilities, between 0 and 1 ({got})")

    def measure(self, counts: Counts) -> dict[str, Tensor]:
        """Return every metric `[...]` of counts of the sample, nan where it is undefined."""
        return {m.key: m(counts) * (torch.nan if m.missing(self.nodes) else 1.0) for m in catalog.METRICS}


def _predict(scores: Floats, threshold: float) -> Integers:
    cut = as_threshold(threshold)
    # A Python float adapts to the dtype of the scores, as in torch: both must decide ties in the same way.
    return (scores > cut if scores.ndim == 1 else scores.argmax(axis=1)).astype(np.int64)


def report_undefined(what: str, reasons: Sequence[str], undefined: Undefined | None = None, level: int = 3) -> None:
    """Raise, or warn if the user chose "nan", if there are reasons why something is undefined."""
    if undefined not in {None, "error", "nan"}:
        raise DataError(f"'undefined' must be 'error' or 'nan' (got {undefined!r})")
    if not reasons:
        return
    message = f"{what} is undefined: {some_of(dict.fromkeys(reasons), '; ')}"
    if undefined != "nan":
        raise DataError(f"{message} (pass undefined='nan' to go on without it)" if undefined else message)
    from sklearn.exceptions import UndefinedMetricWarning  # the class users filter; here, as the import is slow

    warnings.warn(message, UndefinedMetricWarning, stacklevel=level)
