"""What there is to know about one benchmark table, as data."""

from dataclasses import dataclass

from fairpass.datasets.scaling import FeatureScale


@dataclass(frozen=True)
class CodedColumn:
    """A column that becomes codes 0, 1, ...: code k stands for `values[k]`, and is shown as `names[k]`."""

    column: str
    values: tuple[int | str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class SimilarityRecipe:
    """How `similarity.build_graph` makes a graph of all columns but the label and the dropped ones.

    Those in `minmax_columns` are scaled to [-1, 1] before the similarity is taken, the others are left raw.
    """

    threshold: float
    minmax_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class PublishedStatistics:
    """The figures of the published table and graph: what `load` must reproduce."""

    nodes: int
    features: int
    undirected_edges: int
    label_homophily: float
    sensitive_homophily: float
    max_degree: int


@dataclass(frozen=True)
class TableSpec:
    """One benchmark table: its origin, what its columns mean, and the graph and split made from it."""

    name: str
    title: str
    sha256: str
    label: CodedColumn
    sensitive: CodedColumn
    labels_for_training: int
    graph: SimilarityRecipe
    statistics: PublishedStatistics
    source: str
    citation: str
    licence: str
    caveats: tuple[str, ...]
    dropped: tuple[str, ...] = ()
    published_scale: FeatureScale = "minmax"
    """How the literature scales the features before training; the sensitive column is never scaled."""
    url: str | None = None
    """Where to download the table from; None if it is embedded in the package."""

    @property
    def file(self) -> str:
        """The name of the table's file."""
        return f"{self.name}.csv"

    @property
    def embedded(self) -> bool:
        """Whether the table is part of the package."""
        return self.url is None
