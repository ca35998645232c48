"""The benchmark graphs: one description each in `benchmarks/<name>.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field, ValidationError

from fairpass.datasets.download import data_directory, read_file
from fairpass.datasets.options import FeatureScale, Frozen
from fairpass.errors import DataError, validation_message
from fairpass.files import PathLike

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.datasets.graph import GraphArrays

Scale = Literal[FeatureScale, "published"]
SplitRule = Literal["balanced", "stratified"]
PUBLISHED_SEED = 20


class SourceFile(Frozen):
    """One file of a benchmark: its path below the data directory, its checksum and its public address."""

    path: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    url: str | None = None  # None if the file is part of the package, or next to a registered description


class CodedColumn(Frozen):
    """A column that becomes codes: k stands for `values[k]`, shown as `names[k]`; any other value is unknown (-1)."""

    column: str
    values: tuple[int | str, ...]
    names: tuple[str, ...]


class SimilarityRecipe(Frozen):
    """Edges made by `similarity_graph` from all features, the sensitive one included."""

    kind: Literal["similarity"] = "similarity"
    threshold: float
    minmax_columns: tuple[str, ...] = ()  # scaled to [-1, 1] before; the others are used raw


class NeighbourRecipe(Frozen):
    """Edges made by `nearest_neighbours` from all features, standardised, the sensitive one included."""

    kind: Literal["nearest neighbours"] = "nearest neighbours"
    neighbours: int


class EdgeFile(Frozen):
    """Edges read from a file; without `file`, from the file of the nodes."""

    kind: Literal["edge file"] = "edge file"
    file: SourceFile | None = None
    id_column: str | None = None  # of the nodes, with the ids used in the file; None: row numbers from 0


class ExpectedStatistics(Frozen):
    """The statistics of a benchmark graph, which a test compares with the loaded graph."""

    nodes: int
    features: int
    undirected_edges: int
    label_homophily: float
    sensitive_homophily: float
    max_degree: int
    labels: tuple[int, ...]  # the number of nodes of each label
    groups: tuple[int, ...]


class GraphSpec(Frozen):
    """One benchmark graph: its files and their origin, the meaning of its columns, and how edges and split are made."""

    name: str
    title: str
    summary: str
    source: str
    citation: str
    licence: str
    caveats: tuple[str, ...]
    table: SourceFile  # the nodes
    label: CodedColumn
    sensitive: CodedColumn
    graph: SimilarityRecipe | NeighbourRecipe | EdgeFile = Field(discriminator="kind")
    labels_for_training: int
    statistics: ExpectedStatistics
    reader: Literal["text", "facebook100"] = "text"  # of the files: a key of `benchmark_graph.READERS`
    dropped: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()  # become one column of 0 and 1 per value, all 0 for a missing value
    sensitive_is_feature: bool = True
    split: SplitRule = "stratified"
    published_scale: FeatureScale = "standard"  # in the literature; the sensitive column is never scaled
    folder: Path | None = None  # of the files without an address; None if they are part of the package

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """All files, the table of the nodes first."""
        edges = self.graph.file if isinstance(self.graph, EdgeFile) else None
        return (self.table,) if edges is None else (self.table, edges)

    @property
    def embedded(self) -> bool:
        return all(file.url is None for file in self.files)


@cache
def _specs() -> dict[str, GraphSpec]:
    folder = resources.files("fairpass.datasets") / "benchmarks"
    texts = {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in folder.iterdir()}
    return {name: _parse(tomllib.loads(texts[name]) | {"name": name}) for name in sorted(texts)}


def _parse(description: Mapping[str, Any]) -> GraphSpec:
    try:
        return GraphSpec(**description)
    except ValidationError as error:
        message = validation_message(error, GraphSpec.model_fields, "key")
        raise DataError(f"the description of the graph {description['name']!r} is wrong: {message}") from None


def register(description: GraphSpec | PathLike) -> GraphSpec:
    """Add a benchmark graph, so that `load` and the command line know it; one of the same name is replaced.

    Args:
        description: The description, or the path of a TOML file like those in `fairpass/datasets/benchmarks`, whose
            name becomes the graph's name. Files without a `url` are looked for next to it.
    """
    if not isinstance(description, GraphSpec):
        path = Path(description)
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        description = _parse(values | {"name": path.stem, "folder": path.parent})
    _specs()[description.name] = description
    return description


def names() -> list[str]:
    return list(_specs())


def graph_spec(name: str) -> GraphSpec:
    if name not in _specs():
        raise DataError(f"'name' must be one of {', '.join(map(repr, _specs()))} (got {name!r})")
    return _specs()[name]


def is_available(name: str, *, data_dir: PathLike | None = None) -> bool:
    """Return whether `load(name)` needs no download."""
    directory = data_directory(data_dir)
    return all(file.url is None or (directory / file.path).exists() for file in graph_spec(name).files)


def fetch(name: str, *, data_dir: PathLike | None = None) -> list[Path]:
    """Download the files of a graph unless they exist already, and return their paths.

    They are stored in `data_dir`, by default the directory in the environment variable `FAIRPASS_DATA`, else `data` in
    the user's cache directory. A graph that is part of the package has none.
    """
    spec, directory = graph_spec(name), data_directory(data_dir)
    remote = [file for file in spec.files if file.url is not None]
    for file in remote:
        read_file(file, spec.title, directory)
    return [directory / file.path for file in remote]


def load(
    name: str,
    *,
    scale: Scale = "standard",
    keep_sensitive: bool = True,
    split_seed: int = PUBLISHED_SEED,
    data_dir: PathLike | None = None,
) -> "Data":
    """Return a benchmark graph, with the published edges and, where there is one, the published split.

    In addition to `x`, `edge_index` (both directions), `y`, `sens` and the three masks, the graph has `feature_names`,
    `sens_column` (the sensitive attribute's column of `x`; without one, `data.get("sens_column")` is None),
    `label_names`, `group_names`, and `provenance`: the origin and licence of the files, known problems, the options
    used here. A node whose label or group is unknown (-1 in `y` or `sens`) stays in the graph, and is in no mask.

    Args:
        name: One of `names()`, for example "german".
        scale: How every feature but the sensitive one is scaled: "standard" to mean 0 and variance 1, "minmax" to
            [-1, 1], "none" not at all; "published" as in the literature: "none" on German, "minmax" on Credit and
            Bail, "standard" on the others. The edges stay the same.
        keep_sensitive: Whether the sensitive attribute stays among the features, where it is one, with the same edges.
        split_seed: The seed of the split; the default gives the published split.
        data_dir: Where files that are not part of the package are looked for, or downloaded to (see `fetch`).
    """
    return load_arrays(name, scale, keep_sensitive, split_seed, data_dir).to_data()


def load_arrays(
    name: str,
    scale: Scale = "standard",
    keep_sensitive: bool = True,
    split_seed: int = PUBLISHED_SEED,
    data_dir: PathLike | None = None,
) -> "GraphArrays":
    """Return the graph of `load` as numpy arrays, without importing torch."""
    from fairpass.datasets.benchmark_graph import benchmark_graph

    spec, directory = graph_spec(name), data_directory(data_dir)
    if scale not in get_args(Scale):
        raise DataError(f"'scale' must be one of {', '.join(map(repr, get_args(Scale)))} (got {scale!r})")
    contents = {file.path: read_file(file, spec.title, directory, spec.folder) for file in spec.files}
    chosen = spec.published_scale if scale == "published" else scale
    return benchmark_graph(spec, contents, scale=chosen, keep_sensitive=keep_sensitive, split_seed=split_seed)
