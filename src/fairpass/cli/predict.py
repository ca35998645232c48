"""`fairpass predict`: a stored model's scores and labels for every node, as a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.option_groups import with_option_groups
from fairpass.cli.output import examples, print_line, working
from fairpass.cli.prediction_options import PredictionOptions
from fairpass.cli.stored_model import ModelPath, load_with_graph, load_with_joined_graph

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

EXAMPLES = examples(
    {
        "Every node of a benchmark": ("fairpass predict runs/german/model.safetensors german --out predictions.csv"),
        "People whom the model has never seen": (
            "fairpass predict runs/people/model.safetensors --nodes others.csv --edges their_friends.csv "
            "--out predictions.parquet"
        ),
        "New people, whose edges may name people that the model was fitted to": (
            "fairpass predict runs/people/model.safetensors --nodes new.csv --edges new_edges.csv "
            "--graph runs/people --out predictions.csv"
        ),
        "The same, with the tables of the fit": (
            "fairpass predict runs/people/model.safetensors --nodes new.csv --edges new_edges.csv "
            "--graph people.csv,friends.csv --out predictions.csv"
        ),
        "One person, or a few without edges": (
            "fairpass predict runs/people/model.safetensors --nodes one.csv --out predictions.csv"
        ),
    }
)

# What is done with nodes of unknown group.
_DONE = {
    "none": "where the method needs the group, their scores are not corrected",
    "estimate": "where the method needs the group, theirs is estimated from the features",
    "error": "the method does not need the group",  # or it would have refused them
}


@with_option_groups
def predict(
    model: ModelPath,
    graph: GraphOptions,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the predictions: .csv or .parquet.")],
    fitted: Annotated[
        str | None,
        typer.Option(
            "--graph",
            metavar="RUN|NODES,EDGES",
            help="The graph of the fit, which the nodes are joined to: the directory of its run, or its two tables.",
            rich_help_panel="Own tables",
        ),
    ] = None,
    *,
    prediction: PredictionOptions,
) -> None:
    """Write a stored model's predictions for every node of a graph.

    Each row has the node's id, its score (the probability of the positive label;
    with more than two labels, of each), the predicted label, the node's group, and
    which part of the split it is in, if it is in one.

    Tables are read as those of the fit were; label, edges and groups may be
    missing. With --graph, the nodes are new ones whose edges may also name ids of
    the graph of the fit, and only they have a row.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise typer.BadParameter(f"--out must end in .csv or .parquet (got {str(out)!r})")
    _check_no_table_is_lost(out, graph, fitted)
    groups = {"missing_sensitive": prediction.missing_sensitive}
    if fitted is None:
        classifier, data = load_with_graph(model, graph, edges=None, **groups)
    else:
        classifier, data = load_with_joined_graph(model, graph, fitted, **groups)
    with working("Predicting"):
        from fairpass.projects.predictions import prediction_table, write_table

        predictions = prediction_table(classifier, data, **prediction.given())
        write_table(predictions, out)
    print_line(f"{len(predictions):,} predictions are in {out}.")
    for sentence in (_edges(data), _groups(predictions, prediction)):
        if sentence:
            print_line(sentence)


def _check_no_table_is_lost(out: Path, graph: GraphOptions, fitted: str | None) -> None:
    """Refuse to write the predictions over a table that they are made from."""
    tables = [graph.nodes, graph.edges, *(Path(part) for part in (fitted or "").split(",") if part)]
    if out.exists() and any(table is not None and table.exists() and table.samefile(out) for table in tables):
        raise typer.BadParameter(f"--out must be another file than the tables (got {str(out)!r})")


def _edges(data: "Data") -> str:
    """Return how new nodes are joined to the graph, or that there are no edges at all."""
    import torch

    alone = torch.ones(data.num_nodes, dtype=torch.bool)
    alone[data.edge_index[0]] = False
    new = data.get("new_mask")
    if new is None:
        return "None of the nodes has an edge: they are classified by their features alone." if alone.all() else ""
    source, target = data.edge_index
    links = int((new[source] & ~new[target]).sum())
    sentence = f"Edges between new nodes and the {int((~new).sum()):,} nodes of the graph: {links:,}."
    count = int(alone[new].sum())
    return f"{sentence} New nodes without any edge: {count:,}." if count else sentence


def _groups(predictions: "pd.DataFrame", prediction: PredictionOptions) -> str:
    """Return how many nodes have an unknown group, and what was done with them."""
    unknown = int(predictions["group"].isna().sum())
    done = _DONE[prediction.unknown_group or "none"]
    return f"Nodes of unknown group: {unknown:,} of {len(predictions):,}; {done}." if unknown else ""
