"""New people in tables, joined to a graph that was made from tables."""

import logging
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets.joining import join, no_edges
from fairpass.datasets.options import MissingSensitive, UnknownCategory
from fairpass.datasets.reading import TableSource, read_table
from fairpass.datasets.similarity import build_graph
from fairpass.datasets.tables import edges_made, ends_of, from_tables
from fairpass.datasets.values import as_text, first_missing, listed, text_of
from fairpass.errors import DataError

logger = logging.getLogger(__name__)


def join_tables(
    graph: Data,
    nodes: TableSource,
    edges: TableSource | None = None,
    *,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    missing_sensitive: MissingSensitive = "unknown",
    unknown_category: UnknownCategory | None = None,
    text_encoding: str | None = None,
) -> Data:
    """Return `graph` joined with the new nodes of a table, as `join` does.

    The new nodes are encoded as those of the graph were. An edge may join two new nodes, or a new and a known one,
    both by id. An edge between two known nodes is left out, and how many were is logged: tables of edges often repeat
    what is known, and the graph must stay the one that a classifier was fitted to.

    Ids are compared as text, so 7 in a Parquet file and "7" in a CSV file are the same, and "07" is another.

    Args:
        graph: A graph that `from_tables` has made, with `id` if there are `edges`: row numbers could not tell new
            nodes from known ones.
        nodes: One row per new node: a path or a DataFrame as in `from_tables`. The label may be missing.
        edges: One row per edge, likewise. None if the new nodes have no edges; if the edges of `graph` were made from
            `similarity`, they are made in the same way, over known and new nodes together.
        id: The column of `nodes` with the ids; by default, here and below, what it was for `graph`.
        source: The column of `edges` with one end.
        target: The column of `edges` with the other end.
        missing_sensitive: Whether a new node without a sensitive value, or a table without the column, is of an
            unknown group (sens = -1) or refused.
        unknown_category: Whether a category that the graph does not have is refused, or all zeros.
        text_encoding: The encoding of CSV and TSV files.
    """
    provenance = graph.get("provenance") or {}
    if "encoding" not in provenance:
        raise DataError(
            "'graph' must be made by 'from_tables' (it does not say how tables are encoded; "
            "'join' takes nodes that are encoded already)"
        )
    options = {name: value for name, value in provenance["options"].items() if value is not None}
    id = id or options.get("id")
    if edges is not None and "id" not in options:
        raise DataError(
            "'graph' must have ids that edges can name ('id' of 'from_tables'): its nodes are known by row numbers, "
            "which cannot tell them from new ones"
        )
    text_encoding = text_encoding or options.get("text_encoding", "utf-8")
    new = from_tables(
        nodes,
        label=options["label"],
        sensitive=options["sensitive"],
        id=id,
        features=options.get("features"),
        drop=options.get("drop", ()),
        keep_sensitive=options.get("keep_sensitive", False),
        missing_sensitive=missing_sensitive,
        encoding=provenance["encoding"],
        unknown_category=unknown_category or options.get("unknown_category", "error"),
        text_encoding=text_encoding,
    )
    origin = edges_made(None)
    among, links = no_edges(), no_edges()
    if "id" in options:
        ids = _ids_of_both(graph, new)
        if edges is not None:
            table = read_table(edges, "edges", text_encoding=text_encoding, text_columns=str)
            names = source or options.get("source"), target or options.get("target")
            first, second = (_found(end, ids) for end in ends_of(table, *names))
            among, links = _sorted_out(first, second, len(graph.x))
            origin = table.origin
    if edges is None and "similarity" in options:
        pairs = build_graph(torch.cat([graph.x.cpu(), new.x]).numpy(), options["similarity"])
        pairs = pairs[pairs[:, 1] >= len(graph.x)]  # i < j: those with a new end
        among, links = _sorted_out(pairs[:, 0], pairs[:, 1], len(graph.x))
        origin = edges_made(options["similarity"])
    new.edge_index = among
    joined = join(graph, new, links)
    joined.provenance["new"] |= {"nodes": new.provenance["nodes"], "edges": origin}
    return joined


def _ids_of_both(graph: Data, new: Data) -> "pd.Index[Any]":
    """Return the ids of known and then of new nodes as text, which is what tables of all kinds have in common."""
    known, more = ([text_of(each) for each in data.node_ids] for data in (graph, new))
    seen = set(known)
    if both := [each for each in more if each in seen]:
        raise DataError(
            f"'nodes' must hold new nodes only, but {len(both)} of its ids are in the graph already: {listed(both)}"
        )
    ids: pd.Index[Any] = pd.Index([*known, *more], dtype=object)
    if not ids.is_unique:
        raise DataError(f"ids must differ as text (more than once: {listed(ids[ids.duplicated()].tolist())})")
    return ids


def _found(ends: "pd.Series[Any]", ids: "pd.Index[Any]") -> NDArray[np.int64]:
    """Return for one end of each edge its position among the ids."""
    if ends.isna().any():
        raise DataError(f"column {ends.name!r} of 'edges' must have an id for each edge ({first_missing(ends)})")
    texts = as_text(ends).astype(object)
    found = ids.get_indexer(pd.Index(texts)).astype(np.int64)
    strangers = texts[found < 0]
    if len(strangers):
        others = strangers.nunique() - 1
        more = f" (and {others} other id{'s' if others > 1 else ''})" if others else ""
        raise DataError(
            f"'edges' names {strangers.iloc[0]!r} in row {strangers.index[0]}, "
            f"which is neither a new node nor one of the graph{more}"
        )
    return found


def _sorted_out(first: NDArray[np.int64], second: NDArray[np.int64], known: int) -> tuple[Tensor, Tensor]:
    """Return the edges among new nodes, and the links from new to known ones."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    if repeated := int((high < known).sum()):
        logger.warning("edges between two nodes of the graph are left out: %d (the graph stays as it was)", repeated)
    among = np.stack([low, high])[:, low >= known] - known
    crossing = (low < known) & (high >= known)
    links = np.stack([high[crossing] - known, low[crossing]])
    return torch.from_numpy(among), torch.from_numpy(links)
