"""A column of numbers, such as an age, cut into a few groups by a rule that can be said in words."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.columns import finite_numbers
from fairpass.datasets.values import MISSING, text_of
from fairpass.errors import DataError

# A number of equally large bins (cut at quantiles), or the numbers to cut at.
Bins = int | Sequence[float]

_DIGITS = 6


def bins_for(columns: Sequence[str], bins: Bins | Mapping[str, Bins] | None) -> dict[str, Bins]:
    """Return the bins of each column that has any; without names they are those of the only column."""
    if bins is None:
        return {}
    if not isinstance(bins, Mapping):
        if len(columns) > 1:
            raise DataError(
                f"'sens_bins' must say which column is to be cut, for example {{{columns[0]!r}: 3}} "
                f"(got {bins!r} for {', '.join(map(repr, columns))})"
            )
        bins = {columns[0]: bins}
    for name in bins:
        if name not in columns:
            raise DataError(f"'sens_bins' must name sensitive columns, {', '.join(map(repr, columns))} (got {name!r})")
    return dict(bins)


def bin_edges(column: "pd.Series[Any]", bins: Bins) -> list[float]:
    """Return the numbers to cut a column at, in increasing order: those given, or its quantiles.

    A quantile is a value that occurs in the column, to six digits; equal ones count once.
    """
    values = finite_numbers(column)
    values = values[~np.isnan(values)]
    if not len(values):
        raise DataError(f"column {column.name!r} has no value in any row: it cannot be cut into groups")
    if isinstance(bins, bool) or not isinstance(bins, int | Sequence) or isinstance(bins, str):
        raise DataError(f"'sens_bins' must be a number of bins or the numbers to cut at (got {bins!r})")
    if isinstance(bins, int):
        if not 2 <= bins <= 10:
            raise DataError(f"'sens_bins' must be between 2 and 10 bins, or the numbers to cut at (got {bins})")
        shares = np.arange(1, bins) / bins
        cuts = np.quantile(values, shares, method="nearest")
        edges = sorted({float(f"{cut:.{_DIGITS}g}") for cut in cuts} - {float(values.min())})
        if not edges:
            raise DataError(
                f"column {column.name!r} cannot be cut at its quantiles: most rows have {text_of(values.min())}; "
                f"give the numbers to cut at, for example sens_bins=[{text_of(values.max())}]"
            )
        return edges
    edges = [float(edge) for edge in bins]
    if not edges or not np.isfinite(edges).all() or sorted(set(edges)) != edges:
        raise DataError(f"'sens_bins' must be finite numbers in increasing order (got {list(bins)})")
    if not values.min() < edges[0] or not edges[-1] <= values.max():
        raise DataError(
            f"'sens_bins' must cut column {column.name!r} between its smallest and largest value, "
            f"{text_of(values.min())} and {text_of(values.max())} (got {[text_of(edge) for edge in edges]})"
        )
    return edges


def bin_names(name: str, edges: Sequence[float]) -> list[str]:
    """Return what the bins are called: "age < 25", "25 ≤ age < 60", "age ≥ 60"."""
    texts = [text_of(edge) for edge in edges]
    between = [f"{low} ≤ {name} < {high}" for low, high in pairwise(texts)]
    return [f"{name} < {texts[0]}", *between, f"{name} ≥ {texts[-1]}"]


def bin_of(column: "pd.Series[Any]", edges: Sequence[float]) -> NDArray[np.int64]:
    """Return the index of each row's bin, -1 where the number is missing."""
    values = finite_numbers(column)
    return np.where(np.isnan(values), MISSING, np.digitize(values, edges)).astype(np.int64)
