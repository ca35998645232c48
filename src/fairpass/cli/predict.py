"""`fairpass predict`: a stored model's scores and labels for every node, as a table."""

from pathlib import Path
from typing import Annotated

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.option_groups import with_option_groups
from fairpass.cli.output import examples, print_line, working
from fairpass.cli.stored_model import ModelPath, load_with_graph

EXAMPLES = examples(
    {
        "Every node of a benchmark": ("fairpass predict runs/german/model.safetensors german --out predictions.csv"),
        "People whom the model has never seen": (
            "fairpass predict runs/people/model.safetensors --nodes others.csv --edges their_friends.csv "
            "--out predictions.parquet"
        ),
    }
)


@with_option_groups
def predict(
    model: ModelPath,
    graph: GraphOptions,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the predictions: .csv or .parquet.")],
) -> None:
    """Write a stored model's predictions for every node of a graph.

    Each row has the node's id, its score (the probability of the positive label;
    with more than two labels, of each), the predicted label, the node's group, and
    which part of the split it is in, if it is in one.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise typer.BadParameter(f"--out must end in .csv or .parquet (got {str(out)!r})")
    classifier, data = load_with_graph(model, graph)
    with working("Predicting"):
        from fairpass.projects.predictions import prediction_table, write_table

        predictions = prediction_table(classifier, data)
        write_table(predictions, out)
    print_line(f"{len(predictions):,} predictions are in {out}.")
