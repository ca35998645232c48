"""A graph from a user's own tables of nodes and edges."""

import logging
from collections.abc import Sequence
from inspect import Signature, signature
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from fairpass.datasets.edges import SimpleGraph, checked_ids, positions, simple_graph
from fairpass.datasets.encoding import Encoding, fit_encoding, fit_labels
from fairpass.datasets.options import TableOptions
from fairpass.datasets.reading import Table, TableSource, read_table
from fairpass.datasets.roles import check_no_id_column, feature_columns
from fairpass.datasets.sensitive import TIMES, Grouping
from fairpass.datasets.similarity import build_graph
from fairpass.datasets.split_column import check_split, split_by_column
from fairpass.datasets.splits import Split, stratified_split
from fairpass.datasets.values import MISSING, as_text, first_missing, text_of, whole_numbers
from fairpass.errors import DataError

logger = logging.getLogger(__name__)


def from_tables(nodes: TableSource, edges: TableSource | None = None, **options: Any) -> Data:
    """Return the graph in a table of nodes and a table of edges.

    Numbers are scaled, true and false become 1 and 0, text and categories become one column of 0 and 1 per
    value, named "column=value". Labels and groups may be of any type and number: their sorted values get the
    indices 0, 1, ... in `y` and `sens`, and are stored in `label_names` and `group_names`. A node without
    a label stays in the graph with y = -1 and is in no mask. Edges are undirected: (a, b) and (b, a) are one;
    duplicates and self-loops are removed and counted in `provenance`. The tables are not changed.

    Args:
        nodes: One row per node: a path (.csv, .tsv, .parquet, .pq) or a DataFrame, whose index is ignored.
            In CSV and TSV files an empty cell, "NA", "null" and the like (pandas' list) are missing values.
        edges: One row per edge: a path or a DataFrame, which may have no rows. None if there are no edges: then
            `similarity` makes them. With `encoding`, both may be left out: the graph has no edges.
        options: The fields of `TableOptions`; `label` and `sensitive` are required.
    """
    chosen_options = TableOptions.parse(options)
    label, id, split = (
        chosen_options.label,
        chosen_options.id,
        chosen_options.split,
    )
    o = chosen_options
    features, drop, keep_sensitive, encoding = o.features, o.drop, o.keep_sensitive, o.encoding
    similarity, text_encoding, missing_sensitive = o.similarity, o.text_encoding, o.missing_sensitive
    sens_bins, min_group_size, small_groups, positive = o.sens_bins, o.min_group_size, o.small_groups, o.positive
    source, target, seed, scale, missing = o.source, o.target, o.seed, o.scale, o.missing
    on_constant, max_levels, unknown_category = o.on_constant, o.max_levels, o.unknown_category
    fractions = (o.fractions[0], o.fractions[1], o.fractions[2])
    _check_edges_or_similarity(edges, similarity, encoding)
    roles = o.roles
    known = None if encoding is None else Encoding.from_dict(encoding)
    if known and (known.label, known.grouping.column_names) != (label, roles["sensitive"]):
        raise DataError(
            f"'label' and 'sensitive' must be as in 'encoding', {known.label!r} and {known.grouping.title!r} "
            f"(got {label!r} and {TIMES.join(roles['sensitive'])!r})"
        )

    node_table = read_table(nodes, "nodes", text_encoding=text_encoding, text_columns=None if id is None else {id: str})
    if node_table.frame.empty:
        raise DataError("'nodes' must have at least one row (got an empty table)")
    if id is None:
        check_no_id_column(node_table, [*chain(*roles.values()), *(features or ()), *drop])
    if missing_sensitive == "error":
        _check_no_gaps(node_table, roles["sensitive"])

    chosen: list[str] = []
    meaning = known
    if meaning is None:
        label_names = fit_labels(node_table[label], positive, max_levels)
        grouping = Grouping.fit(
            node_table,
            roles["sensitive"],
            counted=node_table[label].notna().to_numpy(dtype=bool),
            bins=sens_bins,
            min_size=min_group_size,
            small=small_groups,
            max_levels=max_levels,
        )
        kept = grouping.title if keep_sensitive else None
        chosen = feature_columns(node_table, roles, features, drop, kept)
        meaning = fit_encoding(
            node_table,
            label=label,
            label_names=label_names,
            grouping=grouping,
            features=chosen,
            scale=scale,
            missing=missing,
            on_constant=on_constant,
            max_levels=max_levels,
        )
    # A table that is encoded like an earlier one may lack labels and, if unknown groups are allowed, groups.
    unknown = torch.full((len(node_table.frame),), MISSING)
    y = unknown if known and label not in node_table else torch.from_numpy(meaning.labels(node_table))
    grouped = all(column in node_table for column in roles["sensitive"])
    sens = unknown.clone() if known and not grouped else torch.from_numpy(meaning.groups(node_table))
    x = meaning.features(node_table, allow_unknown=unknown_category == "zeros")
    if edges is not None:
        edge_table = read_table(edges, "edges", text_encoding=text_encoding, text_columns=None if id is None else str)
        graph, node_ids = _graph(node_table, edge_table, id, source, target)
        edges_from = edge_table.origin
    else:
        node_ids = _node_ids(node_table, id)
        graph = _similarity_graph(x, similarity)
        edges_from = edges_made(similarity)
    if split is not None:
        parts = split_by_column(node_table[split], y)
    elif known:
        nobody = torch.zeros_like(y, dtype=torch.bool)
        parts = Split(train=nobody, val=nobody.clone(), test=y != MISSING)
    else:
        parts = stratified_split(y, sens, fractions=fractions, seed=seed)
    if not known:
        check_split(parts, y, "label", meaning.label_names)
        check_split(parts, sens, "group", meaning.group_names)

    used = {encoded.column for encoded in meaning.columns}
    return Data(
        x=torch.from_numpy(x),
        edge_index=graph.edge_index,
        y=y,
        sens=sens,
        train_mask=parts.train,
        val_mask=parts.val,
        test_mask=parts.test,
        feature_names=meaning.feature_names,
        sens_column=meaning.sens_column,
        label_names=list(meaning.label_names),
        group_names=list(meaning.group_names),
        node_ids=node_ids,
        provenance={
            "source": "tables",
            "nodes": node_table.origin,
            "edges": edges_from,
            "licence": None,
            "self_loops_removed": graph.self_loops_removed,
            "duplicate_edges_merged": graph.duplicate_edges_merged,
            "columns_left_out": [column for column in chosen if column not in used],
            "options": o.model_dump() | {"positive": None if positive is None else text_of(positive)},
            "encoding": meaning.to_dict(),
        },
    )


