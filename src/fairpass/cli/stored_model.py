"""A stored model, and a graph made the way the model knows it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.output import working
from fairpass.files import sha256

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.methods import NodeClassifier

ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file that `fairpass train` wrote: model.safetensors.")
]

# What holds for other tables, too; all else is in the encoding.
_KEPT = ("label", "sensitive", "missing_sensitive", "id", "source", "target", "drop", "text_encoding")


def load_with_graph(path: Path, graph: GraphOptions, **defaults: Any) -> "tuple[NodeClassifier, Data]":
    """Return a model and the graph to use it on; what the user does not say of the graph, the model knows.

    Args:
        path: of the model.
        graph: what the user says.
        defaults: arguments for tables that the model was not fitted to, instead of what it knows.
    """
    model = _load(path)
    return model, graph.load(**_known(model.provenance_ or {}, graph, defaults))


def load_with_joined_graph(path: Path, new: GraphOptions, place: str, **defaults: Any) -> "tuple[NodeClassifier, Data]":
    """Return a model and the graph that it was fitted to, joined with new nodes.

    Args:
        path: of the model.
        new: what the user says of the new nodes.
        place: of the fitted graph: a run directory, or its tables.
        defaults: arguments for what the user does not say.
    """
    new.check_new_nodes()
    model = _load(path)
    with working("Reading the fitted graph"):
        from fairpass.projects.fitted_graph import fitted_graph

        graph = fitted_graph(model.provenance_, place)
    return model, new.join_to(graph, **defaults)


def _load(path: Path) -> "NodeClassifier":
    with working("Loading the model"):
        from fairpass.methods import load_model

        return load_model(path)


def _known(provenance: dict[str, Any], graph: GraphOptions, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return what was said of the fitted graph that holds for this one, too."""
    options = {name: value for name, value in provenance.get("options", {}).items() if value is not None}
    if graph.name is not None:
        # Above all the split: nodes that the model was trained on must not be test nodes now.
        return options if provenance.get("name") == graph.name else {}
    if "encoding" not in provenance:
        return {}
    joined = graph.edges is None and "similarity" in options
    if _is_file(graph.nodes, provenance["nodes"]) and (joined or _is_file(graph.edges, provenance["edges"])):
        return options
    kept = [*_KEPT, "similarity"] if joined else _KEPT
    same = {name: options[name] for name in kept if name in options}
    return {"encoding": provenance["encoding"], **same, **defaults}


def _is_file(path: Path | None, origin: dict[str, Any]) -> bool:
    return path is not None and path.is_file() and sha256(path) == origin["sha256"]
