"""Whether the values of a column are single ones, which numbers, dates and text are; lists, records and bytes are not.

Text files have nothing else, but JSON lines, Parquet files and DataFrames may.
"""

from collections.abc import Hashable, Sized

import numpy as np
import pandas as pd

from fairpass.datasets.graph import Column

_NAMES = {list: "a list", np.ndarray: "a list", tuple: "a list", dict: "an object with fields"}
_NAMES |= dict.fromkeys((bytes, bytearray), "bytes")


def odd_value(column: Column) -> str:
    """Return the first value that is no single one, and where it is; "" if there is none."""
    if column.dtype.kind in "biufcmMU" or isinstance(column.dtype, pd.StringDtype):
        return ""
    values = column.astype(object).tolist()
    odd = {kind for kind in set(map(type, values)) if not _is_single(kind)}
    if not odd:
        return ""
    place = next(place for place, value in enumerate(values) if type(value) in odd)
    kind = type(values[place])
    return f"{_NAMES.get(kind, kind.__name__)} in row {column.index[place]}"


def _is_single(kind: type) -> bool:
    return issubclass(kind, str) or (issubclass(kind, Hashable) and not issubclass(kind, Sized))