def _with_options(function: Any) -> None:
    """Let `help` and `inspect` show the options as keyword arguments."""
    own = [each for each in signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]
    function.__signature__ = Signature([*own, *TableOptions.parameters()], return_annotation=Data)


_with_options(from_tables)


def edges_made(similarity: float | None) -> dict[str, str | None]:
    """Return what provenance says of edges that are in no table."""
    alike = f"features at least {similarity} times as alike as the nearest"
    return {"source": "no edges" if similarity is None else alike, "sha256": None}


def _check_edges_or_similarity(edges: TableSource | None, similarity: float | None, encoding: Any) -> None:
    """Refuse two sources of edges, and none unless a remembered encoding shows that the nodes are for prediction."""
    both = edges is not None and similarity is not None
    neither = edges is None and similarity is None
    if both or (neither and encoding is None):
        given = "both" if both else "neither"
        raise DataError(f"give a table of 'edges', or a threshold of 'similarity' to make them from (got {given})")


def _check_no_gaps(nodes: Table, sensitive: Sequence[str]) -> None:
    for column in sensitive:
        if nodes[column].isna().any():
            raise DataError(
                f"column {column!r} must have a value for each node ({first_missing(nodes[column])}): "
                f"fix the table, or choose missing_sensitive='unknown'"
            )


def ends_of(edges: Table, source: str | None, target: str | None) -> "list[pd.Series[Any]]":
    """Return both ends of each edge: the columns with these names, by default the first two."""
    if len(edges.columns) < 2:
        raise DataError(f"'edges' must have at least two columns (got {len(edges.columns)})")
    source, target = source or edges.columns[0], target or edges.columns[1]
    if source == target:
        raise DataError(f"'source' and 'target' must be different columns of 'edges' (both are {source!r})")
    return [edges[source], edges[target]]


def _graph(
    nodes: Table, edges: Table, id: str | None, source: str | None, target: str | None
) -> tuple[SimpleGraph, list[Any]]:
    """Return the graph and the ids of its nodes."""
    ends = ends_of(edges, source, target)
    if edges.frame.empty:
        logger.warning("'edges' has no rows: the graph has no edges")
    ids: pd.Index[Any] = pd.RangeIndex(len(nodes.frame))
    if id is not None:
        column = nodes[id]
        if nodes.typed != edges.typed:  # a CSV file knows ids as text only
            column, ends = as_text(column), [as_text(end) for end in ends]
        ids = checked_ids(column)
    first, second = (positions(end, ids) for end in ends)
    return simple_graph(first, second, len(nodes.frame)), _node_ids(nodes, id)


def _similarity_graph(x: NDArray[np.float32], similarity: float | None) -> SimpleGraph:
    """Return the graph of nodes that are alike; one without edges if there is no threshold, or one node only."""
    alone = similarity is None or len(x) == 1
    pairs = np.empty((0, 2), dtype=np.int64) if alone else build_graph(x, similarity or 0.0)
    return simple_graph(pairs[:, 0], pairs[:, 1], len(x))


def _node_ids(nodes: Table, id: str | None) -> list[Any]:
    """Return the ids of the nodes as they are to be shown: their row numbers, if they have none."""
    if id is None:
        return list(range(len(nodes.frame)))
    checked_ids(nodes[id])
    return nodes[id].tolist() if nodes.typed else whole_numbers(nodes[id])
