"""A model's predictions for every node, as a table and as a file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.files import atomic_path

if TYPE_CHECKING:
    from fairpass.methods import NodeClassifier

SUFFIXES = (".csv", ".parquet")
_SPLITS = ("train", "val", "test")


def prediction_table(model: "NodeClassifier", data: Data, **how: Any) -> pd.DataFrame:
    """Return one row per node: its id, score, predicted label, group, and split if it is in one.

    The score is the probability of the positive label; with more than two labels there is one for each. Of a graph
    that was joined from known and new nodes (`datasets.join`), only the new ones have a row.

    Args:
        model: the fitted classifier.
        data: the graph.
        how: what else `predict_proba` and `predict` are to know.
    """
    probabilities = model.predict_proba(data, **how).numpy()
    labels = data.label_names
    scores = {"score": probabilities[:, 1]}
    if len(labels) > 2:
        scores = {f"score of {label}": probabilities[:, i] for i, label in enumerate(labels)}
    table = pd.DataFrame(
        {
            "node": data.get("node_ids") or range(data.num_nodes),
            **scores,
            "label": [labels[i] for i in model.predict(data, **how).tolist()],
            "group": [data.group_names[i] if i >= 0 else None for i in data.sens.tolist()],
        }
    )
    split = pd.Series(None, index=table.index, dtype=object)
    for part in _SPLITS:
        split[data[f"{part}_mask"].numpy()] = part
    table = table.assign(split=split)
    if data.get("new_mask") is not None:
        table = table[data.new_mask.numpy()].reset_index(drop=True)
    return table if table["split"].notna().any() else table.drop(columns="split")


def write_table(table: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a table as CSV or Parquet, as the ending of the path says."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise DataError(f"'path' must end in {' or '.join(SUFFIXES)} (got {str(path)!r})")
    with atomic_path(path) as temporary:
        if path.suffix == ".csv":
            table.to_csv(temporary, index=False)
        else:
            try:
                table.to_parquet(temporary, engine="pyarrow", index=False)
            except ImportError as error:
                raise DataError("writing .parquet files needs pyarrow: pip install fairpass[parquet]") from error
    return path
