"""`fairpass predict`: a stored model's scores and labels for every node, as a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.option_groups import with_option_groups
from fairpass.cli.output import examples, print_line, working
from fairpass.cli.stored_model import ModelPath, load_with_graph
from fairpass.errors import DataError
from fairpass.files import atomic_path

if TYPE_CHECKING:
    import pandas as pd
    from torch_geometric.data import Data

    from fairpass.methods import NodeClassifier

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
    with more than two labels, of each), the predicted label, and the node's group.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise typer.BadParameter(f"--out must end in .csv or .parquet (got {str(out)!r})")
    classifier, data = load_with_graph(model, graph)
    with working("Predicting"):
        predictions = _predictions(classifier, data)
        with atomic_path(out) as temporary:
            _write(predictions, temporary, out.suffix)
    print_line(f"{len(predictions):,} predictions are in {out}.")


def _predictions(model: "NodeClassifier", data: "Data") -> "pd.DataFrame":
    import pandas as pd

    probabilities = model.predict_proba(data).numpy()
    labels = data.label_names
    scores = {"score": probabilities[:, 1]}
    if len(labels) > 2:
        scores = {f"score of {label}": probabilities[:, i] for i, label in enumerate(labels)}
    return pd.DataFrame(
        {
            "node": data.get("node_ids") or range(data.num_nodes),
            **scores,
            "label": [labels[i] for i in model.predict(data).tolist()],
            "group": [data.group_names[i] if i >= 0 else None for i in data.sens.tolist()],
        }
    )


def _write(predictions: "pd.DataFrame", path: Path, suffix: str) -> None:
    if suffix == ".csv":
        predictions.to_csv(path, index=False)
        return
    try:
        predictions.to_parquet(path, engine="pyarrow", index=False)
    except ImportError as error:
        raise DataError("writing .parquet files needs pyarrow: pip install fairpass[parquet]") from error
