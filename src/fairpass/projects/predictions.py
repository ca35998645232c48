"""Predictions of a model as a table and as a file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch_geometric.data import Data

from fairpass.datasets.graph import part_sizes
from fairpass.errors import DataError
from fairpass.files import atomic_path, write_text
from fairpass.plain_text import text_of_cell, to_csv

if TYPE_CHECKING:
    from fairpass.methods import NodeClassifier

SUFFIXES = (".csv", ".parquet")


def prediction_table(model: "NodeClassifier", data: Data, **scoring: Any) -> pd.DataFrame:
    """Return one row per node: id, score, predicted label, group and, if there are splits, the split.

    If limits on unfairness were checked for the model, a column "promise" has the verdict in every row, so that
    predictions of a model that was not shown to keep them cannot be taken for others.

    The score is the probability of the positive label; with more than two labels there is a score for each. If the
    graph joins known and new nodes (`datasets.join`), only the new ones have a row. `scoring` goes to `predict_proba`.
    """
    nodes = torch.arange(data.num_nodes)
    if data.get("new_mask") is not None:
        nodes = nodes[data.new_mask.cpu()]
        if scoring.get("unknown_group") == "error":  # about new nodes: the groups of known ones are not needed
            if unknown := int((data.sens[nodes] < 0).sum()):
                words = "the group of every new node must be known with unknown_group='error'"
                raise DataError(f"{words} (got {unknown} unknown)")
            scoring["unknown_group"] = "none"
    probabilities = model.predict_proba(data, **scoring)
    decided = model.decide(data, probabilities, nodes)
    probabilities = probabilities[nodes]
    labels = data.label_names
    scores = {"score": probabilities[:, 1].numpy()}
    if len(labels) > 2:
        scores = {f"score of {label}": probabilities[:, i].numpy() for i, label in enumerate(labels)}
    ids = data.get("node_ids") or range(data.num_nodes)
    table = pd.DataFrame(
        {
            "node": [ids[i] for i in nodes.tolist()],
            **scores,
            "label": [labels[i] for i in decided.tolist()],
            "group": [data.group_names[i] if i >= 0 else None for i in data.sens[nodes].tolist()],
        }
    )
    split = pd.Series(None, index=table.index, dtype=object)
    for part in part_sizes(data):
        split[data[f"{part}_mask"][nodes].numpy()] = part
    table = table.assign(split=split) if split.notna().any() else table
    return table if model.promise_ is None else table.assign(promise=model.promise_.verdict)


def write_table(table: pd.DataFrame, path: str | os.PathLike[str]) -> Path:
    """Write a table as CSV or Parquet, depending on the suffix of the path; `read_table` reads it.

    In CSV, text that a spreadsheet would take for a formula has an apostrophe before it.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise DataError(f"'path' must end in {' or '.join(SUFFIXES)} (got {str(path)!r})")
    if path.suffix == ".csv":
        return write_text(path, to_csv(table))
    with atomic_path(path) as temporary:
        try:
            with temporary.open("wb") as file:  # pyarrow opens no path that is not UTF-8
                table.to_parquet(file, engine="pyarrow", index=False)
        except ImportError as error:
            raise DataError("writing .parquet files needs pyarrow: pip install fairpass[parquet]") from error
    return path


def read_table(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Return a table that `write_table` wrote; in CSV, ids, labels and groups are read as the texts they were."""
    try:
        if Path(path).suffix == ".parquet":
            with Path(path).open("rb") as file:
                return pd.read_parquet(file, engine="pyarrow")
        texts = dict.fromkeys(("node", "label", "group", "split", "promise"), str)
        found = pd.read_csv(path, dtype=texts, keep_default_na=False, na_values=[""])
    except ValueError as error:  # of pandas, of pyarrow, or of the encoding
        raise DataError(f"'{path}' must be a table of predictions (damaged or not one: {error})") from None
    return found.rename(columns=text_of_cell).map(lambda cell: text_of_cell(cell) if isinstance(cell, str) else cell)
