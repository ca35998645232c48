"""The edges of a user's table: the nodes they join, their weights, and what is left out."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from fairpass.datasets.column_encoding import as_text
from fairpass.datasets.column_names import END_WORDS, WEIGHT_WORDS, named
from fairpass.datasets.column_reading import bounded
from fairpass.datasets.graph import Bools, Column, Floats, Ints, listed, missing_text, positions
from fairpass.datasets.options import TableOptions
from fairpass.datasets.table_files import HeaderNames, Table
from fairpass.errors import DataError

WeightProblem = Literal["missing", "number", "positive", "finite", "large", "small"]

_LOOKED_AT = 1_000  # rows that say whether a column has numbers
LEAST_WEIGHT = 1e-12  # of their mean: sums of others would be lost in rounding
_SECONDS = 1e8  # larger numbers in a third column are times, not weights

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class EdgeOrigin:
    """Where edges come from, and what was left out."""

    origin: dict[str, str | None] | None = None
    dangling: int = 0  # edges that were left out because an end is not a node
    ignored: tuple[str, ...] = ()  # columns that were not used


@dataclass(frozen=True)
class EdgeList(EdgeOrigin):
    """One entry per edge: the positions of both ends among the nodes, and the weight if edges have one."""

    source: Ints
    target: Ints
    weight: Floats | None = None


def header_names(is_node: Callable[[str], bool], options: TableOptions | None = None) -> HeaderNames:
    """Return what `read_table` asks: the names of the columns if the first row of a table of edges is an edge.

    It is one if both ends are nodes, or whole numbers; `edges_header` has the last word.
    """

    def names(row: Sequence[str]) -> list[str] | None:
        given = None if options is None else options.edges_header
        mentioned = set() if options is None else {options.source, options.target, options.edge_weight}
        ends = [cell.strip() for cell in row[:2]]
        if given or len(ends) < 2:
            return None
        if given is None and (mentioned.intersection(row) or set(map(str.lower, ends)) <= set(END_WORDS)):
            return None
        if given is None and not all(is_node(end) or end.isdecimal() for end in ends):
            return None
        third = pd.to_numeric(pd.Series(row[2:3]), errors="coerce").abs()
        weight = "weight" if bool((third < _SECONDS).any()) else "column 3"
        found = ["source", "target", weight, *(f"column {place}" for place in range(4, len(row) + 1))][: len(row)]
        if given is None and options is not None:
            message = "'edges' has no header: its first row is the edge from %r to %r, and its columns are called %s"
            logger.warning(f"{message} (edges_header=True if that is wrong)", *ends, listed(found))
        return found

    return names


def edge_list(edges: Table, ids: "pd.Index[Any]", options: TableOptions, *, as_texts: bool = False) -> EdgeList:
    """Return the edges of a table, with all checks.

    The ends are in the columns `source` and `target`, by default the first two, the weight is in `edge_weight`. A
    column of numbers that is named like a weight must be mentioned; others are ignored with a warning. With `as_texts`
    the `ids` of the nodes are text, and the ends are compared with them as text.
    """
    ends = edge_ends(edges, options.source, options.target)
    weight = None if options.edge_weight is None else edge_weights(edges[options.edge_weight])
    ignored = unused_columns(edges, options)
    drop = options.dangling == "drop"
    ends = [as_text(end) for end in ends] if as_texts else ends
    source, target = (positions(end, ids, allow_unknown=drop) for end in ends)
    known = (source >= 0) & (target >= 0)
    dangling = int((~known).sum())
    warn_about_edges(len(known), dangling, ignored)
    if dangling:
        source, target, weight = source[known], target[known], None if weight is None else weight[known]
    return EdgeList(source, target, weight, origin=edges.origin, dangling=dangling, ignored=tuple(ignored))


def warn_about_edges(rows: int, dangling: int, ignored: Sequence[str]) -> None:
    """Log what a user should know about a table of edges."""
    if not rows:
        logger.warning("'edges' has no rows: the graph has no edges")
    if ignored:
        logger.warning("columns of 'edges' that are not used: %s", listed(ignored))
    if dangling:
        logger.warning("edges whose ends are not both nodes are left out: %s of %s", f"{dangling:,}", f"{rows:,}")


def edge_ends(edges: Table, source: str | None, target: str | None) -> list[Column]:
    """Return both ends of each edge: the columns with these names, by default the first two."""
    first, second = end_names(edges, source, target)
    return [edges[first], edges[second]]


def end_names(edges: Table, source: str | None, target: str | None) -> tuple[str, str]:
    """Return the names of the columns with the ends of edges, which must exist and have single values."""
    if len(edges.columns) < 2:
        raise DataError(f"'edges' must have at least two columns (got {len(edges.columns)})")
    source, target = source or edges.columns[0], target or edges.columns[1]
    if source == target:
        raise DataError(f"'source' and 'target' must be different columns of 'edges' (both are {source!r})")
    for column in (source, target):
        edges.check_values(column)
    return source, target


def edge_weights(column: Column) -> Floats:
    """Return a column of weights as numbers, which must all be positive and finite."""
    numbers = pd.to_numeric(bounded(column), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    problems: dict[WeightProblem, Bools] = {
        "missing": column.isna().to_numpy(dtype=bool),
        "number": np.isnan(numbers),
        "positive": ~(numbers > 0),
        "finite": np.isinf(numbers),
        "large": numbers > np.finfo(np.float32).max,
        "small": numbers < LEAST_WEIGHT * (numbers.mean() if len(numbers) else 0.0),
    }
    for problem, wrong in problems.items():
        if wrong.any():
            row = int(np.argmax(wrong))
            raise weight_error(str(column.name), problem, int(wrong.sum()), row, column.iloc[[row]].tolist()[0])
    return numbers


def weight_error(column: str, problem: WeightProblem, count: int, row: int, value: Any) -> DataError:
    """Return the error of weights that cannot be used: how many, and the first of them."""
    name = f"column {column!r} of 'edges'"
    if problem == "missing":
        return DataError(f"{name} must have a weight for each edge ({missing_text(count, row)})")
    if problem == "finite":
        return DataError(f"{name} must be finite (got inf in row {row})")
    if problem == "large":
        return DataError(f"{name} has weights too large for 32-bit numbers (got {float(value):g} in row {row})")
    if problem == "small":
        limit = f"less than {LEAST_WEIGHT:g} of their mean"
        return DataError(f"{name} has weights too small beside the others (got {float(value):g} in row {row}: {limit})")
    what = "must contain numbers" if problem == "number" else "must be positive"
    more = f", and {count - 1:,} more" if count > 1 else ""
    return DataError(f"{name} {what} to be the weight of edges (got {listed([value])} in row {row}{more})")


def unused_columns(edges: Table, options: TableOptions) -> list[str]:
    """Return the columns of the edges without a role; one that seems to be a weight is refused."""
    used = {options.source or edges.columns[0], options.target or edges.columns[1], options.edge_weight}
    others = [column for column in edges.columns if column not in used]
    if options.edge_weight is None and not options.unweighted:
        usable = edges.usable
        for column in others:
            if column in usable and is_weight(usable[column]):
                raise DataError(
                    f"column {column!r} of 'edges' seems to have weights: use them with edge_weight={column!r}, "
                    f"or treat all edges alike with unweighted=True"
                )
    return others


def could_be_weight(column: Column) -> bool:
    """Return whether a column has different positive numbers that are no times."""
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column) or column.isna().any():
        return False
    return bool(0 < column.min() < column.max() < _SECONDS)


def is_weight(column: Column) -> bool:
    """Return whether a column has different numbers and is named like a weight."""
    if not named(str(column.name), WEIGHT_WORDS) or column.nunique() < 2:
        return False
    some = bounded(column.dropna().head(_LOOKED_AT))
    return len(some) > 0 and bool(pd.to_numeric(some, errors="coerce").notna().mean() > 0.5)
