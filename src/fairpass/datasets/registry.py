"""The benchmark graphs by name."""

import gzip
import os
import zlib
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, get_args

import pandas as pd
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from fairpass.datasets.bail import BAIL
from fairpass.datasets.cache import cached_graph
from fairpass.datasets.credit import CREDIT
from fairpass.datasets.download import data_directory, mismatch, obtain
from fairpass.datasets.german import GERMAN
from fairpass.datasets.scaling import FeatureScale, scaled
from fairpass.datasets.spec import CodedColumn, TableSpec
from fairpass.datasets.splits import PUBLISHED_SEED, label_balanced_split
from fairpass.errors import DataError

Scale = Literal[FeatureScale, "published"]

SPECS = {spec.name: spec for spec in (GERMAN, CREDIT, BAIL)}


def names() -> list[str]:
    """Return the names `load` knows."""
    return list(SPECS)


def table_spec(name: str) -> TableSpec:
    """Return the description of the benchmark table `name`."""
    if name not in SPECS:
        raise DataError(f"'name' must be one of {', '.join(map(repr, SPECS))} (got {name!r})")
    return SPECS[name]


def is_available(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> bool:
    """Return whether `load(name)` needs no download."""
    table = table_spec(name)
    return table.embedded or (data_directory(data_dir) / table.file).exists()


def fetch(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """Download a table unless it is there already, and return its path; None if it is part of the package.

    Args:
        name: One of `names()`.
        data_dir: Where the table is looked for and put; by default the directory the environment variable
            `FAIRPASS_DATA` names, else `data` in the user's cache directory.
    """
    table = table_spec(name)
    if table.embedded:
        return None
    directory = data_directory(data_dir)
    obtain(table, directory)
    return directory / table.file


def load(
    name: str,
    *,
    scale: Scale = "minmax",
    keep_sensitive: bool = True,
    split_seed: int = PUBLISHED_SEED,
    data_dir: str | os.PathLike[str] | None = None,
) -> Data:
    """Return a benchmark graph, with the published edges and split.

    Besides `x`, `edge_index` (both directions), `y`, `sens` and the three masks, the graph has
    `feature_names`, `sens_column` (the sensitive attribute's column of `x`), `label_names`, `group_names`,
    and `provenance`: the table's origin and licence, what to beware of, the options used here. PyG keeps no
    attribute that is None, so without a sensitive column read `data.get("sens_column")`.

    Args:
        name: One of `names()`: "german", "credit" or "bail".
        scale: What is done to every feature but the sensitive one. "minmax" scales to [-1, 1], "standard" to
            mean 0 and variance 1, "none" leaves the table's values; "published" is what the literature does:
            "minmax" on Credit and Bail, "none" on German. The edges stay the same.
        keep_sensitive: Whether the sensitive attribute stays among the features. The edges stay the same.
        split_seed: The seed of the split; the default gives the published split.
        data_dir: Where a table that is not part of the package is found, or downloaded to (see `fetch`).
    """
    table = table_spec(name)
    if scale not in get_args(Scale):
        raise DataError(f"'scale' must be one of {', '.join(map(repr, get_args(Scale)))} (got {scale!r})")
    feature_scale: FeatureScale = table.published_scale if scale == "published" else scale

    rows = pd.read_csv(BytesIO(_content(table, data_dir)))
    y, sens = _codes(rows, table.label), _codes(rows, table.sensitive)
    raw = rows.drop(columns=[table.label.column, *table.dropped])
    raw[table.sensitive.column] = sens.numpy()
    features = scaled(raw, list(raw.columns.drop(table.sensitive.column)), feature_scale)
    if not keep_sensitive:
        features = features.drop(columns=table.sensitive.column)
    feature_names = list(features)
    split = label_balanced_split(y, table.labels_for_training, split_seed)
    return Data(
        x=torch.tensor(features.to_numpy(), dtype=torch.float32),
        edge_index=_edge_index(raw, table),
        y=y,
        sens=sens,
        train_mask=split.train,
        val_mask=split.val,
        test_mask=split.test,
        feature_names=feature_names,
        sens_column=feature_names.index(table.sensitive.column) if keep_sensitive else None,
        label_names=list(table.label.names),
        group_names=list(table.sensitive.names),
        provenance=_provenance(table, scale=feature_scale, keep_sensitive=keep_sensitive, split_seed=split_seed),
    )


def _content(table: TableSpec, data_dir: str | os.PathLike[str] | None) -> bytes:
    """Return the bytes of the table's file, known to be the published ones."""
    if not table.embedded:
        return obtain(table, data_directory(data_dir))
    compressed = resources.files("fairpass.datasets") / "embedded" / f"{table.file}.gz"
    try:
        content = gzip.decompress(compressed.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"'{compressed}' cannot be read ({error}); reinstall fairpass") from error
    if difference := mismatch(content, table):
        raise DataError(f"'{compressed}' is damaged ({difference}); reinstall fairpass")
    return content


def _codes(rows: pd.DataFrame, coded: CodedColumn) -> Tensor:
    codes = {value: code for code, value in enumerate(coded.values)}
    return torch.tensor(rows[coded.column].map(codes).to_numpy(), dtype=torch.long)


def _edge_index(raw: pd.DataFrame, table: TableSpec) -> Tensor:
    alike = scaled(raw, table.graph.minmax_columns, "minmax")
    edges = cached_graph(alike.to_numpy(), table.graph.threshold)
    both_directions: Tensor = to_undirected(torch.from_numpy(edges.T), num_nodes=len(raw))
    return both_directions


def _provenance(table: TableSpec, **options: Any) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "source": table.source,
        "url": table.url,
        "reference": table.citation,
        "licence": table.licence,
        "sha256": table.sha256,
        "graph": {
            "threshold": table.graph.threshold,
            "minmax_columns": list(table.graph.minmax_columns),
        },
        "options": options,
        "caveats": list(table.caveats),
    }
