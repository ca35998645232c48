"""Labels, groups, split and features of a stored table of nodes, read one column at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from fairpass.datasets.column_fitting import ColumnFitter, FittedColumn
from fairpass.datasets.encoding import (
    EncodedColumn,
    Encoding,
    Labels,
    feature_column,
    feature_columns,
    fit_feature,
    single_precision,
)
from fairpass.datasets.graph import Column, checked_ids
from fairpass.datasets.grouping import Grouping
from fairpass.datasets.node_arrays import NodeArrays
from fairpass.datasets.npy_files import write_npy
from fairpass.datasets.options import TableOptions
from fairpass.datasets.out_of_core.engine import LEAST
from fairpass.datasets.out_of_core.stored_table import StoredTable
from fairpass.datasets.out_of_core.work import Work, spans
from fairpass.datasets.parts import write_arrays
from fairpass.datasets.splits import Split
from fairpass.datasets.target_column import TargetColumn, TrainingLabels
from fairpass.errors import DataError

# Bytes: for the program; per node while a column is encoded; and per node at all times.
_PROGRAM, _COLUMN, _NUMBERS = 160_000_000, 120, 40

_ENCODED: TypeAdapter[Any] = TypeAdapter(EncodedColumn)


def read_nodes(work: Work, table: StoredTable, options: TableOptions) -> NodeArrays:
    """Return all but the features of the nodes, and keep them on disk."""
    folder = work.path("nodes")

    def make() -> dict[str, Any]:
        found = NodeArrays.of(table, options)
        arrays = {"y": found.y, "sens": found.sens, **found.split.masks()}
        write_arrays(folder, {name: array for name, array in arrays.items() if array is not None})
        return {"labels": list(found.labels), "grouping": found.grouping.model_dump()}

    kept = work.step("nodes", "Reading labels and groups", make, folder)
    arrays: dict[str, Any] = {path.stem: np.load(path, allow_pickle=False) for path in folder.glob("*.npy")}
    masks: dict[str, Any] = {part: arrays.get(f"{part}_mask") for part in Split._fields}
    split = Split(**masks)
    return NodeArrays(Labels(*kept["labels"]), Grouping(**kept["grouping"]), arrays["y"], arrays["sens"], split)


def write_ids(work: Work, table: StoredTable, options: TableOptions) -> Path:
    """Write the ids of the nodes as numbers or as text, and return the file."""
    path = work.path("node_ids.npy")

    def make() -> dict[str, Any]:
        if options.id is None:
            write_npy(path, (len(table),), np.int64, (np.arange(*span) for span in spans(0, len(table))))
        else:
            ids = table[options.id]
            checked_ids(ids)
            write_npy(path, (len(ids),), *_plain_ids(ids, typed=table.typed))
        return {}

    work.step("ids", "Reading the ids", make, path)
    return path


def _plain_ids(ids: Column, *, typed: bool) -> tuple[np.dtype[Any], Iterator[NDArray[Any]]]:
    """Return the type of ids on disk, and the ids in blocks: numbers if all texts of a CSV file are whole ones."""
    kind = ids.dtype.kind
    if typed and kind in "iu":
        return np.dtype(np.int64 if kind == "i" else np.uint64), _blocks(ids)
    if not typed and _are_whole(ids):
        return np.dtype(np.int64), (block.astype(np.int64) for block in _blocks(ids))
    texts = ids if not typed else ids.map(str)
    return np.dtype(f"U{max(1, int(texts.str.len().max()))}"), _blocks(texts)


def _are_whole(ids: Column) -> bool:
    """Return whether texts are whole numbers as Python writes them: "007" is not, and no number beyond 64 bits is."""
    return bool(ids.str.fullmatch(r"0|-?[1-9][0-9]{0,17}").all())


def _blocks(ids: Column) -> Iterator[NDArray[Any]]:
    yield from (ids.iloc[low:high].to_numpy() for low, high in spans(0, len(ids)))


def count_columns(table: StoredTable, options: TableOptions, grouping: Grouping) -> int:
    return len(feature_columns(table, options, grouping.title))


def encode_columns(
    work: Work, table: StoredTable, options: TableOptions, nodes: NodeArrays
) -> tuple[Encoding, list[Path]]:
    """Fit and encode the columns one by one; return the encoding and the files with the features of each column."""
    training = nodes.training(options.seed)
    fitter = ColumnFitter(options, table.decimal, training)
    fitted: list[FittedColumn | None] = []
    files = []
    for number, name in enumerate(feature_columns(table, options, nodes.grouping.title)):
        path = work.path(f"column-{number:04d}.npy")

        def make(name: str = name, path: Path = path) -> dict[str, Any]:
            encoded = fit_feature(fitter, table, name, nodes.grouping)
            if encoded is not None:
                column = feature_column(table, name, nodes.grouping)
                blocks = encoded_blocks(encoded, column, options, training)
                write_npy(path, (len(column), len(encoded.names)), np.float32, blocks)
            return {"encoded": None if encoded is None else encoded.model_dump()}

        encoded = work.step(f"column-{number:04d}", f"Encoding {name}", make, path)["encoded"]
        fitted.append(None if encoded is None else _ENCODED.validate_python(encoded))
        files += [] if encoded is None else [path]
    return Encoding.of_columns(options.label, nodes.labels, nodes.grouping, fitted), files


def encoded_blocks(
    encoded: FittedColumn, column: Column, options: TableOptions, training: TrainingLabels
) -> Iterator[NDArray[np.float32]]:
    """Yield the features of a column that was fitted to these rows, a block of rows at a time."""
    allow_unknown = options.unknown_category == "zeros"
    own = None
    if isinstance(encoded, TargetColumn):
        own = np.empty((len(column), len(encoded.names)), np.float32)
        own[training.mask] = single_precision(encoded.column, encoded.cross_fitted(column, training))
    for low, high in spans(0, len(column)):
        features = encoded.encode(column.iloc[low:high], allow_unknown=allow_unknown).features
        block = single_precision(encoded.column, features)
        if own is not None:
            block[training.mask[low:high]] = own[low:high][training.mask[low:high]]
        yield block


def memory_beside(rows: int) -> int:
    """Return the bytes in use while DuckDB works: this program, and a few numbers for each node."""
    return _PROGRAM + rows * _NUMBERS


def check_memory(rows: int, memory: int) -> None:
    """Refuse a table that is too large: one column must fit in memory, and later DuckDB and what is beside it."""
    needed = max(_PROGRAM + rows * _COLUMN, memory_beside(rows) + LEAST)
    if needed > memory:
        got = f"(got {memory / 1e6:,.0f}MB)"
        raise DataError(f"'memory' must be at least {needed / 1e6:,.0f}MB for {rows:,} nodes {got}")
