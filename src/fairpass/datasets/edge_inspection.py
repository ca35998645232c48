"""What is in a table of edges: the ends, a weight, and what looks wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairpass.datasets.column_encoding import as_text
from fairpass.datasets.edges import could_be_weight, edge_weights, is_weight
from fairpass.datasets.graph import Column, first_missing, listed, positions, simple_graph
from fairpass.datasets.problems import Problem
from fairpass.datasets.role_guesses import Guess, distinct, guess_ends
from fairpass.datasets.table_files import Table
from fairpass.errors import DataError

# A larger share of edges whose ends are no nodes is a mistake: other ids, or another table.
_FEW_DANGLING = 0.1


@dataclass(frozen=True)
class EdgeInspection:
    """What was found in a table of edges; settings are those with which a graph can be made."""

    ends: tuple[Guess, ...]
    weight: Guess | None
    settings: dict[str, Any]  # options of `from_tables` that are not the default
    reasons: dict[str, str]  # why, by option
    problems: tuple[Problem, ...]


def inspect_edges(edges: Table, ids: Column, id: str | None) -> EdgeInspection:
    """Look at a table of edges; `ids` are those of the nodes as text, from their column `id` or row numbers."""
    settings: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    problems: list[Problem] = []
    if edges.unnamed:
        settings["edges_header"] = False
        reasons["edges_header"] = "The first row is an edge"
        names = f"its columns are called {listed(edges.columns)}"
        problems.append(Problem(f"the table of edges has no row with names: its first row is an edge, and {names}"))
    usable = edges.usable
    ends = guess_ends(usable, ids, id)
    if len(ends) < 2:
        lacking = Problem("the table of edges must have two columns, one for each end", stops=True)
        return EdgeInspection(ends, None, settings, reasons, (lacking,))
    others = [name for name in edges.columns if name not in {guess.column for guess in ends}]
    weight = None
    for name in others:
        if weight is None and name in usable and is_weight(usable[name]):
            weight = _weight(edges, name, settings, reasons, problems)
    ignored = [name for name in others if weight is None or name != weight.column]
    if "unweighted" not in settings and weight is None:
        numbers = [name for name in ignored if name in usable and could_be_weight(usable[name])]
        problems += [_possible_weight(usable[name]) for name in numbers]
    if ignored:
        problems.append(Problem(f"columns of the edges that are not used: {listed(ignored)}"))
    known = distinct(ids)
    columns = [as_text(edges[guess.column]).astype(object) for guess in ends]
    found = np.stack([positions(column, known, allow_unknown=True) for column in columns])
    is_known: Any = (found >= 0).all(axis=0)
    dangling = int((~is_known).sum())
    if 0 < dangling <= _FEW_DANGLING * len(is_known):
        settings["dangling"] = "drop"
        reasons["dangling"] = f"{dangling:,} of {len(is_known):,} edges have an end that is not a node"
        example = next(_unknown_ends(columns, found))
        problems.append(Problem(f"{reasons['dangling']} ({example}): they are left out"))
    elif dangling:
        problems += [Problem(sentence, stops=True) for sentence in _errors(columns, known)]
    problems += _about_graph(found[:, is_known], len(known), weighted=weight is not None)
    return EdgeInspection(ends, weight, settings, reasons, tuple(problems))


def _weight(
    edges: Table, name: str, settings: dict[str, Any], reasons: dict[str, str], problems: list[Problem]
) -> Guess | None:
    """Return the column with the weights if they can be used; otherwise all edges count alike."""
    try:
        weights = edge_weights(edges[name])
    except DataError as error:
        settings["unweighted"] = True
        reasons["unweighted"] = f"{name!r} cannot be used as a weight: {error}"
        problems.append(Problem(f"{error}: all edges count alike"))
        return None
    settings["edge_weight"] = name
    reason = f"it has positive numbers, {weights.min():g} to {weights.max():g}, and its name says so"
    reasons["edge_weight"] = f"Why {name!r}: {reason}"
    return Guess(name, reason)


def _possible_weight(column: Column) -> Problem:
    numbers = f"positive numbers, {column.min():g} to {column.max():g}"
    return Problem(
        f"column {column.name!r} of the edges has {numbers}: if they say how much an edge counts, use them with "
        f"edge_weight={column.name!r}"
    )


def _unknown_ends(columns: list[Column], found: Any) -> Iterator[str]:
    for column, places in zip(columns, found, strict=True):
        if (places < 0).any():
            row = int(np.argmax(places < 0))
            end: str = "an empty cell" if pd.isna(column.iloc[row]) else repr(column.iloc[row])
            yield f"the first: {end} in column {column.name!r}, row {row}"


def _errors(columns: list[Column], ids: "pd.Index[Any]") -> Iterator[str]:
    for column in columns:
        if column.isna().any():
            yield f"column {column.name!r} of 'edges' must have an id for each edge ({first_missing(column)})"
        try:
            positions(column.dropna(), ids)
        except DataError as error:
            yield str(error)


def _about_graph(ends: Any, nodes: int, *, weighted: bool) -> Iterator[Problem]:
    graph = simple_graph(ends[0], ends[1], nodes)
    pairs = graph.edge_index.shape[1] // 2
    if graph.self_loops_removed:
        yield Problem(f"edges that join a node with itself: {graph.self_loops_removed:,}; they are left out")
    if graph.duplicate_edges_merged:
        rule = "their weights are added" if weighted else "each pair of nodes counts once"
        yield Problem(f"edges that occur more than once: {graph.duplicate_edges_merged:,}; {rule}")
    if 2 * graph.one_way_pairs > pairs:
        yield Problem(
            f"edges are read as undirected: {graph.one_way_pairs:,} of {pairs:,} pairs occur in one direction only"
        )
    if isolated := nodes - len(np.unique(graph.edge_index[0])):
        yield Problem(f"nodes without any edge: {isolated:,}; they are classified by their features alone")
