"""The tables that a stored model was fitted to: how to read others like them, and how to load them again."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field
from torch_geometric.data import Data

from fairpass.datasets import from_tables
from fairpass.datasets.tables import options_of
from fairpass.documents import Stored, Values, read_document
from fairpass.errors import DataError
from fairpass.files import sha256
from fairpass.projects.config import MANIFEST

# Options that hold for other tables as well; the encoding has all others.
_LASTING = (
    *("label", "sensitive", "missing_sensitive", "id", "source", "target", "edge_weight", "unweighted", "dangling"),
    *("drop", "text_encoding", "separator", "decimal", "unknown_category", "similarity"),
)
# Files of `fairpass run` and `fairpass train` with the provenance of the graph.
_RECORDS = ("data.json", "evaluation.json")
_INSTEAD = "give the tables instead, as NODES,EDGES"

T = TypeVar("T")

logger = logging.getLogger(__name__)


class _Table(Stored, extra="ignore"):
    sha256: str | None = None


class _Tables(Stored, extra="ignore"):
    nodes: _Table | None = None
    edges: _Table | None = None


class _Record(Stored, extra="ignore"):
    provenance: _Tables | None = None


class _Asked(Stored, extra="ignore"):
    name: str | None = None
    directory: str | None = None
    data: Values = Field(default_factory=dict)


class _Manifest(Stored, extra="ignore"):
    asked: _Asked = _Asked()


def options_of_fit(
    provenance: Mapping[str, Any], nodes: Path | None, edges: Path | None, /, **others: Any
) -> dict[str, Any]:
    """Return the arguments of `from_tables` that read tables like those of a fit.

    They are the same as in the fit for the same files. For other tables they are the encoding, the options that do
    not depend on the content, and `others`.
    """
    options = options_of(provenance)
    same_edges = _is_same(edges, provenance["edges"]) or (edges is None and "similarity" in options)
    if _is_same(nodes, provenance["nodes"]) and same_edges:
        return options
    lasting = {name: options[name] for name in _LASTING if name in options}
    if edges is not None:
        lasting.pop("similarity", None)
    return {"encoding": provenance["encoding"], **lasting, **others}


@contextmanager
def said_before(options: Mapping[str, Any]) -> Iterator[None]:
    """Log no warnings about tables that are read exactly as in the fit: it gave the same ones."""
    log = logging.getLogger("fairpass.datasets")
    level = log.level
    if options and "encoding" not in options:
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def fitted_graph(provenance: Mapping[str, Any] | None, fitted: str) -> Data:
    """Return the graph that a model was fitted to.

    The tables of a run must be unchanged. Tables given by name may have changed: they are then encoded as in the fit,
    and a warning is logged.

    Args:
        provenance: `provenance_` of the model.
        fitted: The directory of `fairpass run` or `fairpass train`, or the tables: "NODES,EDGES", or "NODES" if the
            edges were made from features.
    """
    if provenance is None or "encoding" not in provenance:
        origin = (provenance or {}).get("title") or "a graph that was made in Python"
        raise DataError(f"new nodes can be joined only to a graph of own tables (the model's graph is {origin})")
    if "new" in provenance:
        raise DataError("the model was fitted to a graph that was itself joined from several tables: join it in Python")
    if fitted and Path(fitted).is_dir():
        nodes, edges = _tables_of_run(provenance, Path(fitted))
    else:
        nodes, edges = _named_tables(fitted, made=provenance["options"].get("similarity") is not None)
    options = options_of_fit(provenance, nodes, edges)
    if "encoding" in options:
        in_files = provenance["nodes"]["sha256"] is not None
        what = "are not the tables of the fit, or have changed" if in_files else "cannot be compared with the fit's"
        logger.warning("the tables %s %s: the model knows the graph as it was then", fitted, what)
    with said_before(options):
        return from_tables(nodes, edges, **options)


def _is_same(path: Path | None, origin: Mapping[str, str | None]) -> bool:
    return path is not None and path.is_file() and sha256(path) == origin["sha256"]


def _tables_of_run(provenance: Mapping[str, Any], directory: Path) -> tuple[Path, Path | None]:
    """Return the paths of a run's tables after checking that they are those of the model."""
    record = next((directory / name for name in _RECORDS if (directory / name).is_file()), None)
    if record is None:
        raise DataError(
            f"{str(directory)!r} is not a directory of `fairpass run` or `fairpass train` "
            f"(it has neither {' nor '.join(_RECORDS)}): {_INSTEAD}"
        )
    of_run = _read(record, _Record).provenance or _Tables()
    found: dict[str, Path | None] = {"nodes": None, "edges": None}
    for table in ("nodes", "edges"):
        origin = provenance[table]
        if origin["sha256"] != (getattr(of_run, table) or _Table()).sha256:
            raise DataError(f"the run in {str(directory)!r} and the model were not made from the same {table}")
        if origin["sha256"] is None:
            continue
        # The project may have been moved, or the working directory is not that of the run.
        paths = [*_in_project(table, directory), Path(origin["source"])]
        there = [path for path in paths if path.is_file()]
        found[table] = next((path for path in there if _is_same(path, origin)), None)
        if found[table] is None:
            path = (there or paths)[0]
            what = "has changed since the model was fitted" if there else f"of the run in {str(directory)!r} is missing"
            raise DataError(f"the table of {table} {str(path)!r} {what}: {_INSTEAD}")
    if found["nodes"] is None:
        raise DataError(f"the graph of {str(directory)!r} was not read from files: {_INSTEAD}")
    return found["nodes"], found["edges"]


def _in_project(table: str, directory: Path) -> list[Path]:
    """Return where a project has a table: the manifest has its path, relative to the folder of the settings file."""
    asked = _read(directory / MANIFEST, _Manifest).asked if (directory / MANIFEST).is_file() else _Asked()
    inside = Path(asked.directory or f"runs/{asked.name}")
    name = asked.data.get(table)
    whole = directory.resolve()
    if not isinstance(name, str) or inside.is_absolute() or whole.parts[-len(inside.parts) :] != inside.parts:
        return []
    return [whole.parents[len(inside.parts) - 1] / name]


def _read(path: Path, schema: type[T]) -> T:
    try:
        return read_document(path, None, schema)
    except DataError:
        raise DataError(f"{str(path)!r} is damaged: {_INSTEAD}") from None


def _named_tables(place: str, *, made: bool) -> tuple[Path, Path | None]:
    """Return the two tables in "NODES,EDGES", or the one if the edges are made from features."""
    if made:
        if not Path(place).is_file():
            raise DataError(f"there is no run directory and no table {place!r} (the model's edges were made from it)")
        return Path(place), None
    commas = [i for i, mark in enumerate(place) if mark == ","]
    # A comma may be part of a name, and no name is empty: its path would be that of the working directory.
    pairs = [(Path(place[:i]), Path(place[i + 1 :])) for i in commas if place[:i] and place[i + 1 :]]
    if not pairs:
        what = "is the table of nodes only" if Path(place).is_file() else "is neither"
        raise DataError(f"'fitted' must be the directory of a run, or NODES,EDGES (got {place!r}, which {what})")
    for pair in pairs:
        if all(path.is_file() for path in pair):
            return pair
    missing = next(path for path in pairs[0] if not path.is_file())
    raise DataError(f"there is no table {str(missing)!r} (of the fitted graph, {place!r})")
