"""The graph that a stored model was fitted to, made again from its tables."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from fairpass.datasets import from_tables
from fairpass.errors import DataError
from fairpass.files import sha256
from fairpass.projects.manifest import NAME as MANIFEST

# What holds for tables that have changed since the fit, too; all else is in the encoding.
_LASTING = ("label", "sensitive", "missing_sensitive", "id", "source", "target", "drop", "text_encoding", "similarity")
# Where `fairpass run` and `fairpass train` keep what the graph was made from.
_RECORDS = ("data.json", "evaluation.json")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Place:
    """Where the tables of a graph are."""

    nodes: Path
    edges: Path | None


def fitted_graph(provenance: Mapping[str, Any] | None, place: str) -> Data:
    """Return the graph that a model was fitted to.

    Of a run, the tables must be what they were. Tables that are named may have changed: they are read as those
    of the fit were, and a warning is logged.

    Args:
        provenance: `provenance_` of the model.
        place: The directory of `fairpass run` or `fairpass train`, or the tables, "NODES,EDGES" ("NODES" if edges
            were made from features).
    """
    if provenance is None or "encoding" not in provenance:
        origin = (provenance or {}).get("title") or "a graph that was made in Python"
        raise DataError(f"new nodes can be joined to a graph of one's own tables only (the model's is {origin})")
    if "new" in provenance:
        raise DataError("the model was fitted to a graph that was itself joined from several tables: join it in Python")
    options = {name: value for name, value in provenance["options"].items() if value is not None}
    if Path(place).is_dir():
        tables = _tables_of_run(provenance, Path(place))
    else:
        tables = _named_tables(place, made="similarity" in options)
        if not (_is_same(tables.nodes, provenance["nodes"]) and _is_same(tables.edges, provenance["edges"])):
            in_files = provenance["nodes"]["sha256"] is not None
            what = "are not the tables of the fit, or have changed" if in_files else "cannot be compared with the fit's"
            logger.warning("the tables %s %s: the model knows the graph as it was then", place, what)
            lasting = {name: options[name] for name in _LASTING if name in options}
            return from_tables(tables.nodes, tables.edges, encoding=provenance["encoding"], **lasting)
    return from_tables(tables.nodes, tables.edges, **options)


def _tables_of_run(provenance: Mapping[str, Any], directory: Path) -> _Place:
    """Return where the tables of a run are, once it is known that they are those of the model."""
    record = next((directory / name for name in _RECORDS if (directory / name).is_file()), None)
    if record is None:
        raise DataError(
            f"{str(directory)!r} is not a directory of `fairpass run` or `fairpass train` "
            f"(it has neither {' nor '.join(_RECORDS)}): give the tables themselves, as NODES,EDGES"
        )
    of_run = _read(record).get("provenance") or {}
    found: dict[str, Path | None] = {}
    for table in ("nodes", "edges"):
        origin = provenance[table]
        if origin["sha256"] != (of_run.get(table) or {}).get("sha256"):
            raise DataError(f"the run in {str(directory)!r} and the model were not made from the same {table}")
        found[table] = None if origin["sha256"] is None else _unchanged(table, origin, directory)
    if found["nodes"] is None:
        raise DataError(f"the graph of {str(directory)!r} was not read from files: give the tables, as NODES,EDGES")
    return _Place(found["nodes"], found["edges"])


def _unchanged(table: str, origin: Mapping[str, str], directory: Path) -> Path:
    """Return the path of a table of a run; an error if it has changed, or is gone."""
    # The project may have been moved, or this is another working directory than that of the run.
    paths = [*_in_project(table, directory), Path(origin["source"])]
    there = [path for path in paths if path.is_file()]
    for path in there:
        if sha256(path) == origin["sha256"]:
            return path
    instead = "give the tables as they are now instead, as NODES,EDGES"
    if there:
        raise DataError(f"the table of {table} {str(there[0])!r} has changed since the model was fitted: {instead}")
    raise DataError(f"the table of {table} {str(paths[0])!r} of the run in {str(directory)!r} is gone: {instead}")


def _in_project(table: str, directory: Path) -> list[Path]:
    """Return where a project has a table: the manifest has its path from the folder that the run directory is in."""
    if not (directory / MANIFEST).is_file():
        return []
    asked = _read(directory / MANIFEST).get("asked") or {}
    inside = Path(asked.get("directory") or f"runs/{asked.get('name')}")
    name = (asked.get("data") or {}).get(table)
    whole = directory.resolve()
    if name is None or inside.is_absolute() or whole.parts[-len(inside.parts) :] != inside.parts:
        return []
    return [whole.parents[len(inside.parts) - 1] / name]


def _read(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        document.get("")
    except (ValueError, AttributeError):
        raise DataError(f"{str(path)!r} is damaged: give the tables themselves, as NODES,EDGES") from None
    return document


def _named_tables(place: str, *, made: bool) -> _Place:
    """Return the two tables in "NODES,EDGES", or the one if edges are made from features."""
    if made:
        if not Path(place).is_file():
            raise DataError(f"there is no run directory and no table {place!r} (the model's edges were made from it)")
        return _Place(Path(place), None)
    commas = [i for i, mark in enumerate(place) if mark == ","]
    pairs = [(Path(place[:i]), Path(place[i + 1 :])) for i in commas]  # a comma may be part of a name
    for nodes, edges in pairs:
        if nodes.is_file() and edges.is_file():
            return _Place(nodes, edges)
    if not pairs:
        what = "is the table of nodes only" if Path(place).is_file() else "is neither"
        raise DataError(f"the fitted graph must be given as a run directory, or as NODES,EDGES ({place!r} {what})")
    lacking = next(path for path in pairs[0] if not path.is_file())
    raise DataError(f"there is no table {str(lacking)!r} (of the fitted graph, {place!r})")


def _is_same(path: Path | None, origin: Mapping[str, str | None]) -> bool:
    """Return whether a table is that of the fit; edges that were made from features are in none."""
    return origin["sha256"] is None if path is None else sha256(path) == origin["sha256"]
