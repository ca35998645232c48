"""The edges of two large Parquet files in memory: DuckDB finds their ends in less time and memory than pandas."""

from pathlib import Path

import numpy as np

from fairpass.datasets.edges import EdgeList, end_names, warn_about_edges
from fairpass.datasets.options import TableOptions
from fairpass.datasets.out_of_core.edge_pairs import EdgeTable
from fairpass.datasets.out_of_core.engine import Engine
from fairpass.datasets.out_of_core.importing import import_table
from fairpass.datasets.out_of_core.stored_table import StoredTable
from fairpass.datasets.table_files import PARQUET, Table, TableSource
from fairpass.files import scratch_directory
from fairpass.plain_text import is_utf8

# With this many rows DuckDB pays off: at 20 million rows it takes two thirds of the time and memory.
MANY_EDGES = 5_000_000
_MEMORY = 4_000_000_000  # bytes; what does not fit goes to a temporary directory


def are_many(nodes: Table, edges: TableSource, options: TableOptions) -> bool:
    """Return whether to read edges here: both tables are Parquet files, and the edges have many rows and no weights.

    (The order of rows is not kept, and sums of weights would depend on it.)
    """
    paths = [Path(each) for each in (str(nodes.origin["source"]), edges) if isinstance(each, str | Path)]
    if options.edge_weight is not None or len(paths) < 2 or not all(path.suffix.lower() in PARQUET for path in paths):
        return False
    if not all(is_utf8(path) and path.is_file() for path in paths):  # a source is stored as UTF-8, and DuckDB needs it
        return False
    from pyarrow import ArrowInvalid, parquet

    try:
        return bool(parquet.read_metadata(paths[1]).num_rows >= MANY_EDGES)
    except (ArrowInvalid, OSError):  # the code that reads the file reports it better
        return False


def read_edges(nodes: Table, edges: Path, options: TableOptions) -> EdgeList:
    """Return the edges of a Parquet file, with all checks."""
    table = StoredTable.load("edges", import_table(edges, "edges", edges, options))
    about = {"path": nodes.origin["source"], "origin": nodes.origin, "typed": True}
    with scratch_directory() as folder, Engine.open(folder, _MEMORY) as engine:
        ends = end_names(table, options.source, options.target)
        found = EdgeTable(engine, table, StoredTable.load("nodes", about), ends, options)
        ignored = found.ignored_columns()
        source, target = found.numbers()
        known = (source >= 0) & (target >= 0)
        dangling = int((~known).sum())
        if dangling and options.dangling == "error":
            found.check_ends()
    warn_about_edges(len(source), dangling, ignored)
    if dangling:
        source, target = source[known], target[known]
    return EdgeList(
        source.astype(np.int64), target.astype(np.int64), origin=table.origin, dangling=dangling, ignored=tuple(ignored)
    )
