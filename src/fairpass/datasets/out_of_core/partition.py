"""`fairpass partition`: from two tables of any size to a graph in parts on disk."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from fairpass.datasets.column_encoding import as_text
from fairpass.datasets.edges import EdgeOrigin, end_names, header_names, warn_about_edges
from fairpass.datasets.encoding import Encoding
from fairpass.datasets.graph import GraphArrays, Ints, RemovedEdges
from fairpass.datasets.node_arrays import NodeArrays
from fairpass.datasets.npy_files import read_rows, write_npy
from fairpass.datasets.options import TableOptions
from fairpass.datasets.out_of_core.edge_pairs import EdgeTable, write_pairs
from fairpass.datasets.out_of_core.edge_parts import degrees_of, write_part_edges
from fairpass.datasets.out_of_core.engine import Engine, TooLittleMemoryError, bytes_of
from fairpass.datasets.out_of_core.importing import import_table
from fairpass.datasets.out_of_core.node_columns import (
    check_memory,
    count_columns,
    encode_columns,
    memory_beside,
    read_nodes,
    write_ids,
)
from fairpass.datasets.out_of_core.request import Request, discard, is_new, open_directory
from fairpass.datasets.out_of_core.stored_table import StoredTable
from fairpass.datasets.out_of_core.work import Progress, Work, spans
from fairpass.datasets.parts import (
    MANIFEST,
    Manifest,
    balanced_offsets,
    part_directory,
    stored_file,
    write_arrays,
    write_manifest,
    write_parts,
)
from fairpass.datasets.table_files import PARQUET, table_file
from fairpass.datasets.tables import table_provenance, text_columns
from fairpass.errors import DataError
from fairpass.files import PathLike, resolved
from fairpass.locks import in_use
from fairpass.plain_text import is_utf8

_ROWS = 100_000  # rows of features that are handled at once: there may be many features
_SHOWN = 200  # characters of a reason
_STEPS = 6  # apart from those of columns and parts


def partition(
    nodes: PathLike,
    edges: PathLike,
    directory: PathLike,
    *,
    parts: int,
    memory: str = "4GB",
    progress: Progress | None = None,
    **options: Any,
) -> Manifest:
    """Write the graph of two tables in parts to a directory, in a given amount of memory.

    The graph is that of `from_tables`. After an interruption, the same call continues where it stopped. The directory
    of a different call is refused. If another process is filling the directory, this one waits. The tables are not
    changed.

    Args:
        nodes: Table of nodes: a file that ends in .csv, .tsv (also .gz), .parquet or .pq.
        edges: Table of edges, likewise.
        directory: A new directory.
        parts: The number of parts to cut the nodes into, with about the same number of edges each.
        memory: How much memory to use, such as "500MB" or "8GB".
        progress: Called with the finished share, and what is done now.
        options: The fields of `TableOptions`, without `similarity` and `encoding`.
    """
    chosen = TableOptions.parse(options)
    for name in ("similarity", "encoding"):
        if getattr(chosen, name) is not None:
            raise DataError(f"'{name}' cannot be used with tables that do not fit in memory: use 'from_tables'")
    if parts < 1:
        raise DataError(f"'parts' must be at least 1 (got {parts})")
    limit = bytes_of(memory)
    for name, source in (("nodes", nodes), ("edges", edges)):
        _, ending, _ = table_file(source, name)  # raises if there is none
        if ending in PARQUET:  # read where it is; other tables are converted first
            _check_utf8(name, source)
    _check_utf8("out", resolved(directory))
    request = Request(Path(nodes), Path(edges), chosen, parts)
    out = Path(directory)
    with _opened(out, request.document()) as (folder, new):
        if (out / MANIFEST).exists():
            shutil.rmtree(folder)
            return Manifest.read(out)
        again = f"remove '{out}' to start again"
        try:
            return _Partition(request, out, Work(folder, progress), limit).run()
        except TooLittleMemoryError:
            raise
        except DataError as error:
            if new or again in str(error):
                raise
            raise DataError(f"{error}; {again}") from None
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            if new:
                raise
            reason = str(error).partition("\n")[0][:_SHOWN]
            raise DataError(f"'{folder}' must be as an earlier session left it ({reason}); {again}") from error


def _check_utf8(name: str, path: PathLike) -> None:
    if not is_utf8(path):
        raise DataError(f"'{name}' must be a path in UTF-8, which DuckDB needs (got {str(path)!r})")


def partition_graph(graph: GraphArrays, directory: PathLike, *, parts: int, made_from: Mapping[str, Any]) -> Manifest:
    """Write a graph that is in memory in parts; a directory that was made from anything else is refused."""
    out = Path(directory)
    with _opened(out, {"graph": dict(made_from), "parts": parts}) as (folder, _):
        manifest = write_parts(graph, out, parts)
        shutil.rmtree(folder)
        return manifest


@contextmanager
def _opened(out: Path, wanted: Mapping[str, Any]) -> Iterator[tuple[Path, bool]]:
    """Yield the directory for the work, which no other process has, and whether it is new.

    Input that is refused leaves nothing that was not there before. With too little memory, the work is kept: it can go
    on with more.
    """
    made = [each for each in (out, *out.parents) if not each.exists()]
    try:
        with in_use(out):
            new = is_new(out)
            folder = open_directory(out, wanted)
            try:
                yield folder, new
            except TooLittleMemoryError:
                raise
            except DataError:
                if new:
                    discard(out)
                raise
    except DataError:
        for each in made:
            with suppress(OSError):  # it is not empty
                each.rmdir()
        raise


class _Partition:
    """The steps of one partition, in their order."""

    def __init__(self, request: Request, directory: Path, work: Work, memory: int) -> None:
        self.request, self.options, self.directory = request, request.options, directory
        self.work, self.memory = work, memory

    def run(self) -> Manifest:
        table = self._nodes_table()
        self.work.total = _STEPS + len(table.columns) + 2 * self.request.parts
        check_memory(len(table), self.memory)
        if self.request.parts > len(table):
            got = f"(got {self.request.parts})"
            raise DataError(f"'parts' must be between 1 and the number of nodes, {len(table)} {got}")
        edges = self._edges_table(table)
        ends = end_names(edges, self.options.source, self.options.target)
        if self.options.edge_weight is not None:
            edges.check_values(self.options.edge_weight)
        nodes = read_nodes(self.work, table, self.options)
        self.work.total = _STEPS + count_columns(table, self.options, nodes.grouping) + 2 * self.request.parts
        ids = write_ids(self.work, table, self.options)
        encoding, files = encode_columns(self.work, table, self.options, nodes)
        table.forget()
        with Engine.open(self.work.folder, self.memory, memory_beside(len(table))) as engine:
            found = EdgeTable(engine, edges, table, ends, self.options)
            counts = self._pairs(found)
            degrees = self._degrees(engine, len(table))
            offsets = balanced_offsets(degrees, self.request.parts)
            statistics = [
                self._part_edges(engine, number, rows, degrees, counts["mean_weight"])
                for number, rows in enumerate(pairwise(offsets))
            ]
        for number, rows in enumerate(pairwise(offsets)):
            self._part_rows(number, rows, nodes, files, ids)
        manifest = self._manifest(table, edges, nodes, encoding, counts, offsets, statistics)
        shutil.rmtree(self.work.folder)
        return manifest

    def _nodes_table(self) -> StoredTable:
        path = self.work.path("nodes.parquet")

        def make() -> dict[str, Any]:
            return import_table(self.request.nodes, "nodes", path, self.options)

        about = self.work.step("nodes-table", "Reading the table of nodes", make, path)
        return StoredTable.load("nodes", about, text_columns(self.options, None))

    def _edges_table(self, nodes: StoredTable) -> StoredTable:
        path = self.work.path("edges.parquet")

        def make() -> dict[str, Any]:
            def is_node(cell: str) -> bool:  # asked about the first row of a text file
                return self.options.id is not None and bool((as_text(nodes[self.options.id]) == cell).any())

            names = header_names(is_node, self.options)
            return import_table(self.request.edges, "edges", path, self.options, names)

        return StoredTable.load("edges", self.work.step("edges-table", "Reading the table of edges", make, path), str)

    def _pairs(self, edges: EdgeTable) -> dict[str, Any]:
        numbered, pairs = self.work.path("numbered.parquet"), self.work.path("pairs.parquet")

        def number() -> dict[str, Any]:
            counts = {"ignored": edges.ignored_columns(), **edges.write_numbered(numbered)}
            warn_about_edges(counts["rows"], counts["dangling"], counts["ignored"])
            return counts

        def pair() -> dict[str, Any]:
            weighted = self.options.edge_weight is not None
            return write_pairs(edges.engine, numbered, pairs, weighted=weighted)

        needed = () if self.work.has_done("pairs") else (numbered,)
        counts = self.work.step("numbered", "Finding the ends of edges", number, *needed)
        counts |= self.work.step("pairs", "Merging repeated edges", pair, pairs)
        numbered.unlink(missing_ok=True)
        return counts

    def _degrees(self, engine: Engine, num_nodes: int) -> Ints:
        folder = self.work.path("degrees")

        def make() -> dict[str, Any]:
            write_arrays(folder, {"degrees": degrees_of(engine, self.work.path("pairs.parquet"), num_nodes)})
            return {}

        self.work.step("degrees", "Counting edges", make, folder)
        return np.asarray(np.load(folder / "degrees.npy", allow_pickle=False))

    def _part_edges(
        self, engine: Engine, number: int, rows: tuple[int, int], degrees: Ints, mean_weight: float | None
    ) -> dict[str, Any]:
        folder, pairs = part_directory(self.directory, number), self.work.path("pairs.parquet")

        def make() -> dict[str, Any]:
            return write_part_edges(engine, pairs, degrees, rows, folder, mean_weight=mean_weight)

        return self.work.step(f"edges-{number:04d}", f"Writing the edges of part {number}", make, folder)

    def _part_rows(self, number: int, rows: tuple[int, int], nodes: NodeArrays, files: list[Path], ids: Path) -> None:
        folder, own = part_directory(self.directory, number), slice(*rows)

        def make() -> dict[str, Any]:
            width = sum(read_rows(file, 0, 1).shape[1] for file in files)
            blocks = (
                np.concatenate([read_rows(file, *span) for file in files], axis=1) for span in spans(*rows, _ROWS)
            )
            write_npy(folder / "x.npy", (rows[1] - rows[0], width), np.float32, blocks)
            arrays = {"y": nodes.y, "sens": nodes.sens, **nodes.split.masks()}
            write_arrays(folder, {name: array[own] for name, array in arrays.items() if array is not None})
            write_arrays(folder, {"node_ids": read_rows(ids, *rows)})
            return {}

        self.work.step(f"rows-{number:04d}", f"Writing the nodes of part {number}", make, folder)

    def _manifest(
        self,
        table: StoredTable,
        edges: StoredTable,
        nodes: NodeArrays,
        encoding: Encoding,
        counts: Mapping[str, Any],
        offsets: tuple[int, ...],
        statistics: list[dict[str, Any]],
    ) -> Manifest:
        encoding = encoding.with_mean_weight(counts["mean_weight"])
        origin = EdgeOrigin(origin=edges.origin, dangling=counts["dangling"], ignored=tuple(counts["ignored"]))
        removed = RemovedEdges(
            self_loops_removed=counts["loops"],
            duplicate_edges_merged=counts["rows"] - counts["dangling"] - counts["loops"] - counts["pairs"],
            one_way_pairs=counts["pairs"] - counts["both_ways"],
        )
        folders = [part_directory(self.directory, number) for number in range(self.request.parts)]
        return write_manifest(
            self.directory,
            offsets=offsets,
            num_edges=2 * counts["pairs"],
            feature_names=encoding.feature_names,
            sens_column=encoding.sens_column,
            label_names=list(encoding.label_names),
            group_names=list(encoding.grouping.names),
            provenance=table_provenance(table, self.options, encoding, origin, removed),
            y=nodes.y,
            sens=nodes.sens,
            parts=statistics,
            files=[{path.stem: stored_file(path) for path in sorted(folder.glob("*.npy"))} for folder in folders],
        )
