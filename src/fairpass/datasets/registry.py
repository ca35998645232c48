"""The benchmark graphs by name."""

import os
from pathlib import Path
from typing import Literal, get_args

from torch_geometric.data import Data

from fairpass.datasets.adult import ADULT
from fairpass.datasets.bail import BAIL
from fairpass.datasets.benchmark_graph import benchmark_graph
from fairpass.datasets.credit import CREDIT
from fairpass.datasets.download import data_directory, obtain
from fairpass.datasets.facebook100 import AMHERST41, JOHNS_HOPKINS55, REED98
from fairpass.datasets.german import GERMAN
from fairpass.datasets.income import INCOME
from fairpass.datasets.nba import NBA
from fairpass.datasets.packaged import read_packaged
from fairpass.datasets.scaling import FeatureScale
from fairpass.datasets.spec import GraphSpec
from fairpass.datasets.splits import PUBLISHED_SEED
from fairpass.errors import DataError

Scale = Literal[FeatureScale, "published"]

SPECS = {spec.name: spec for spec in (GERMAN, CREDIT, BAIL, ADULT, INCOME, NBA, REED98, AMHERST41, JOHNS_HOPKINS55)}


def names() -> list[str]:
    """Return the names `load` knows."""
    return list(SPECS)


def graph_spec(name: str) -> GraphSpec:
    """Return the description of the benchmark graph `name`."""
    if name not in SPECS:
        raise DataError(f"'name' must be one of {', '.join(map(repr, SPECS))} (got {name!r})")
    return SPECS[name]


def is_available(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> bool:
    """Return whether `load(name)` needs no download."""
    directory = data_directory(data_dir)
    return all(file.url is None or (directory / file.path).exists() for file in graph_spec(name).files)


def fetch(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> list[Path]:
    """Download the files of a graph unless they are there already, and return their paths.

    Args:
        name: One of `names()`.
        data_dir: Where the files are looked for and put; by default the directory the environment variable
            `FAIRPASS_DATA` names, else `data` in the user's cache directory.

    Returns:
        One path per file; none for a graph that is part of the package.
    """
    spec = graph_spec(name)
    directory = data_directory(data_dir)
    fetched = []
    for file in spec.files:
        if file.url is not None:
            obtain(file, spec.title, directory)
            fetched.append(directory / file.path)
    return fetched


def load(
    name: str,
    *,
    scale: Scale = "standard",
    keep_sensitive: bool = True,
    split_seed: int = PUBLISHED_SEED,
    data_dir: str | os.PathLike[str] | None = None,
) -> Data:
    """Return a benchmark graph, with the published edges and, where there is one, the published split.

    In addition to `x`, `edge_index` (both directions), `y`, `sens` and the three masks, the graph has
    `feature_names`, `sens_column` (the sensitive attribute's column of `x`), `label_names`, `group_names`,
    and `provenance`: the origin and licence of the files, known problems, the options used here. PyG keeps no
    attribute that is None, so without a sensitive column read `data.get("sens_column")`.

    A node whose label or group is unknown has -1 in `y` or `sens`. It stays in the graph, and is in no mask.

    Args:
        name: One of `names()`: "german", "credit", "bail", "adult", "income", "nba", "reed98", "amherst41" or
            "johns-hopkins55".
        scale: What is done to every feature but the sensitive one. "standard" scales to mean 0 and variance 1,
            "minmax" to [-1, 1], "none" leaves the table's values; "published" is what the literature does:
            "none" on German, "minmax" on Credit and Bail, "standard" on the others. The edges stay the same.
        keep_sensitive: Whether the sensitive attribute stays among the features, where it is one. The edges
            stay the same.
        split_seed: The seed of the split; the default gives the published split.
        data_dir: Where files that are not part of the package are found, or downloaded to (see `fetch`).
    """
    spec = graph_spec(name)
    if scale not in get_args(Scale):
        raise DataError(f"'scale' must be one of {', '.join(map(repr, get_args(Scale)))} (got {scale!r})")
    directory = data_directory(data_dir)
    contents = {
        file.path: read_packaged(file) if file.url is None else obtain(file, spec.title, directory)
        for file in spec.files
    }
    return benchmark_graph(
        spec,
        contents,
        scale=spec.published_scale if scale == "published" else scale,
        keep_sensitive=keep_sensitive,
        split_seed=split_seed,
    )
