"""A graph from a user's own tables of nodes and edges."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import pandas as pd
import torch
from torch_geometric.data import Data

from fairpass.datasets.columns import Missing
from fairpass.datasets.edges import SimpleGraph, checked_ids, positions, simple_graph
from fairpass.datasets.encoding import Encoding, OnConstant, fit_encoding
from fairpass.datasets.reading import Table, TableSource, read_table
from fairpass.datasets.roles import check_no_id_column, check_roles, feature_columns
from fairpass.datasets.scaling import FeatureScale
from fairpass.datasets.split_column import check_split, split_by_column
from fairpass.datasets.splits import Split, stratified_split
from fairpass.datasets.values import MISSING, as_text, first_missing, text_of, whole_numbers
from fairpass.errors import DataError

MissingSensitive = Literal["error", "unknown"]
UnknownCategory = Literal["error", "zeros"]

logger = logging.getLogger(__name__)


def from_tables(
    nodes: TableSource,
    edges: TableSource,
    *,
    label: str,
    sensitive: str,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    keep_sensitive: bool = False,
    positive: Any = None,
    split: str | None = None,
    seed: int = 0,
    fractions: tuple[float, float, float] = (0.5, 0.25, 0.25),
    scale: FeatureScale = "minmax",
    missing: Missing = "error",
    missing_sensitive: MissingSensitive = "error",
    on_constant: OnConstant = "drop",
    max_levels: int = 50,
    encoding: Mapping[str, Any] | None = None,
    unknown_category: UnknownCategory = "error",
    text_encoding: str = "utf-8",
) -> Data:
    """Return the graph in a table of nodes and a table of edges.

    Numbers are scaled, true and false become 1 and 0, text and categories become one column of 0 and 1 per
    value, named "column=value". Labels and groups may be of any type and number: their sorted values get the
    indices 0, 1, ... in `y` and `sens`, and are remembered in `label_names` and `group_names`. A node without
    a label stays in the graph with y = -1 and is in no mask. Edges are undirected: (a, b) and (b, a) are one;
    duplicates and self-loops are removed and counted in `provenance`. The tables are not changed.

    Args:
        nodes: One row per node: a path (.csv, .tsv, .parquet, .pq) or a DataFrame, whose index is ignored.
            In CSV and TSV files an empty cell, "NA", "null" and the like (pandas' list) are missing values.
        edges: One row per edge, likewise; it may have no rows.
        label: The column with the label.
        sensitive: The column with the sensitive attribute, whose values are the groups.
        id: The column of `nodes` with the ids that edges refer to, of any type; None if edges refer to row
            numbers, from 0. (Then a column called "id" or "node_id" must be in `features` or `drop`, so that
            nobody forgets it.) CSV and TSV files hold ids as text: "7" and "07" differ. The graph has the ids
            as `node_ids`.
        source: The column of `edges` with one end; by default the first.
        target: The column of `edges` with the other end; by default the second.
        features: The columns that become features; by default all without another role.
        drop: Columns that do not become features.
        keep_sensitive: Whether the sensitive attribute is a feature too: one column, the index of the group,
            at `sens_column` (PyG stores no None: otherwise, `data.get("sens_column")` is None).
        positive: The label with index 1 if there are two; by default the larger.
        split: A column with "train", "val" (or "valid", "validation") and "test"; a node with anything else
            is in no mask. By default the labelled nodes are split by `stratified_split`.
        seed: The seed of that split.
        fractions: Its shares of training, validation and test nodes.
        scale: "minmax" scales numbers to [-1, 1], "standard" to mean 0 and variance 1, over all nodes.
        missing: What happens to missing feature values: "drop" leaves the column out, "mean" fills in the
            mean of the encoded column (of a category, the frequencies of its values), "indicator" does that
            and adds a column "x is missing".
        missing_sensitive: What happens to a missing sensitive value: "unknown" makes it sens = -1.
        on_constant: Whether a column with one value only is left out, with a warning in the log, or refused.
        max_levels: The largest number of values of a label, a sensitive attribute or a category.
        encoding: `data.provenance["encoding"]` of an earlier graph: encode this table exactly as that one.
            Then everything above from `features` to `positive`, and from `scale` to `missing`, comes from
            there. The table may lack the label and, if `missing_sensitive` is "unknown", the sensitive
            attribute. Without `split`, all labelled nodes are for testing.
        unknown_category: Whether a category that `encoding` does not know is refused, or all zeros.
        text_encoding: The encoding of CSV and TSV files.
    """
    _check_choices(
        scale=(scale, FeatureScale),
        missing=(missing, Missing),
        missing_sensitive=(missing_sensitive, MissingSensitive),
        on_constant=(on_constant, OnConstant),
        unknown_category=(unknown_category, UnknownCategory),
    )
    roles = {"label": label, "sensitive": sensitive, "id": id, "split": split}
    check_roles(roles, features, drop, keep_sensitive)
    known = None if encoding is None else Encoding.from_dict(encoding)
    if known and (known.label, known.sensitive) != (label, sensitive):
        raise DataError(
            f"'label' and 'sensitive' must be as in 'encoding', {known.label!r} and {known.sensitive!r} "
            f"(got {label!r} and {sensitive!r})"
        )

    node_table = read_table(nodes, "nodes", text_encoding=text_encoding, text_columns=None if id is None else {id: str})
    edge_table = read_table(edges, "edges", text_encoding=text_encoding, text_columns=None if id is None else str)
    if node_table.frame.empty:
        raise DataError("'nodes' must have at least one row (got an empty table)")
    if id is None:
        check_no_id_column(node_table, [*roles.values(), *(features or ()), *drop])
    if missing_sensitive == "error" and node_table[sensitive].isna().any():
        raise DataError(
            f"column {sensitive!r} must have a value for each node ({first_missing(node_table[sensitive])}): "
            f"mend the table, or choose missing_sensitive='unknown'"
        )

    chosen = [] if known else feature_columns(node_table, roles, features, drop, keep_sensitive)
    meaning = known or fit_encoding(
        node_table,
        label=label,
        sensitive=sensitive,
        features=chosen,
        positive=positive,
        scale=scale,
        missing=missing,
        on_constant=on_constant,
        max_levels=max_levels,
    )
    # A table that is encoded like an earlier one may lack labels and, if unknown groups are allowed, groups.
    unknown = torch.full((len(node_table.frame),), MISSING)
    y = unknown if known and label not in node_table else torch.from_numpy(meaning.labels(node_table))
    sens = unknown.clone() if known and sensitive not in node_table else torch.from_numpy(meaning.groups(node_table))
    graph, node_ids = _graph(node_table, edge_table, id, source, target)
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
        x=torch.from_numpy(meaning.features(node_table, allow_unknown=unknown_category == "zeros")),
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
            "edges": edge_table.origin,
            "licence": None,
            "self_loops_removed": graph.self_loops_removed,
            "duplicate_edges_merged": graph.duplicate_edges_merged,
            "columns_left_out": [column for column in chosen if column not in used],
            "options": {
                **roles,
                "source": source,
                "target": target,
                "features": None if features is None else list(features),
                "drop": list(drop),
                "keep_sensitive": keep_sensitive,
                "positive": None if positive is None else text_of(positive),
                "seed": seed,
                "fractions": list(fractions),
                "scale": scale,
                "missing": missing,
                "missing_sensitive": missing_sensitive,
                "on_constant": on_constant,
                "max_levels": max_levels,
                "unknown_category": unknown_category,
            },
            "encoding": meaning.to_dict(),
        },
    )


def _check_choices(**arguments: tuple[str, Any]) -> None:
    for name, (choice, choices) in arguments.items():
        if choice not in get_args(choices):
            raise DataError(f"'{name}' must be one of {', '.join(map(repr, get_args(choices)))} (got {choice!r})")


def _graph(
    nodes: Table, edges: Table, id: str | None, source: str | None, target: str | None
) -> tuple[SimpleGraph, list[Any]]:
    """Return the graph and the ids of its nodes."""
    if len(edges.columns) < 2:
        raise DataError(f"'edges' must have at least two columns (got {len(edges.columns)})")
    source, target = source or edges.columns[0], target or edges.columns[1]
    if source == target:
        raise DataError(f"'source' and 'target' must be different columns of 'edges' (both are {source!r})")
    ends = [edges[source], edges[target]]
    if edges.frame.empty:
        logger.warning("'edges' has no rows: the graph has no edges")
    ids: pd.Index[Any] = pd.RangeIndex(len(nodes.frame))
    node_ids = ids.tolist()
    if id is not None:
        column = nodes[id]
        node_ids = column.tolist() if nodes.typed else whole_numbers(column)
        if nodes.typed != edges.typed:  # a CSV file knows ids as text only
            column, ends = as_text(column), [as_text(end) for end in ends]
        ids = checked_ids(column)
    first, second = (positions(end, ids) for end in ends)
    return simple_graph(first, second, len(nodes.frame)), node_ids
