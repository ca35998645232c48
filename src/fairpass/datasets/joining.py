"""New nodes joined to the nodes of a graph that is there already."""

import logging
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets.edges import simple_graph
from fairpass.datasets.values import MISSING, listed
from fairpass.errors import DataError

_MASKS = ("train_mask", "val_mask", "test_mask")
_NAMES = ("feature_names", "label_names", "group_names")

logger = logging.getLogger(__name__)


def join(graph: Data, new: Data, links: Tensor) -> Data:
    """Return a graph with all nodes of `graph`, followed by all nodes of `new`.

    Its edges are those of both and the `links`, undirected, without duplicates or self-loops. The nodes of `graph` keep
    their labels, groups and masks. New nodes are in no mask, so nothing is trained or measured on them; `new_mask` says
    which they are. Their labels and groups are -1 where `new` has none. Both graphs stay as they are.

        joined = join(graph, new, links)
        classifier.predict(joined)[joined.new_mask]

    Args:
        graph: The graph with the known nodes, most likely the one that a classifier was fitted to.
        new: The new nodes and the edges between them. `x` is enough; names of features, labels and groups must
            be those of `graph`. Without `node_ids`, nodes are called by their position in the joined graph.
        links: The edges between new and known nodes, shape [2, E]: indices of `new` in the first row, of `graph`
            in the second.
    """
    _check_features(graph, new)
    for what in _NAMES:
        _check_names(what, list(graph.get(what) or ()), list(new.get(what) or ()))
    known, more = len(graph.x), len(new.x)
    _check_ends("links", links, (more, known))
    parts = {"graph": (graph.get("edge_index"), known), "new": (new.get("edge_index"), more)}
    for name, (edges, nodes) in parts.items():
        _check_ends(f"{name}.edge_index", edges, (nodes, nodes))

    attributes: dict[str, Any] = {"x": torch.cat([graph.x, new.x.to(graph.x)])}
    for name in ("y", "sens"):
        if graph.get(name) is not None or new.get(name) is not None:
            attributes[name] = torch.cat([_codes(graph, "graph", name), _codes(new, "new", name).to(graph.x.device)])
    for name in _MASKS:
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
    return Data(
        **attributes,
        edge_index=_joined_edges(graph, new, links),
        new_mask=torch.arange(known + more, device=graph.x.device) >= known,
    )


def _check_features(graph: Data, new: Data) -> None:
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


def _check_names(what: str, known: list[str], new: list[str]) -> None:
    """Raise `DataError` if both graphs have names, and not the same ones in the same order."""
    if known and new and known != new:
        raise DataError(f"'new.{what}' must be those of 'graph', {listed(known)} (got {listed(new)})")


def _check_ends(name: str, pairs: Any, sizes: tuple[int, int]) -> None:
    """Raise `DataError` unless the rows of `pairs` are indices of nodes; None stands for no edges."""
    if pairs is None and name != "links":
        return
    if not isinstance(pairs, Tensor):
        raise DataError(f"'{name}' must be a tensor (got {type(pairs).__name__})")
    if pairs.dim() != 2 or pairs.shape[0] != 2:
        raise DataError(f"'{name}' must have shape [2, edges] (got {list(pairs.shape)})")
    if pairs.numel() == 0:
        return
    if pairs.dtype == torch.bool or pairs.is_floating_point() or pairs.is_complex():
        raise DataError(f"'{name}' must be integer (got {pairs.dtype})")
    for row, size in enumerate(sizes):
        low, high = int(pairs[row].min()), int(pairs[row].max())
        if low < 0 or high >= size:
            whose = {"links": ("new", "graph")}.get(name, (name.partition(".")[0],) * 2)[row]
            raise DataError(
                f"row {row} of '{name}' must hold indices of the {size} nodes of '{whose}' "
                f"(got {low if low < 0 else high})"
            )


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
    # Row numbers are no ids: those of the new nodes go on where the others end.
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


def _joined_edges(graph: Data, new: Data, links: Tensor) -> Tensor:
    known, nodes = len(graph.x), len(graph.x) + len(new.x)
    own = no_edges() if graph.get("edge_index") is None else graph.edge_index.cpu()
    among = no_edges() if new.get("edge_index") is None else new.edge_index.cpu()
    shifted = links.cpu().long() + torch.tensor([[known], [0]])
    source, target = torch.cat([own, among + known, shifted], 1).long().numpy()
    edges = simple_graph(source, target, nodes).edge_index
    kept = int((edges < known).all(0).sum())
    if kept != own.shape[1]:
        logger.warning(
            "the edges of 'graph' were made undirected, without duplicates or self-loops: %d became %d",
            own.shape[1],
            kept,
        )
    return edges.to(graph.x.device)


def no_edges() -> Tensor:
    """Return an `edge_index` without edges."""
    return torch.empty((2, 0), dtype=torch.long)
