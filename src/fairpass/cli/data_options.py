"""The graph of a command: a benchmark by its name, or a user's own tables."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from fairpass.cli.options import field_options, spelled
from fairpass.cli.output import STARTING, working
from fairpass.datasets.options import FeatureScale, TableOptions
from fairpass.errors import DataError, suggestion

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.datasets import GraphArrays

# Options of benchmarks, and of new nodes that are joined to a graph; all others are for own tables only.
_OF_BENCHMARKS = {"name", "scale", "keep_sensitive", "split_seed"}
_OF_NEW_NODES = {
    *(
        "nodes",
        "edges",
        "id",
        "source",
        "target",
        "edge_weight",
        "dangling",
        "missing_sensitive",
        "text_encoding",
        "separator",
        "decimal",
    )
}


class GraphOptions:
    """The options for a graph, named like the arguments of `datasets.load` and `datasets.from_tables`."""

    def __init__(self, **values: Any) -> None:
        self.given = {name: value for name, value in values.items() if value not in (None, [])}
        if len(self.given.get("sensitive", ())) == 1:
            self.given["sensitive"] = self.given["sensitive"][0]
        self.name: str | None = values.get("name")
        self.nodes: Path | None = values.get("nodes")
        self.edges: Path | None = values.get("edges")

    @property
    def parts(self) -> Path | None:
        """The directory of a graph in parts, if one is named."""
        return Path(self.name) if self.name is not None and Path(self.name).is_dir() else None

    @staticmethod
    def parameters() -> list[inspect.Parameter]:
        columns = dict.fromkeys(("sensitive", "features", "drop"), list[str])
        others = {"name": str, "positive": str, "scale": Literal[FeatureScale, "published"], "split_seed": int}
        types = {"nodes": Path, "edges": Path, **columns, **others}
        return field_options("graph", TableOptions.model_fields, types)

    @property
    def benchmark(self) -> str | None:
        """The name of the benchmark in its provenance; of a file of Facebook100, that of its college."""
        from fairpass.datasets.registry import graph_spec, is_college_file

        return graph_spec(self.name).name if self.name is not None and is_college_file(self.name) else self.name

    def load(self, **defaults: Any) -> "Data":
        return self.load_arrays(**defaults).to_data()

    def load_arrays(self, **defaults: Any) -> "GraphArrays":
        """Return the graph, without importing torch; `defaults` are arguments for what the user did not give."""
        arguments = defaults | self.given
        if self.parts is not None:
            self._only({"name"}, f"the graph in parts {self.name!r}: it was read by `fairpass partition`")
            with working("Joining the parts"):
                from fairpass.datasets.parts import join_parts

                return join_parts(self.parts)
        if self.name is not None:
            self._only(_OF_BENCHMARKS, f"the benchmark {self.name!r}: only own tables have it")
            with working(STARTING):
                from fairpass import datasets
                from fairpass.datasets.registry import is_college_file

                known = datasets.names()
            if self.name not in known and not is_college_file(self.name):
                others = "a .mat file of Facebook100, or own tables with --nodes and --edges"
                close = suggestion(self.name, known).removeprefix("; ")
                hint = close or f"choose one of {', '.join(known)}, {others}"
                raise DataError(f"there is no data set {self.name!r}: {hint}")
            with working(f"Loading {self.name}"):
                return datasets.load_arrays(**arguments)
        needed = ("nodes", "label", "sensitive") + (() if "similarity" in arguments else ("edges",))
        if missing := [_flag(name) for name in needed if name not in arguments]:
            raise typer.BadParameter(f"name a benchmark, or give own tables ({', '.join(missing)} is missing)")
        files = {table: arguments.pop(table) for table in ("nodes", "edges") if table in arguments}
        options = _table_options(arguments)
        with working("Reading the tables"):
            from fairpass.datasets import from_tables_arrays

            return from_tables_arrays(**files, **dict(options))

    def table_options(self) -> TableOptions:
        """Return the options of own tables, for tables that are not read here."""
        if missing := [_flag(name) for name in ("label", "sensitive") if name not in self.given]:
            raise typer.BadParameter(f"own tables need {' and '.join(missing)}")
        return _table_options({name: value for name, value in self.given.items() if name not in ("nodes", "edges")})

    def check_new_nodes(self) -> None:
        """Refuse options that do not apply to new nodes of a known graph."""
        if self.name is not None:
            raise typer.BadParameter(f"--graph cannot be used with the benchmark {self.name!r}, only with own tables")
        if self.nodes is None:
            raise typer.BadParameter("--graph needs --nodes, the table of the new nodes")
        self._only(_OF_NEW_NODES, "--graph: new nodes are read like those of the graph")

    def join_to(self, graph: "Data", **defaults: Any) -> "Data":
        with working("Reading the tables"):
            from fairpass.datasets import join_tables

            return join_tables(graph, **defaults | self.given)

    def _only(self, allowed: set[str], other: str) -> None:
        if misplaced := [_flag(name) for name in self.given if name not in allowed]:
            raise typer.BadParameter(f"{', '.join(misplaced)} cannot be used with {other}")


def _table_options(given: dict[str, Any]) -> TableOptions:
    options = {"seed" if name == "split_seed" else name: value for name, value in given.items()}
    try:
        return TableOptions.parse(options)
    except DataError as error:
        raise DataError(spelled(str(error), {"seed": "--split-seed"})) from None


def _flag(name: str) -> str:
    return "--feature" if name == "features" else f"--{name.replace('_', '-')}"
