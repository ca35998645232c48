"""Columns brought to a common scale."""

from collections.abc import Sequence
from typing import Literal

import pandas as pd
from sklearn.preprocessing import MinMaxScaler, StandardScaler

FeatureScale = Literal["minmax", "standard", "none"]


def scaled(table: pd.DataFrame, columns: Sequence[str], scale: FeatureScale) -> pd.DataFrame:
    """Return `table` as float64, `columns` scaled to [-1, 1], or to mean 0 and variance 1, or not at all."""
    result = table.astype("float64")
    if scale != "none" and columns:
        scaler = MinMaxScaler(feature_range=(-1, 1)) if scale == "minmax" else StandardScaler()
        result[list(columns)] = scaler.fit_transform(result[list(columns)].to_numpy())
    return result
