"""The graph a command works on: a benchmark by its name, or a user's own tables."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.models import OptionInfo

from fairpass.cli.output import working
from fairpass.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.datasets import GraphArrays

# The library's own types would do, but they come with pandas: a test keeps these equal to them.
Scale = Literal["minmax", "standard", "none", "published"]
Missing = Literal["error", "drop", "mean", "indicator"]
MissingSensitive = Literal["error", "unknown"]

# What can be said of a benchmark; everything else is about tables.
_OF_BENCHMARKS = {"name", "scale", "keep_sensitive", "split_seed"}
_NEEDED_FOR_TABLES = ("nodes", "edges", "label", "sensitive")
# What can be said of new nodes that are joined to a graph; the rest is as it was for that graph.
_OF_NEW_NODES = {"nodes", "edges", "id", "source", "target", "missing_sensitive", "text_encoding"}


def _tables(help: str, *names: str, metavar: str | None = "COLUMN") -> OptionInfo:
    option: OptionInfo = typer.Option(*names, help=help, metavar=metavar, rich_help_panel="Own tables")
    return option


def _both(help: str, *names: str, metavar: str | None = None) -> OptionInfo:
    option: OptionInfo = typer.Option(*names, help=help, metavar=metavar, rich_help_panel="Features and split")
    return option


@dataclass(frozen=True)
class GraphOptions:
    """The options that say which graph is meant; those not given are None or empty.

    They are called like the arguments of `datasets.load` and `datasets.from_tables`, and the defaults are
    there.
    """

    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A benchmark graph; `fairpass datasets` lists them."),
    ] = None

    nodes: Annotated[Path | None, _tables("The nodes, one per row: .csv, .tsv or .parquet.", metavar="FILE")] = None
    edges: Annotated[
        Path | None, _tables("The edges, one per row: the first two columns, unless told.", metavar="FILE")
    ] = None
    label: Annotated[str | None, _tables("What is to be predicted; empty for a node without a label.")] = None
    similarity: Annotated[
        float | None,
        _tables(
            "Without edges: join nodes nearly as alike as nearest neighbours (the fewer, the nearer to 1).",
            metavar="0..1",
        ),
    ] = None
    sensitive: Annotated[
        list[str] | None,
        _tables("The sensitive attribute; its values are the groups. Repeat it for intersections.", "--sensitive"),
    ] = None
    id: Annotated[str | None, _tables("The ids of the nodes, if the edges do not name nodes by row number from 0.")] = (
        None
    )
    source: Annotated[str | None, _tables("One end of an edge, in the table of edges.")] = None
    target: Annotated[str | None, _tables("Its other end.")] = None
    split: Annotated[str | None, _tables("Says train, val or test for each node; without it, the split is random.")] = (
        None
    )
    positive: Annotated[str | None, _tables("Which of two labels is the positive one.", metavar="VALUE")] = None
    features: Annotated[
        list[str] | None,
        _tables("Use this column as a feature, and no other; can be repeated.", "--feature"),
    ] = None
    drop: Annotated[list[str] | None, _tables("Do not use this column as a feature; can be repeated.", "--drop")] = None
    missing: Annotated[
        Missing | None,
        _tables(
            "What to do with missing values of features: refuse them, leave such columns out, fill in the "
            "mean, or do so and add a column that says where.",
            metavar=None,
        ),
    ] = None
    missing_sensitive: Annotated[
        MissingSensitive | None,
        _tables("What to do with missing values of the sensitive attribute.", metavar=None),
    ] = None
    max_levels: Annotated[
        int | None, _tables("How many values a label, group or category may have.", metavar="NUMBER")
    ] = None
    text_encoding: Annotated[str | None, _tables("The encoding of CSV files, for example latin-1.", metavar="NAME")] = (
        None
    )

    scale: Annotated[
        Scale | None, _both("How features are scaled (default: `standard`); `published` is for benchmarks.")
    ] = None
    keep_sensitive: Annotated[
        bool | None,
        _both(
            "Whether the sensitive attribute is a feature, too (default: yes in benchmarks that have it as one, "
            "no in own tables).",
            "--keep-sensitive/--drop-sensitive",
        ),
    ] = None
    split_seed: Annotated[
        int | None,
        _both("The seed of the split (default: the published split in benchmarks that have one).", metavar="NUMBER"),
    ] = None

    def load(self, **defaults: Any) -> "Data":
        """Return the graph; see `load_arrays`."""
        return self.load_arrays(**defaults).to_data()

    def load_arrays(self, **defaults: Any) -> "GraphArrays":
        """Return the graph as numpy arrays, without importing torch.

        Args:
            defaults: Arguments for what the user did not say, such as the `encoding`, the label and the
                sensitive column that a fitted model knows.
        """
        given = self._given()
        if self.name is not None:
            _check_benchmark(given)
            return _load_benchmark(defaults | given)
        arguments = defaults | given
        _check_tables(arguments)
        if "split_seed" in arguments:
            arguments["seed"] = arguments.pop("split_seed")
        with working("Reading the tables"):
            from fairpass.datasets import from_tables_arrays

            return from_tables_arrays(**arguments)

    def check_new_nodes(self) -> None:
        """Raise `BadParameter` unless the options say which new nodes are to be joined to a graph, and nothing else."""
        if self.name is not None:
            raise typer.BadParameter(f"--graph cannot go with the benchmark {self.name!r}: it is for own tables")
        if self.nodes is None:
            raise typer.BadParameter("--graph needs --nodes, the table of the new nodes")
        misplaced = [_flag(name) for name in self._given() if name not in _OF_NEW_NODES]
        if misplaced:
            raise typer.BadParameter(f"{', '.join(misplaced)} cannot go with --graph: it is as it was for that graph")

    def join_to(self, graph: "Data", **defaults: Any) -> "Data":
        """Return a graph joined with the new nodes; `defaults` are for what the user did not say."""
        with working("Reading the tables"):
            from fairpass.datasets import join_tables

            return join_tables(graph, **defaults | self._given())

    def _given(self) -> dict[str, Any]:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given = {name: value for name, value in given.items() if value not in (None, [])}
        if self.sensitive and len(self.sensitive) == 1:
            given["sensitive"] = self.sensitive[0]
        return given


def _load_benchmark(arguments: dict[str, Any]) -> "GraphArrays":
    name = arguments["name"]
    with working("Starting"):
        from fairpass import datasets
    if name not in datasets.names():
        raise DataError(
            f"there is no data set {name!r}: give one of {', '.join(datasets.names())}, "
            f"or your own tables with --nodes and --edges"
        )
    datasets.fetch(name)  # a download shows its own progress
    with working(f"Loading {name}"):
        return datasets.load_arrays(**arguments)


def _check_benchmark(given: dict[str, Any]) -> None:
    misplaced = [_flag(name) for name in given if name not in _OF_BENCHMARKS]
    if misplaced:
        raise typer.BadParameter(
            f"{', '.join(misplaced)} cannot go with the benchmark {given['name']!r}: it is for own tables"
        )


def _check_tables(arguments: dict[str, Any]) -> None:
    joined = {"edges"} if "similarity" in arguments else set()
    lacking = [_flag(name) for name in _NEEDED_FOR_TABLES if name not in {*arguments, *joined}]
    if lacking:
        raise typer.BadParameter(
            f"name a benchmark, or give your own tables (for which {', '.join(lacking)} is missing)"
        )


def _flag(name: str) -> str:
    return "--feature" if name == "features" else f"--{name.replace('_', '-')}"
