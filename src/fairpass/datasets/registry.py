"""The benchmark graphs: one description each in `benchmarks/<name>.toml`."""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pydantic import Field, PositiveInt, ValidationError

from fairpass.datasets.column_rules import Frozen
from fairpass.datasets.download import data_directory, fetch_file, read_file
from fairpass.datasets.options import FeatureScale
from fairpass.errors import DataError, validation_message
from fairpass.files import PathLike
from fairpass.parameters import check_seed

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
    size: PositiveInt | None = None  # in bytes; a download that is longer is stopped


class CodedColumn(Frozen):
    """A column that becomes codes: k stands for `values[k]`, shown as `names[k]`; any other value is unknown (-1).

    Several values that have one code are a list: `values = [0, [1, 2, 3]]`.
    """

    column: str
    values: tuple[int | str | tuple[int | str, ...], ...]
    names: tuple[str, ...]

    @property
    def codes(self) -> dict[int | str, int]:
        """The code of each value."""
        together = [value if isinstance(value, tuple) else (value,) for value in self.values]
        return {value: code for code, values in enumerate(together) for value in values}


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
    """The statistics of a benchmark graph, which a test compares with the loaded graph; None: not measured."""

    nodes: int | None = None
    features: int | None = None
    undirected_edges: int | None = None
    label_homophily: float | None = None
    sensitive_homophily: float | None = None
    max_degree: int | None = None
    labels: tuple[int, ...] | None = None  # the number of nodes of each label
    groups: tuple[int, ...] | None = None


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
    statistics: ExpectedStatistics = ExpectedStatistics()
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
        return self.folder is None and all(file.url is None for file in self.files)


@cache
def _specs() -> dict[str, GraphSpec]:
    folder = resources.files("fairpass.datasets") / "benchmarks"
    texts = {file.name.removesuffix(".toml"): file.read_text(encoding="utf-8") for file in folder.iterdir()}
    return {name: _parse(_completed(tomllib.loads(texts[name])) | {"name": name}) for name in sorted(texts)}


def _completed(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a college of Facebook100 with all that the colleges share; any other as it is."""
    if "college" not in description:
        return description
    college, year = description.pop("college"), description.pop("median_class_year")
    text = (resources.files("fairpass.datasets") / "facebook100.toml").read_text(encoding="utf-8")
    quoted = json.dumps(college, ensure_ascii=False)[1:-1]  # a name of a file may have any characters
    return tomllib.loads(text.replace("{year}", str(year)).replace("{college}", quoted)) | description


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


def is_college_file(name: PathLike) -> bool:
    """Return whether `name` is the path of a file of Facebook100, and not the name of a benchmark graph."""
    return Path(name).suffix == ".mat"


def graph_spec(name: PathLike) -> GraphSpec:
    """Return the description of a benchmark graph, or of the college of a file of Facebook100."""
    if is_college_file(name):
        return _college(Path(name).expanduser())
    if name not in _specs():
        known = ", ".join(map(repr, _specs()))
        raise DataError(f"'name' must be one of {known}, or a .mat file of Facebook100 (got {name!r})")
    return _specs()[str(name)]


def _college(path: Path) -> GraphSpec:
    from fairpass.datasets.facebook100 import median_class_year

    try:
        content = path.read_bytes()
        year = median_class_year(BytesIO(content))
    except OSError as error:
        raise DataError(f"'{path}' cannot be read ({error.strerror})") from error
    except DataError as error:
        raise DataError(f"'{path}' is not a college's file of Facebook100: {error}") from error
    table = {"path": path.name, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    description = _completed({"college": path.stem, "median_class_year": year, "table": table})
    return _parse(description | {"name": path.stem.lower().replace("_", "-").replace(" ", "-"), "folder": path.parent})


def is_available(name: PathLike, *, data_dir: PathLike | None = None) -> bool:
    """Return whether `load(name)` finds its files."""
    return not _absent(name, data_directory(data_dir))


def check_available(*names: PathLike, data_dir: PathLike | None = None) -> None:
    """Raise `DataError` if `load` would not find the files of some graphs. Only `fetch` uses the network."""
    directory = data_directory(data_dir)
    if lacking := {str(name): absent for name in names if (absent := _absent(name, directory))}:
        fetching = " and ".join(f"`fairpass datasets fetch {name}`" for name in lacking)
        files = ", ".join(path for absent in lacking.values() for path in absent)
        what = f"the files of {', '.join(lacking)} must be in '{directory}' ({files})"
        raise DataError(f"{what}; to get them: {fetching}")


def _absent(name: PathLike, directory: Path) -> list[str]:
    files = graph_spec(name).files
    return [file.path for file in files if file.url is not None and not (directory / file.path).exists()]


def fetch(name: PathLike, *, data_dir: PathLike | None = None) -> list[Path]:
    """Download the files of a graph unless they exist already, and return their paths.

    They are stored in `data_dir`, by default the directory in the environment variable `FAIRPASS_DATA`, else `data` in
    the user's cache directory. A graph that is part of the package has none, nor has a file of your own.
    """
    spec, directory = graph_spec(name), data_directory(data_dir)
    remote = [file for file in spec.files if file.url is not None]
    for file in remote:
        fetch_file(file, spec.title, directory)
    return [directory / file.path for file in remote]


def load(
    name: PathLike,
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
        name: One of `names()`, for example "german", or the path of any college's file of Facebook100, for example
            "Caltech36.mat". Its label is whether the class year is that college's median or later.
        scale: How every feature but the sensitive one is scaled: "standard" to mean 0 and variance 1, "minmax" to
            [-1, 1], "none" not at all; "published" as in the literature: "none" on German and Pokec, "minmax" on
            Credit and Bail, "standard" on the others. The edges stay the same.
        keep_sensitive: Whether the sensitive attribute stays among the features, where it is one, with the same edges.
        split_seed: The seed of the split; the default gives the published split.
        data_dir: Where files that are not part of the package are looked for (see `fetch`, which downloads them).
    """
    return load_arrays(name, scale, keep_sensitive, split_seed, data_dir).to_data()


def load_arrays(
    name: PathLike,
    scale: Scale = "standard",
    keep_sensitive: bool = True,
    split_seed: int = PUBLISHED_SEED,
    data_dir: PathLike | None = None,
) -> "GraphArrays":
    """Return the graph of `load` as numpy arrays, without importing torch."""
    from fairpass.datasets.benchmark_graph import benchmark_graph

    check_seed("split_seed", split_seed)
    spec, directory = graph_spec(name), data_directory(data_dir)
    if scale not in get_args(Scale):
        raise DataError(f"'scale' must be one of {', '.join(map(repr, get_args(Scale)))} (got {scale!r})")
    check_available(name, data_dir=data_dir)
    contents = {file.path: read_file(file, spec.title, directory, spec.folder) for file in spec.files}
    chosen = spec.published_scale if scale == "published" else scale
    return benchmark_graph(spec, contents, scale=chosen, keep_sensitive=keep_sensitive, split_seed=split_seed)
