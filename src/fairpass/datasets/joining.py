"""New nodes, as a graph or as tables, joined to the nodes of a known graph."""

import logging
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets.column_encoding import text_of
from fairpass.datasets.column_rules import DecimalMark
from fairpass.datasets.edges import EdgeList, edge_list, header_names
from fairpass.datasets.feature_graphs import similarity_graph
from fairpass.datasets.graph import MASKS, MISSING, Floats, listed, simple_graph
from fairpass.datasets.options import Dangling, MissingSensitive, TableOptions, UnknownCategory
from fairpass.datasets.table_files import TableSource, read_table
from fairpass.datasets.tables import from_tables, normalised, options_of, similarity_origin
from fairpass.errors import DataError

_NAMES = ("feature_names", "label_names", "group_names")

logger = logging.getLogger(__name__)


def join(graph: Data, new: Data, links: Tensor, link_weight: Tensor | None = None) -> Data:
    """Return a graph with all nodes of `graph`, followed by all nodes of `new`.

    Its edges are those of both and the `links`, undirected, without duplicates or self-loops. The nodes of `graph` keep
    their labels, groups and masks. New nodes are in no mask, so nothing is trained or measured on them; `new_mask`
    marks them. Their labels and groups are -1 where `new` has none. Both graphs stay unchanged.

        joined = join(graph, new, links)
        classifier.predict(joined)[joined.new_mask]

    Args:
        graph: The graph with the known nodes, usually the one that a classifier was fitted to.
        new: The new nodes and the edges between them. Only `x` is required; names of features, labels and groups must
            be those of `graph`. Without `node_ids`, the ids are the positions in the joined graph.
        links: The edges between new and known nodes, shape [2, E]: indices of `new` in the first row, of `graph`
            in the second.
        link_weight: The weight of each link, shape [E], if `graph` has `edge_weight`; on the same scale.
    """
    _check_same_features(graph, new)
    known, more = len(graph.x), len(new.x)
    crossing = _checked_ends("links", links, [("new", more), ("graph", known)]) + torch.tensor([[known], [0]])
    edges = [_edges_of(graph, "graph"), _edges_of(new, "new") + known, crossing]
    attributes: dict[str, Any] = {"x": torch.cat([graph.x, new.x.to(graph.x)])}
    for name in ("y", "sens"):
        if graph.get(name) is not None or new.get(name) is not None:
            attributes[name] = torch.cat([_codes(graph, "graph", name), _codes(new, "new", name).to(graph.x.device)])
    for name in MASKS:
        if graph.get(name) is not None:
            attributes[name] = torch.cat([graph[name], graph[name].new_zeros(more)])
    for name in (*_NAMES, "sens_column"):
        value = new.get(name) if graph.get(name) is None else graph[name]
        if value is not None:
            attributes[name] = list(value) if isinstance(value, list) else value
    if (ids := _joined_ids(graph, new)) is not None:
        attributes["node_ids"] = ids
    if graph.get("provenance") is not None:
        attributes["provenance"] = {**graph.provenance, "new": {"nodes": more}}
    source, target = torch.cat(edges, 1).numpy()
    weight = _joined_weights(graph, new, link_weight, [part.shape[1] for part in edges])
    found = simple_graph(source, target, known + more, weight, mirrored=True)
    if found.edge_weight is not None:
        attributes["edge_weight"] = torch.from_numpy(found.edge_weight).to(graph.x)
    joined = torch.from_numpy(found.edge_index)
    kept, before = int((joined < known).all(0).sum()), edges[0].shape[1]
    if kept != before:
        message = "the edges of 'graph' were made undirected, without duplicates or self-loops: %d became %d"
        logger.warning(message, before, kept)
    new_mask = torch.arange(known + more, device=graph.x.device) >= known
    return Data(**attributes, edge_index=joined.to(graph.x.device), new_mask=new_mask)


