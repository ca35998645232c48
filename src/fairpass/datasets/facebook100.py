"""The files of Facebook100 (https://arxiv.org/abs/1102.2166): one per college, with its people and their friendships.

A file has two matrices: `A` [N, N], which is not 0 where two people are friends, and `local_info` [N, 7], with a row of
codes for each person, in which 0 means missing.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.graph import Ints
from fairpass.errors import DataError

_COLUMNS = ["status", "gender", "major", "second_major", "dorm", "class_year", "high_school"]
_GENDERS = {1, 2}


def median_class_year(file: Any) -> int:
    """Return the first class year that is not before the median of the known ones.

    Raises a `DataError` unless the file is one of Facebook100, with both genders, and class years before that one.
    """
    people = _people(_matrices(file)[1])
    years = people["class_year"].dropna()
    if years.nunique() < 2:
        raise DataError("'local_info' must have at least two class years, in its sixth column")
    if not set(people["gender"].dropna()) >= _GENDERS:
        raise DataError("'local_info' must have the genders 1 and 2, in its second column")
    year = _median(years)
    if years.min() == year:
        raise DataError(f"'local_info' must have class years before their median, {year}, in its sixth column")
    return year


def read_people(file: Any) -> pd.DataFrame:
    """Return the people of a college, with the label: whether the class year is the median one or later."""
    people = _people(_matrices(file)[1])
    years = people["class_year"]
    people["is_late_class"] = (years >= _median(years.dropna())).astype("Int64")
    return people


def read_friendships(file: Any) -> Ints:
    """Return the friendships of a college by row number, shape [E, 2]."""
    from scipy.sparse import triu

    upper = triu(_matrices(file)[0], k=1).tocoo()
    return np.stack([upper.row, upper.col], axis=1).astype(np.int64)


def _matrices(file: Any) -> tuple[Any, NDArray[Any]]:
    from scipy.io import loadmat

    try:
        found = loadmat(file, variable_names=["A", "local_info"])
    except Exception as error:  # scipy fails in many ways on what is not a MATLAB file, or only half of one
        raise DataError(f"it cannot be read as a MATLAB file ({error})") from error
    shapes = {name: found[name].shape if name in found else None for name in ("A", "local_info")}
    count = shapes["local_info"][0] if shapes["local_info"] else 0
    expected = {"A": (count, count), "local_info": (count, len(_COLUMNS))}
    if shapes != expected or found["local_info"].dtype.kind not in "iuf":
        got = ", ".join(f"{name} {shape or 'missing'}" for name, shape in shapes.items())
        raise DataError(f"it must have numbers in 'A' [N, N] and 'local_info' [N, {len(_COLUMNS)}] (got {got})")
    return found["A"], found["local_info"]


def _people(codes: NDArray[Any]) -> pd.DataFrame:
    people = pd.DataFrame(codes.astype(np.int64), columns=_COLUMNS).astype("Int64")
    return people.mask(people == 0)


def _median(years: "pd.Series[Any]") -> int:
    return math.ceil(years.median())
