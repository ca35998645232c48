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


def load_with_graph(path: Path, graph: GraphOptions) -> "tuple[NodeClassifier, Data]":
    """Return a model and the graph to use it on; what the user does not say of the graph, the model knows."""
    with working("Loading the model"):
        from fairpass.methods import load_model

        model = load_model(path)
    return model, graph.load(**_known(model.provenance_ or {}, graph))


def _known(provenance: dict[str, Any], graph: GraphOptions) -> dict[str, Any]:
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
    kept = ("label", "sensitive", "missing_sensitive", "id", "source", "target", *(["similarity"] if joined else []))
    same = {name: options[name] for name in kept if name in options}
    return {"encoding": provenance["encoding"], **same}


def _is_file(path: Path | None, origin: dict[str, Any]) -> bool:
    return path is not None and path.is_file() and sha256(path) == origin["sha256"]
