"""The edges of one part: the neighbours of its nodes as columns, and its halo."""

from contextlib import ExitStack
from pathlib import Path

import numpy as np

from fairpass.datasets.graph import Ints
from fairpass.datasets.npy_files import new_npy, read_rows, write_npy
from fairpass.datasets.out_of_core.engine import Engine, parquet
from fairpass.datasets.out_of_core.work import spans
from fairpass.datasets.parts import check_columns, write_arrays

_ENTRIES = 8_000_000  # edges that are handled at once


def degrees_of(engine: Engine, pairs: Path, num_nodes: int) -> Ints:
    """Return the number of neighbours of each node."""
    degrees = np.zeros(num_nodes, np.int64)
    for batch in engine.batches(f"SELECT low, high FROM {parquet(pairs)}", _ENTRIES):
        for ends in batch.values():
            degrees += np.bincount(ends, minlength=num_nodes)
    return degrees


def write_part_edges(
    engine: Engine, pairs: Path, degrees: Ints, rows: tuple[int, int], folder: Path, *, mean_weight: float | None
) -> dict[str, int]:
    """Write `indptr`, `indices`, `halo` and `edge_weight` of the part that owns some rows; return their sizes."""
    low, high = rows
    indptr = np.concatenate([[0], np.cumsum(degrees[low:high])])
    shape = (int(indptr[-1]),)
    numbers = folder / "neighbours.npy"  # column indices can be written only when the halo is known
    place = np.zeros(len(degrees), np.int32)  # each node's column; until the halo is known, whether it is a neighbour
    with ExitStack() as files:
        add_numbers = files.enter_context(new_npy(numbers, shape, np.min_scalar_type(-len(degrees))))
        if mean_weight is not None:
            add_weights = files.enter_context(new_npy(folder / "edge_weight.npy", shape, np.float32))
        for batch in engine.batches(_entries(pairs, low, high, weighted=mean_weight is not None), _ENTRIES):
            add_numbers(batch["neighbour"])
            place[batch["neighbour"]] = 1
            if mean_weight is not None:
                add_weights(batch["weight"] / mean_weight)
    place[low:high] = 0
    halo = np.flatnonzero(place)
    check_columns(high - low, len(halo))
    place[low:high] = np.arange(high - low)
    place[halo] = np.arange(high - low, high - low + len(halo))
    columns = (place[read_rows(numbers, *span)] for span in spans(0, *shape, _ENTRIES))
    write_npy(folder / "indices.npy", shape, np.int32, columns)
    write_arrays(folder, {"indptr": indptr, "halo": halo})
    numbers.unlink()
    return {"nodes": high - low, "edges": shape[0], "halo": len(halo)}


def _entries(pairs: Path, low: int, high: int, *, weighted: bool) -> str:
    """Return the query for all edges into some rows, sorted by row and neighbour."""
    table, weight = parquet(pairs), ", weight" if weighted else ""
    directions = [
        f"SELECT {own} AS row, {other} AS neighbour{weight} FROM {table} WHERE {own} BETWEEN {low} AND {high - 1}"
        for own, other in (("low", "high"), ("high", "low"))
    ]
    return f"{' UNION ALL '.join(directions)} ORDER BY row, neighbour"