def join_tables(
    graph: Data,
    nodes: TableSource,
    edges: TableSource | None = None,
    *,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    edge_weight: str | None = None,
    dangling: Dangling | None = None,
    missing_sensitive: MissingSensitive = "unknown",
    unknown_category: UnknownCategory | None = None,
    text_encoding: str | None = None,
    separator: str | None = None,
    decimal: DecimalMark | None = None,
) -> Data:
    """Return `graph` joined with the new nodes of a table, as `join` does.

    The new nodes are encoded like those of the graph. An edge may join two new nodes, or a new and a known one, both by
    id. Edges between two known nodes are left out with a warning: tables of edges often repeat known ones, and the
    graph must stay the one that a classifier was fitted to.

    Ids are compared as text: 7 in a Parquet file and "7" in a CSV file are the same, "07" is different.

    Args:
        graph: A graph made by `from_tables`, with `id` if there are `edges`: row numbers do not distinguish new nodes
            from known ones.
        nodes: One row per new node: a path or a DataFrame as in `from_tables`. The label may be missing.
        edges: One row per edge: a path or a DataFrame. Without it, the new nodes have no edges; if the edges of `graph`
            were made from `similarity`, they are made in the same way, over known and new nodes together.
        id: The column of `nodes` with the ids. This and the following options default to those of `graph`.
        source: The column of `edges` with one end.
        target: The column of `edges` with the other end.
        edge_weight: The column of `edges` with their weights, if the edges of `graph` have any. They are divided by the
            mean weight of the edges of `graph`.
        dangling: Whether edges to nodes that exist neither here nor there are refused or dropped.
        missing_sensitive: Whether a new node without a sensitive value, or a table without the column, is of an
            unknown group (sens = -1) or refused.
        unknown_category: Whether a category that the graph does not have is all zeros, with a warning, or refused.
        text_encoding: The encoding of text files. This, `separator` and `decimal` are recognised unless they are given
            here or were given for the tables of `graph`.
        separator: The separator of CSV and TSV files.
        decimal: The decimal mark of numbers that could have either.
    """
    provenance = graph.get("provenance") or {}
    if "encoding" not in provenance:
        raise DataError(
            "'graph' must be made by 'from_tables' (it does not say how tables are encoded; "
            "'join' takes nodes that are encoded already)"
        )
    options = options_of(provenance)
    if edges is not None and "id" not in options:
        raise DataError(
            "'graph' must have ids that edges can name ('id' of 'from_tables'): its nodes are known by row numbers, "
            "which do not distinguish them from new ones"
        )
    mean = provenance["encoding"].get("mean_edge_weight")
    if edge_weight is not None and mean is None:
        raise DataError(f"'edge_weight' must be left out: the edges of 'graph' have no weights (got {edge_weight!r})")
    files = {"text_encoding": text_encoding, "separator": separator, "decimal": decimal}
    given = {"id": id, "unknown_category": unknown_category, **files}
    inherited = ("label", "sensitive", "drop", "keep_sensitive", *given)
    chosen: dict[str, Any] = {name: options[name] for name in inherited if name in options}
    chosen |= {name: value for name, value in given.items() if value is not None}
    new = from_tables(nodes, missing_sensitive=missing_sensitive, encoding=provenance["encoding"], **chosen)
    known = len(graph.x)
    empty = np.empty(0, dtype=np.int64)
    found = EdgeList(empty, empty, origin=similarity_origin(None))
    ids = _ids_of_both(graph, new) if "id" in options else None
    if edges is not None and ids is not None:
        named = {"source": source, "target": target, "edge_weight": edge_weight, "dangling": dangling}
        lasting = {name: options[name] for name in (*named, "unweighted") if name in options}
        roles = {name: value for name, value in named.items() if value is not None}
        reading = TableOptions(label=options["label"], sensitive=options["sensitive"], **lasting | roles)
        names = header_names(lambda cell: cell in ids, reading)
        texts = {name: chosen.get(name) for name in files}
        table = read_table(edges, "edges", **texts, text_columns=str, names=names)
        found = edge_list(table, ids, reading, as_texts=True)
    elif "similarity" in options:
        pairs = similarity_graph(torch.cat([graph.x.cpu(), new.x]).numpy(), options["similarity"])
        first, second = pairs[pairs[:, 1] >= known].T  # i < j: those with a new end
        found = EdgeList(first, second, origin=similarity_origin(options["similarity"]))
    if repeated := int((np.maximum(found.source, found.target) < known).sum()):
        logger.warning("edges between two nodes of the graph are left out: %d (the graph stays the same)", repeated)
    simple = simple_graph(found.source, found.target, known + len(new.x), found.weight)
    source_is_new, target_is_new = simple.edge_index >= known
    inside, crossing = source_is_new & target_is_new, source_is_new & ~target_is_new
    new.edge_index = torch.from_numpy(simple.edge_index[:, inside] - known)
    links = torch.from_numpy(simple.edge_index[:, crossing] - np.array([[known], [0]]))
    weight, link_weight = normalised(simple.edge_weight, mean), None
    if weight is not None:
        new.edge_weight, link_weight = torch.from_numpy(weight[inside]), torch.from_numpy(weight[crossing])
    joined = join(graph, new, links, link_weight)
    joined.provenance["new"] |= {"differences": new.provenance["differences"]}
    joined.provenance["new"] |= {"nodes": new.provenance["nodes"], "edges": found.origin}
    if found.dangling:
        joined.provenance["new"]["dangling_edges_dropped"] = found.dangling
    return joined


