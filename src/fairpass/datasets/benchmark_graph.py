"""A benchmark graph from its description and the content of its files."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets import neighbours, similarity
from fairpass.datasets.cache import cached_edges
from fairpass.datasets.edges import SimpleGraph, checked_ids, positions, simple_graph
from fairpass.datasets.scaling import FeatureScale, scaled
from fairpass.datasets.spec import CodedColumn, EdgeFile, GraphSpec, NeighbourRecipe, SimilarityRecipe
from fairpass.datasets.splits import benchmark_split
from fairpass.datasets.values import MISSING


def benchmark_graph(
    spec: GraphSpec, contents: Mapping[str, bytes], *, scale: FeatureScale, keep_sensitive: bool, split_seed: int
) -> Data:
    """Return the graph that `spec` describes; `contents` holds the content of each of its files, by path.

    See `load` for what the graph has and what the options mean.
    """
    rows = spec.read_table(contents[spec.table.path])
    y, sens = _codes(rows, spec.label), _codes(rows, spec.sensitive)
    sensitive = spec.sensitive.column
    raw = _raw_features(spec, rows, sens)
    graph = _simple_graph(spec, rows, raw, contents)
    features = scaled(raw, [column for column in raw.columns if column != sensitive], scale)
    is_feature = keep_sensitive and spec.sensitive_is_feature
    if not is_feature:
        features = features.drop(columns=sensitive, errors="ignore")
    feature_names = list(features)
    split = benchmark_split(y, sens, spec.split, spec.labels_for_training, split_seed)
    options = {"scale": scale, "keep_sensitive": is_feature, "split_seed": split_seed}
    return Data(
        x=torch.tensor(features.to_numpy(), dtype=torch.float32),
        edge_index=graph.edge_index,
        y=y,
        sens=sens,
        train_mask=split.train,
        val_mask=split.val,
        test_mask=split.test,
        feature_names=feature_names,
        sens_column=feature_names.index(sensitive) if is_feature else None,
        label_names=list(spec.label.names),
        group_names=list(spec.sensitive.names),
        provenance=_provenance(spec, graph, options),
    )


def _codes(rows: pd.DataFrame, coded: CodedColumn) -> Tensor:
    codes = {value: code for code, value in enumerate(coded.values)}
    found = rows[coded.column].map(codes).fillna(MISSING)
    return torch.tensor(found.to_numpy(), dtype=torch.long)


def _raw_features(spec: GraphSpec, rows: pd.DataFrame, sens: Tensor) -> pd.DataFrame:
    """Return the features before scaling, the sensitive one as the group's code."""
    raw = rows.drop(columns=[spec.label.column, *spec.dropped])
    raw[spec.sensitive.column] = sens.numpy()
    if not spec.sensitive_is_feature:
        raw = raw.drop(columns=spec.sensitive.column)
    if spec.one_hot:
        raw = pd.get_dummies(raw, columns=list(spec.one_hot), prefix_sep="=")
    return raw


def _simple_graph(spec: GraphSpec, rows: pd.DataFrame, raw: pd.DataFrame, contents: Mapping[str, bytes]) -> SimpleGraph:
    match spec.graph:
        case SimilarityRecipe(threshold, minmax_columns):
            pairs = cached_edges(
                scaled(raw, minmax_columns, "minmax").to_numpy(),
                similarity.recipe(threshold),
                partial(similarity.build_graph, threshold=threshold),
            )
        case NeighbourRecipe(count):
            pairs = cached_edges(
                scaled(raw, list(raw.columns), "standard").to_numpy(),
                neighbours.recipe(count),
                partial(neighbours.nearest_neighbours, neighbours=count),
            )
        case EdgeFile() as edges:
            pairs = _pairs_in_file(edges, rows, contents[edges.file.path])
    return simple_graph(pairs[:, 0], pairs[:, 1], len(rows))


def _pairs_in_file(edges: EdgeFile, rows: pd.DataFrame, content: bytes) -> NDArray[np.int64]:
    ends = pd.DataFrame(edges.read(content), columns=["source", "target"])
    ids: pd.Index[Any] = pd.RangeIndex(len(rows)) if edges.id_column is None else checked_ids(rows[edges.id_column])
    return np.stack([positions(ends[end], ids) for end in ("source", "target")], axis=1)


def _provenance(spec: GraphSpec, graph: SimpleGraph, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": spec.name,
        "title": spec.title,
        "source": spec.source,
        "reference": spec.citation,
        "licence": spec.licence,
        "files": [{"path": file.path, "sha256": file.sha256, "url": file.url} for file in spec.files],
        "graph": _graph_origin(spec),
        "self_loops_removed": graph.self_loops_removed,
        "duplicate_edges_merged": graph.duplicate_edges_merged,
        "split": {"rule": spec.split, "labels_for_training": spec.labels_for_training},
        "options": options,
        "caveats": list(spec.caveats),
    }


def _graph_origin(spec: GraphSpec) -> dict[str, Any]:
    match spec.graph:
        case SimilarityRecipe(threshold, minmax_columns):
            return {"kind": "similarity", "threshold": threshold, "minmax_columns": list(minmax_columns)}
        case NeighbourRecipe(count):
            return {"kind": "nearest neighbours", "neighbours": count}
        case EdgeFile(file):
            return {"kind": "edge file", "file": file.path}
