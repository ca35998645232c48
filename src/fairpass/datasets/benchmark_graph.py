"""A benchmark graph from its description and the content of its files."""

from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from fairpass.datasets.facebook100 import read_friendships, read_people
from fairpass.datasets.feature_graphs import NEIGHBOURS, SIMILARITY, cached_edges, nearest_neighbours, similarity_graph
from fairpass.datasets.graph import MISSING, GraphArrays, Ints, checked_ids, positions, simple_graph
from fairpass.datasets.options import FeatureScale
from fairpass.datasets.registry import CodedColumn, EdgeFile, GraphSpec, NeighbourRecipe, SimilarityRecipe
from fairpass.datasets.splits import benchmark_split


def benchmark_graph(
    spec: GraphSpec, contents: Mapping[str, bytes], *, scale: FeatureScale, keep_sensitive: bool, split_seed: int
) -> GraphArrays:
    """Return the graph that `spec` describes (see `load`); `contents` has the content of its files, by path."""
    rows = READERS[spec.reader][0](BytesIO(contents[spec.table.path]))
    y, sens = _codes(rows, spec.label), _codes(rows, spec.sensitive)
    sensitive = spec.sensitive.column
    raw = rows.drop(columns=[spec.label.column, *spec.dropped])
    raw[sensitive] = sens
    if not spec.sensitive_is_feature:
        raw = raw.drop(columns=sensitive)
    if spec.one_hot:
        raw = pd.get_dummies(raw, columns=list(spec.one_hot), prefix_sep="=")
    pairs = _pairs(spec, rows, raw, contents)
    graph = simple_graph(pairs[:, 0], pairs[:, 1], len(rows))
    features = scaled(raw, [str(column) for column in raw.columns if column != sensitive], scale)
    is_feature = keep_sensitive and spec.sensitive_is_feature
    if not is_feature:
        features = features.drop(columns=sensitive, errors="ignore")
    names = [str(column) for column in features.columns]
    origin = spec.graph.model_dump(mode="json", exclude={"file", "id_column"})
    return GraphArrays(
        x=features.to_numpy(dtype=np.float32),
        edge_index=graph.edge_index,
        y=y,
        sens=sens,
        **benchmark_split(y, sens, spec.split, spec.labels_for_training, split_seed).masks(),
        feature_names=names,
        sens_column=names.index(sensitive) if is_feature else None,
        label_names=list(spec.label.names),
        group_names=list(spec.sensitive.names),
        provenance={
            "name": spec.name,
            "title": spec.title,
            "source": spec.source,
            "reference": spec.citation,
            "licence": spec.licence,
            "files": [file.model_dump() for file in spec.files],
            "graph": origin | ({"file": spec.files[-1].path} if isinstance(spec.graph, EdgeFile) else {}),
            "self_loops_removed": graph.self_loops_removed,
            "duplicate_edges_merged": graph.duplicate_edges_merged,
            "split": {"rule": spec.split, "labels_for_training": spec.labels_for_training},
            "options": {"scale": scale, "keep_sensitive": is_feature, "split_seed": split_seed},
            "caveats": list(spec.caveats),
        },
    )


def _codes(rows: pd.DataFrame, coded: CodedColumn) -> Ints:
    return np.asarray(rows[coded.column].map(coded.codes).fillna(MISSING), dtype=np.int64)


def scaled(table: pd.DataFrame, columns: list[str], scale: FeatureScale) -> pd.DataFrame:
    """Return `table` as float64, `columns` scaled to [-1, 1], or to mean 0 and variance 1, or not at all.

    The arithmetic is that of scikit-learn's scalers, bit for bit; importing them takes a second.
    """
    result = table.astype("float64")
    values, eps = result[columns].to_numpy(), np.finfo(np.float64).eps
    if scale == "minmax" and columns:
        low, spread = values.min(axis=0), np.ptp(values, axis=0)
        factor = 2 / np.where(spread < 10 * eps, 1.0, spread)
        result[columns] = values * factor + (-1 - low * factor)
    elif scale == "standard" and columns:
        count, mean = len(values), values.sum(axis=0) / len(values)
        centred = values - mean
        variance = ((centred**2).sum(axis=0) - centred.sum(axis=0) ** 2 / count) / count
        constant = variance <= count * eps * variance + (count * eps * mean) ** 2
        result[columns] = centred / np.where(constant, 1.0, np.sqrt(variance))
    return result


def _pairs(spec: GraphSpec, rows: pd.DataFrame, raw: pd.DataFrame, contents: Mapping[str, bytes]) -> Ints:
    match spec.graph:
        case SimilarityRecipe(threshold=threshold, minmax_columns=columns):
            features = scaled(raw, list(columns), "minmax").to_numpy()
            recipe = SIMILARITY.format(threshold=threshold.hex())
            return cached_edges(features, recipe, partial(similarity_graph, threshold=threshold))
        case NeighbourRecipe(neighbours=count):
            features = scaled(raw, list(raw.columns), "standard").to_numpy()
            recipe = NEIGHBOURS.format(neighbours=count)
            return cached_edges(features, recipe, partial(nearest_neighbours, neighbours=count))
        case EdgeFile(id_column=id_column):
            file = BytesIO(contents[spec.files[-1].path])
            ends = pd.DataFrame(READERS[spec.reader][1](file), columns=["source", "target"])
            ids: pd.Index[Any] = pd.RangeIndex(len(rows)) if id_column is None else checked_ids(rows[id_column])
            return np.stack([positions(ends[end], ids) for end in ("source", "target")], axis=1)


def read_pairs(file: BytesIO) -> Ints:
    """Return the two ids on each line of a text file, shape [E, 2]; 3 may be written as 3.0."""
    pairs: Ints = pd.read_csv(file, sep=r"\s+", header=None).to_numpy().astype(np.int64)
    return pairs


# How a file becomes a table of nodes, and edges of shape [E, 2].
_Reader = tuple[Callable[[BytesIO], pd.DataFrame], Callable[[BytesIO], Ints]]
READERS: dict[str, _Reader] = {"text": (pd.read_csv, read_pairs), "facebook100": (read_people, read_friendships)}