def _check_same_features(graph: Data, new: Data) -> None:
    for name, data in {"graph": graph, "new": new}.items():
        if not isinstance(data, Data):
            raise DataError(f"'{name}' must be a torch_geometric.data.Data (got {type(data).__name__})")
        x = data.get("x")
        if not isinstance(x, Tensor) or x.dim() != 2:
            got = f"shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise DataError(f"'{name}.x' must be a tensor of shape [nodes, features] (got {got})")
    if graph.x.shape[1] != new.x.shape[1]:
        raise DataError(f"'new.x' must have the {graph.x.shape[1]} features of 'graph' (got {new.x.shape[1]})")
    columns = graph.get("sens_column"), new.get("sens_column")
    if None not in columns and columns[0] != columns[1]:
        raise DataError(f"'new.sens_column' must be that of 'graph', {columns[0]} (got {columns[1]})")
    for what in _NAMES:
        known, more = list(graph.get(what) or ()), list(new.get(what) or ())
        if known and more and known != more:
            raise DataError(f"'new.{what}' must be those of 'graph', {listed(known)} (got {listed(more)})")


def _edges_of(data: Data, whose: str) -> Tensor:
    if data.get("edge_index") is None:
        return torch.empty((2, 0), dtype=torch.long)
    return _checked_ends(f"{whose}.edge_index", data.edge_index, [(whose, len(data.x))] * 2)


def _checked_ends(name: str, pairs: Any, sizes: list[tuple[str, int]]) -> Tensor:
    """Return pairs on the CPU; their rows must be indices of the nodes of the graphs in `sizes`."""
    if not isinstance(pairs, Tensor):
        raise DataError(f"'{name}' must be a tensor (got {type(pairs).__name__})")
    if pairs.dim() != 2 or pairs.shape[0] != 2:
        raise DataError(f"'{name}' must have shape [2, edges] (got {list(pairs.shape)})")
    if pairs.numel() and (pairs.dtype == torch.bool or pairs.is_floating_point() or pairs.is_complex()):
        raise DataError(f"'{name}' must be integer (got {pairs.dtype})")
    for row, (whose, size) in enumerate(sizes):
        wrong = pairs[row][(pairs[row] < 0) | (pairs[row] >= size)]
        if len(wrong):
            got = f"(got {int(wrong.min()) if wrong.min() < 0 else int(wrong.max())})"
            raise DataError(f"row {row} of '{name}' must have indices of the {size} nodes of '{whose}' {got}")
    return pairs.cpu().long()


def _joined_weights(graph: Data, new: Data, links: Tensor | None, edges: list[int]) -> Floats | None:
    """Return the weights of the edges of both graphs and of the links; all have weights, or none has."""
    parts = {
        "graph.edge_weight": graph.get("edge_weight"),
        "new.edge_weight": new.get("edge_weight"),
        "link_weight": links,
    }
    if all(part is None for part in parts.values()):
        return None
    weights = []
    for (name, part), count in zip(parts.items(), edges, strict=True):
        if part is None and count:
            raise DataError(f"'{name}' must be given for {count} edges, because other edges have weights")
        if part is not None and (not isinstance(part, Tensor) or part.shape != (count,)):
            raise DataError(f"'{name}' must be a tensor with a weight for each of {count} edges")
        weights.append(np.empty(0) if part is None else part.cpu().double().numpy())
    return np.concatenate(weights)


def _codes(data: Data, whose: str, name: str) -> Tensor:
    """Return the labels or groups of a graph, all unknown if it has none."""
    values = data.get(name)
    if values is None:
        return torch.full((len(data.x),), MISSING, device=data.x.device)
    if not isinstance(values, Tensor) or values.shape != (len(data.x),) or values.is_floating_point():
        raise DataError(f"'{whose}.{name}' must be an integer tensor of shape ({len(data.x)},)")
    return values.long()


def _joined_ids(graph: Data, new: Data) -> list[Any] | None:
    """Return the ids of all nodes, None if neither graph has any."""
    known, more = ([] if data.get("node_ids") is None else list(data.node_ids) for data in (graph, new))
    if not known and not more:
        return None
    # Row numbers are not ids: those of the new nodes continue where the others end.
    known = known or list(range(len(graph.x)))
    if not more or (more == list(range(len(more))) and known == list(range(len(known)))):
        more = list(range(len(known), len(known) + len(new.x)))
    for name, ids, data in (("graph", known, graph), ("new", more, new)):
        if len(ids) != len(data.x):
            raise DataError(f"'{name}.node_ids' must name the {len(data.x)} nodes (got {len(ids)} ids)")
    seen = set(known)
    if both := [each for each in more if each in seen]:
        raise DataError(f"'new.node_ids' must not be ids of 'graph' (in both: {listed(both)})")
    return known + more


def _ids_of_both(graph: Data, new: Data) -> "pd.Index[Any]":
    """Return the ids of known and then of new nodes as text, which all kinds of tables have in common."""
    ids: pd.Index[Any] = pd.Index([text_of(each) for data in (graph, new) for each in data.node_ids], dtype=object)
    if both := ids[ids.duplicated()].tolist():
        raise DataError(
            f"'nodes' must have new nodes only, with ids that differ as text, but {len(both)} of its ids are in the "
            f"graph already, or repeated: {listed(both)}"
        )
    return ids
