"""How well some columns tell another: cross-validated AUCs of small trees, on a sample of the rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.column_kinds import Recognised
from fairpass.datasets.graph import Column, Floats

if TYPE_CHECKING:
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.tree import DecisionTreeClassifier

# Rows and folds: enough for an AUC to two digits.
SAMPLE, _FOLDS = 5_000, 3
_TREES = 30
_LARGEST = 1e37  # trees compute in single precision
_MOST_NAMED = 5  # columns that are named as telling together


class Predictability:
    """The same sampled rows of several columns, as numbers that a tree can split.

    Args:
        columns: The columns by name, and what each contains if it is known.
        seed: For the sample, the folds and the trees.
    """

    def __init__(self, columns: dict[str, tuple[Column, Recognised | None]], seed: int = 0) -> None:
        self.seed = seed
        size = max((len(column) for column, _ in columns.values()), default=0)
        generator = np.random.default_rng(seed)
        self.rows = np.arange(size) if size <= SAMPLE else np.sort(generator.choice(size, SAMPLE, replace=False))
        self.x = pd.DataFrame(
            {name: as_numbers(column.iloc[self.rows], kind) for name, (column, kind) in columns.items()}
        )

    def auc(self, names: Sequence[str], target: Column) -> float:
        """Return the AUC of a tree on one column, or of a small forest on several; 0.5 if it cannot be estimated."""
        from sklearn.model_selection import StratifiedKFold, cross_val_score

        y, kept = self._codes(target)
        if not len(names) or len(np.unique(y)) < 2:
            return 0.5
        folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=self.seed)
        x = self.x[list(names)].to_numpy()[kept]
        scores = cross_val_score(self._model(len(names)), x, y, cv=folds, scoring="roc_auc_ovr")
        return float(scores.mean())

    def few_that_tell(self, names: Sequence[str], target: Column, at_least: float) -> list[str]:
        """Return the few columns whose forest has at least this AUC, all of them if no few have it."""
        y, kept = self._codes(target)
        forest = self._model(len(names)).fit(self.x[list(names)].to_numpy()[kept], y)
        ordered = [names[i] for i in np.argsort(-forest.feature_importances_, kind="stable")]
        for number in range(2, min(_MOST_NAMED, len(names)) + 1):
            if self.auc(ordered[:number], target) >= at_least:
                return ordered[:number]
        return list(names)

    def _codes(self, target: Column) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the target of the sampled rows as codes, and which rows are kept: rare values are not."""
        codes = pd.factorize(target.iloc[self.rows])[0].astype(np.int64)
        counts = np.bincount(codes[codes >= 0], minlength=1)
        kept = (codes >= 0) & (counts >= 2 * _FOLDS)[codes]
        return codes[kept], kept

    def _model(self, columns: int) -> "DecisionTreeClassifier | ExtraTreesClassifier":
        from sklearn.ensemble import ExtraTreesClassifier
        from sklearn.tree import DecisionTreeClassifier

        if columns == 1:
            return DecisionTreeClassifier(max_depth=5, min_samples_leaf=3, random_state=self.seed)
        # Trees with random cuts find differences of columns, such as paid < due, sooner than those with the best cuts.
        return ExtraTreesClassifier(_TREES, max_features=None, min_samples_leaf=3, random_state=self.seed)


def as_numbers(column: Column, kind: Recognised | None = None) -> Floats:
    """Return a column as numbers a tree can split: categories by their index, missing values as an extra value."""
    if kind is not None and kind.reading is not None:
        values = kind.reading.read(column).values
    elif pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        return pd.factorize(column)[0].astype(np.float64)
    finite = np.isfinite(values)
    found = np.where(finite, values, np.min(values, initial=0.0, where=finite) - 1)
    return np.clip(found, -_LARGEST, _LARGEST)
