"""A graph from a user's own tables of nodes and edges."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from inspect import Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.column_encoding import as_text, text_of
from fairpass.datasets.edges import EdgeList, EdgeOrigin, edge_list, header_names
from fairpass.datasets.encoded_columns import Difference
from fairpass.datasets.encoding import Encoding, feature_columns
from fairpass.datasets.feature_graphs import similarity_graph
from fairpass.datasets.graph import Floats, GraphArrays, RemovedEdges, checked_ids, simple_graph
from fairpass.datasets.grouping import TIMES
from fairpass.datasets.node_arrays import NodeArrays
from fairpass.datasets.options import TableOptions
from fairpass.datasets.table_files import Table, TableSource, read_table
from fairpass.datasets.target_column import TrainingLabels
from fairpass.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data

_REPORTED = 10  # differences from the fitted table

logger = logging.getLogger(__name__)


def from_tables(nodes: TableSource, edges: TableSource | None = None, **options: Any) -> "Data":
    """Return the graph in a table of nodes and a table of edges.

    What each column contains is recognised, unless `columns` has a rule for it: numbers, money, percentages and dates
    (as years before the latest) are scaled, flags become 1 and 0, categories become one column of 0 and 1 per value,
    named "column=value", and those with more than `max_levels` values the share of each label among the training nodes.
    Free text is left out. Labels and groups may be of any type and number: their sorted values get the indices 0, 1,
    ... in `y` and `sens`, and are stored in `label_names` and `group_names`. A node without a label stays in the graph
    with y = -1 and is in no mask. Edges are undirected: (a, b) and (b, a) are one; duplicates and self-loops are
    removed and counted in `provenance`. With `edge_weight`, the graph has an `edge_weight` as well: the weights of all
    edges between two nodes are added, and divided by the mean over the graph's edges. The tables are not changed.

    With `encoding`, a table is encoded as an earlier one, and `provenance["differences"]` says how it differs from it.
    It may lack the label and, with `missing_sensitive="unknown"`, the sensitive attribute.

    Args:
        nodes: One row per node: a path (.csv, .tsv, .jsonl, .ndjson, each also with .gz, .parquet, .pq) or a DataFrame,
            whose index is ignored. In CSV and TSV files an empty cell, "NA", "null" and the like (pandas' list) are
            missing values, and ids are text: "7" and "07" differ. The graph has the ids as `node_ids`.
        edges: One row per edge: a path or a DataFrame, which may have no rows. Without it, `similarity` makes the
            edges; with `encoding`, both may be left out, and the graph has no edges.
        options: The fields of `TableOptions`; `label` and `sensitive` are required.
    """
    return from_tables_arrays(nodes, edges, **options).to_data()


# `help` and `inspect` show the options as keyword arguments.
_tables = [each for each in signature(from_tables).parameters.values() if each.kind is not each.VAR_KEYWORD]
from_tables.__signature__ = Signature([*_tables, *signature(TableOptions).parameters.values()])  # type: ignore[attr-defined]


def from_tables_arrays(nodes: TableSource, edges: TableSource | None = None, **given: Any) -> GraphArrays:
    """Return the graph of `from_tables` as numpy arrays, without importing torch."""
    options = TableOptions.parse(given)
    known = None if options.encoding is None else Encoding.load(options.encoding)
    _check_options(edges is not None, options, known)
    table = read_table(nodes, "nodes", **reading_options(options), text_columns=text_columns(options, known))
    found = NodeArrays.of(table, options, known)
    training = None if known else found.training(options.seed)
    encoding = known or Encoding.fit(table, options, found.labels, found.grouping, cast(TrainingLabels, training))
    allow_unknown = options.unknown_category == "zeros"
    x, differences = encoding.features(table, allow_unknown=allow_unknown, training=training)
    if known:
        report_differences(differences)
    listed_edges = _edges(table, x, edges, options)
    graph = simple_graph(listed_edges.source, listed_edges.target, len(x), listed_edges.weight)
    encoding = encoding.with_mean_weight(graph.mean_weight)
    provenance = table_provenance(table, options, encoding, listed_edges, graph)
    return GraphArrays(
        x=x,
        edge_index=graph.edge_index,
        y=found.y,
        sens=found.sens,
        **found.split.masks(),
        feature_names=encoding.feature_names,
        sens_column=encoding.sens_column,
        label_names=list(encoding.label_names),
        group_names=list(encoding.grouping.names),
        node_ids=_node_ids(table, options.id),
        edge_weight=normalised(graph.edge_weight, encoding.mean_edge_weight),
        provenance=provenance | ({"differences": [asdict(each) for each in differences]} if known else {}),
    )


def table_provenance(
    nodes: Table, options: TableOptions, encoding: Encoding, edges: EdgeOrigin, graph: RemovedEdges
) -> dict[str, Any]:
    """Return where a graph comes from, what was left out of it, and how its numbers are read."""
    features = [] if options.encoding is not None else feature_columns(nodes, options, encoding.grouping.title)
    used = {column.column for column in encoding.columns}
    positive = None if options.positive is None else text_of(options.positive)
    return {
        "source": "tables",
        "nodes": nodes.origin,
        "edges": edges.origin,
        "licence": None,
        "self_loops_removed": graph.self_loops_removed,
        "duplicate_edges_merged": graph.duplicate_edges_merged,
        "dangling_edges_dropped": edges.dangling,
        "one_way_pairs": graph.one_way_pairs,
        "edge_columns_ignored": list(edges.ignored),
        "columns_left_out": [column for column in features if column not in used],
        "options": options.model_dump() | {"positive": positive},
        "encoding": encoding.model_dump(),
    }


def options_of(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the tables of a graph were read with, without those that were not given."""
    options = {name: value for name, value in provenance["options"].items() if value is not None}
    if provenance["encoding"].get("version") == 2:
        # At that time the default was to refuse unknown categories: it was hardly ever chosen.
        options.pop("unknown_category", None)
    return options


def reading_options(options: TableOptions) -> dict[str, Any]:
    """Return how the text files of tables are read."""
    return {name: getattr(options, name) for name in ("text_encoding", "separator", "decimal")}


def text_columns(options: TableOptions, known: Encoding | None) -> dict[str, type[str]]:
    """Return the columns of a CSV file that stay text: ids, and numbers that must not be read with a decimal point."""
    ruled = [column for column, rule in options.columns.items() if rule.decimal == ","]
    ids = [] if options.id is None else [options.id]
    return dict.fromkeys([*ids, *(known.text_columns if known else ruled)], str)


def report_differences(differences: Sequence[Difference]) -> None:
    """Log how a new table differs from the fitted one, the first differences in a line each."""
    for each in differences[:_REPORTED]:
        logger.warning("%s", each.note)
    if len(differences) > _REPORTED:
        logger.warning("and %d more differences from the fitted table", len(differences) - _REPORTED)


def similarity_origin(similarity: float | None) -> dict[str, str | None]:
    """Return what `provenance` says about edges that are in no table."""
    similar = f"features at least {similarity} times as similar as the nearest neighbour's"
    return {"source": "no edges" if similarity is None else similar, "sha256": None}


def _check_options(edges: bool, options: TableOptions, known: Encoding | None) -> None:
    # With a known encoding the nodes are for prediction, and may have no edges.
    sources = edges + (options.similarity is not None)
    if sources == 2 or (sources == 0 and known is None):
        given = "both" if sources else "neither"
        raise DataError(f"give a table of 'edges', or a threshold of 'similarity' to make them from (got {given})")
    if options.edge_weight is not None and not edges and known is None:
        raise DataError(
            f"'edge_weight' must be a column of 'edges' (got {options.edge_weight!r} without a table of edges)"
        )
    title = TIMES.join(options.sensitive_columns)
    if known is not None and (known.label, known.grouping.title) != (options.label, title):
        expected, got = f"{known.label!r} and {known.grouping.title!r}", f"{options.label!r} and {title!r}"
        raise DataError(f"'label' and 'sensitive' must be as in 'encoding', {expected} (got {got})")


def _edges(nodes: Table, x: NDArray[np.float32], edges: TableSource | None, options: TableOptions) -> EdgeList:
    if edges is None:
        alone = options.similarity is None or len(x) == 1
        pairs = np.empty((0, 2), dtype=np.int64) if alone else similarity_graph(x, options.similarity or 1.0)
        return EdgeList(pairs[:, 0], pairs[:, 1], origin=similarity_origin(options.similarity))
    from fairpass.datasets.out_of_core.edge_arrays import are_many, read_edges

    if are_many(nodes, edges, options):
        return read_edges(nodes, Path(cast(str, edges)), options)
    kept, texts = (None, None) if options.id is None else (str, as_text(nodes[options.id]))
    names = header_names(lambda cell: texts is not None and bool((texts == cell).any()), options)
    table = read_table(edges, "edges", **reading_options(options), text_columns=kept, names=names)
    if options.id is None:
        return edge_list(table, pd.RangeIndex(len(x)), options)
    as_texts = nodes.typed != table.typed  # in a CSV file, ids are text
    ids = checked_ids(as_text(nodes[options.id]) if as_texts else nodes[options.id])
    return edge_list(table, ids, options, as_texts=as_texts)


def normalised(weight: Floats | None, mean: float | None) -> NDArray[np.float32] | None:
    """Return weights of edges divided by their mean: an edge of mean weight counts as one without weights does."""
    return None if weight is None else (weight / (mean or 1.0)).astype(np.float32)


def _node_ids(nodes: Table, id: str | None) -> list[Any]:
    """Return the ids of the nodes: row numbers if they have none, numbers if all texts of a CSV file are whole ones."""
    if id is None:
        return list(range(len(nodes)))
    checked_ids(nodes[id])
    texts = nodes[id].tolist()
    if nodes.typed:
        return texts
    try:
        numbers = [int(text) for text in texts]
    except ValueError:
        return texts
    return numbers if list(map(str, numbers)) == texts else texts  # "007" stays text
