"""What there is to know about one benchmark graph, as data."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.scaling import FeatureScale
from fairpass.datasets.splits import SplitRule


@dataclass(frozen=True)
class SourceFile:
    """One file of a benchmark: its path below the data directory, its checksum and its public address."""

    path: str
    sha256: str
    url: str | None = None
    """Where to download the file from; None if it is embedded in the package."""


@dataclass(frozen=True)
class CodedColumn:
    """A column that becomes codes 0, 1, ...: code k stands for `values[k]`, and is shown as `names[k]`.

    Every other value means that the label or the group is unknown (-1).
    """

    column: str
    values: tuple[int | str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class SimilarityRecipe:
    """Edges made by `similarity.build_graph` from all features, the sensitive one included.

    Those in `minmax_columns` are scaled to [-1, 1] before the similarity is taken, the others are left raw.
    """

    threshold: float
    minmax_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class NeighbourRecipe:
    """Edges made by `neighbours.nearest_neighbours` from all features, standardised, the sensitive one included."""

    neighbours: int


def read_pairs(content: bytes) -> NDArray[np.int64]:
    """Return the two ids on each line of a text file, shape [E, 2]; 3 may be written as 3.0."""
    pairs: NDArray[np.int64] = pd.read_csv(BytesIO(content), sep=r"\s+", header=None).to_numpy().astype(np.int64)
    return pairs


@dataclass(frozen=True)
class EdgeFile:
    """Edges read from a file, which may be the one that holds the nodes, too."""

    file: SourceFile
    id_column: str | None = None
    """The column of the node table with the ids used in the file; None if these are row numbers from 0."""
    read: Callable[[bytes], NDArray[np.int64]] = read_pairs


@dataclass(frozen=True)
class ExpectedStatistics:
    """The figures of a benchmark graph: what `load` must reproduce.

    A homophily is the share of equal ends among the edges whose both ends are known.
    """

    nodes: int
    features: int
    undirected_edges: int
    label_homophily: float
    sensitive_homophily: float
    max_degree: int
    labels: tuple[int, ...]
    """The number of nodes of each label; the other nodes have none."""
    groups: tuple[int, ...]
    """The number of nodes of each group; the group of the other nodes is unknown."""


def read_csv(content: bytes) -> pd.DataFrame:
    """Return the table in a CSV file."""
    return pd.read_csv(BytesIO(content))


@dataclass(frozen=True)
class GraphSpec:
    """One benchmark graph: its files and their origin, what the columns mean, and how edges and split are made."""

    name: str
    title: str
    table: SourceFile
    """The file with the nodes."""
    label: CodedColumn
    sensitive: CodedColumn
    graph: SimilarityRecipe | NeighbourRecipe | EdgeFile
    labels_for_training: int
    statistics: ExpectedStatistics
    source: str
    citation: str
    licence: str
    caveats: tuple[str, ...]
    read_table: Callable[[bytes], pd.DataFrame] = read_csv
    dropped: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()
    """Columns that become one column of 0 and 1 per value, none for a missing value; the others are numbers."""
    sensitive_is_feature: bool = True
    split: SplitRule = "stratified"
    published_scale: FeatureScale = "standard"
    """How the literature scales the features before training; the sensitive column is never scaled."""

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """All files, the table of the nodes first."""
        edges = self.graph.file if isinstance(self.graph, EdgeFile) else self.table
        return (self.table,) if edges == self.table else (self.table, edges)

    @property
    def embedded(self) -> bool:
        """Whether all files are part of the package."""
        return all(file.url is None for file in self.files)
