"""A category with many levels as the share of each label among the training nodes."""

import warnings
from typing import Any, Literal

import numpy as np

from fairpass.datasets.column_encoding import codes_among
from fairpass.datasets.encoded_columns import Encoded, LevelsColumn, shift_and_scale
from fairpass.datasets.graph import MISSING, Bools, Column, Floats, Ints
from fairpass.datasets.options import FeatureScale

_FOLDS = 5


class TargetColumn(LevelsColumn):
    """A level becomes the share of each label (of two: of the positive one) among its training nodes, smoothed.

    The smoothing is that of scikit-learn's `TargetEncoder`. `means` has a row per level, and a last one for all
    others; like numbers, they are shifted and scaled.
    """

    kind: Literal["target"] = "target"
    labels: list[str]
    means: list[list[float]]
    shift: list[float]
    scale: list[float]

    @classmethod
    def fit(
        cls,
        column: Column,
        levels: tuple[list[str], dict[str, str] | None],
        training: "TrainingLabels",
        scale: FeatureScale,
        **common: Any,
    ) -> "TargetColumn":
        names, spellings = levels
        codes = codes_among(column, names, spellings=spellings)
        _, encoder = _fit_target(codes[training.mask], training)
        known = encoder.transform(np.arange(len(names))[:, None])
        means = np.vstack([known, encoder.target_mean_])
        scaling = [shift_and_scale(each, scale) for each in means[codes[codes != MISSING]].T]
        shift, divisor = ([each[i] for each in scaling] for i in (0, 1))
        filled = common.pop("filled")
        fill = ((means[-1] - shift) / divisor).tolist() if filled else None
        labels = training.names[1:] if len(training.names) == 2 else training.names
        return cls(
            **common, column=str(column.name), fill=fill, levels=names, spellings=spellings, labels=labels,
            means=means.tolist(), shift=shift, scale=divisor,
        )  # fmt: skip

    @property
    def own_names(self) -> list[str]:
        return [f"{self.column}: share of {label}" for label in self.labels]

    def encode(self, column: Column, *, allow_unknown: bool) -> Encoded:
        codes, differences = self.codes(column, allow_unknown, "become the mean of all")
        means = np.array(self.means)[np.where(codes < 0, len(self.levels), codes)]
        return Encoded(self.filled_in(column, self._scaled(means), codes == MISSING), differences)

    def cross_fitted(self, column: Column, training: "TrainingLabels") -> Floats:
        """Return the features of the training nodes, each from the labels of others: its own would give it away."""
        column = column[training.mask]
        codes = codes_among(column, self.levels, spellings=self.spellings)
        means, _ = _fit_target(codes, training)
        return self.filled_in(column, self._scaled(means), codes == MISSING)

    def _scaled(self, means: Floats) -> Floats:
        return np.asarray((means - np.array(self.shift)) / np.array(self.scale))


class TrainingLabels:
    """Which nodes are for training, and their labels; `seed` deals them to the folds of target encoding."""

    def __init__(self, y: Ints, mask: Bools, names: list[str], seed: int) -> None:
        self.mask, self.y, self.names, self.seed = mask, y[mask], names, seed


def _fit_target(codes: Ints, training: TrainingLabels) -> tuple[Floats, Any]:
    """Return the cross-fitted features of the training nodes, and the encoder for all others."""
    import sklearn
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import TargetEncoder

    kind: Any = "binary" if len(training.names) == 2 else "multiclass"
    folds = max(2, min(_FOLDS, int(np.bincount(training.y).min())))
    shuffled: Any = {"cv": StratifiedKFold(folds, shuffle=True, random_state=training.seed)}
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9):  # the same folds, spelled differently
        shuffled = {"cv": folds, "random_state": training.seed}
    encoder = TargetEncoder(target_type=kind, **shuffled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a label with one training node is in one fold only
        return np.asarray(encoder.fit_transform(codes[:, None], training.y), dtype=np.float64), encoder
