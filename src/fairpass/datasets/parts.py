"""A graph in parts on disk: a manifest, and for each part its own rows, its own edges and whom they come from.

Part `k` owns the rows `offsets[k]` to `offsets[k + 1]` of the node table. Its arrays are `.npy` files that are mapped
into memory, so that a process reads only what it uses. The neighbours of its nodes are columns: first the part's own
rows, then its halo, the nodes of other parts that have an edge to it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairpass.datasets.graph import MASKS, Bools, GraphArrays, Ints, distinct_sorted
from fairpass.datasets.npy_files import write_npy
from fairpass.documents import Stored, read_document, write_document
from fairpass.errors import DataError
from fairpass.files import PathLike, sha256

KIND: Final = "fairpass parts"
MANIFEST = "manifest.json"
_BY_NODE = ("x", "y", "sens", *MASKS[:3])
_OPTIONAL = ("edge_weight", *MASKS[3:], "node_ids")
_SHARED = ("feature_names", "sens_column", "label_names", "group_names", "provenance")


class StoredFile(Stored):
    """What a file of a part must be."""

    bytes: int = Field(ge=0)
    sha256: str


class Manifest(Stored):
    """What all parts have in common, and the checksums of their files."""

    kind: Literal["fairpass parts"] = KIND
    graph: str  # the same for all parts of a graph
    offsets: tuple[int, ...] = Field(min_length=2)
    num_edges: int = Field(ge=0)  # both directions of an edge count
    num_features: int = Field(ge=1)
    feature_names: list[str]
    sens_column: int | None
    label_names: list[str]
    group_names: list[str]
    provenance: dict[str, Any]
    statistics: dict[str, Any]
    files: tuple[dict[str, StoredFile], ...]

    @property
    def parts(self) -> int:
        return len(self.offsets) - 1

    @property
    def num_nodes(self) -> int:
        return self.offsets[-1]

    @classmethod
    def read(cls, directory: PathLike) -> Self:
        """Read the manifest of a directory of parts, or raise `DataError`."""
        path = Path(directory) / MANIFEST
        if not path.is_file():
            raise DataError(f"'{directory}' must be a directory of parts (it has no {MANIFEST}; see 'partition')")
        found = read_document(path, KIND, cls)
        increasing = found.offsets[0] == 0 and all(
            a < b for a, b in zip(found.offsets, found.offsets[1:], strict=False)
        )
        if not increasing or len(found.files) != found.parts:
            raise DataError(f"'{path}' must be a {KIND} file (damaged: its parts do not add up)")
        return found

    def write(self, directory: PathLike) -> None:
        """Write the manifest: the last file of a graph in parts, which is not taken for one without it."""
        write_document(Path(directory) / MANIFEST, self.model_dump())


@dataclass(frozen=True)
class GraphPart:
    """The arrays of one part; those that were read from disk are mapped into memory."""

    x: NDArray[np.float32]
    y: Ints
    sens: Ints
    train_mask: Bools
    val_mask: Bools
    test_mask: Bools
    indptr: Ints  # where each own node's neighbours begin, `(n + 1,)`
    indices: NDArray[np.int32]  # the columns of the neighbours, in the order of their numbers
    halo: Ints  # the numbers of the nodes of other parts, increasing; they are the columns from `n` on
    edge_weight: NDArray[np.float32] | None = None
    safety_mask: Bools | None = None
    node_ids: NDArray[Any] | None = None

    @property
    def num_nodes(self) -> int:
        return len(self.x)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that there are, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: array for name, array in found.items() if array is not None}


def part_directory(directory: PathLike, number: int) -> Path:
    return Path(directory) / f"part-{number:04d}"


def read_part(directory: PathLike, number: int, manifest: Manifest | None = None, *, verify: bool = True) -> GraphPart:
    """Map one part into memory; its files must be those of the manifest, down to the checksum if `verify`."""
    manifest = manifest or Manifest.read(directory)
    if not 0 <= number < manifest.parts:
        raise DataError(f"'{directory}' must have part {number} (it has parts 0 to {manifest.parts - 1})")
    folder, found = part_directory(directory, number), {}
    for name, expected in manifest.files[number].items():
        path = folder / f"{name}.npy"
        if not path.is_file():
            raise DataError(f"'{directory}' must have all of its parts ('{path.relative_to(directory)}' is missing)")
        if path.stat().st_size != expected.bytes or (verify and sha256(path) != expected.sha256):
            raise DataError(f"'{path}' must be the file that the manifest names (its content is not what was written)")
        try:
            found[name] = np.load(path, mmap_mode="c", allow_pickle=False)
        except (ValueError, OSError) as error:
            raise DataError(f"'{path}' must hold an array ({error})") from None
    try:
        part = GraphPart(**found)
    except TypeError as error:
        raise DataError(f"'{folder}' must have the arrays of a part ({error})") from None
    _check_shapes(part, folder, manifest, manifest.offsets[number + 1] - manifest.offsets[number])
    return part


def _check_shapes(part: GraphPart, folder: Path, manifest: Manifest, nodes: int) -> None:
    """Raise `DataError` unless the arrays fit each other and what the manifest says of the part."""
    expected: dict[str, tuple[int, ...]] = dict.fromkeys((*_BY_NODE, *_OPTIONAL), (nodes,))
    expected |= {"x": (nodes, manifest.num_features), "indptr": (nodes + 1,), "edge_weight": part.indices.shape}
    for name, array in part.arrays().items():
        if name in expected and array.shape != expected[name]:
            raise DataError(f"'{folder / name}.npy' must have shape {expected[name]} (got {array.shape})")
    last = nodes + len(part.halo)
    first, end = part.indptr[[0, -1]]
    pointers_fit = first == 0 and end == len(part.indices) and bool((np.diff(part.indptr) >= 0).all())
    columns_fit = not len(part.indices) or (part.indices.min() >= 0 and part.indices.max() < last)
    halo_fits = not len(part.halo) or (part.halo.min() >= 0 and part.halo.max() < manifest.num_nodes)
    if part.indices.ndim != 1 or part.halo.ndim != 1 or not (pointers_fit and columns_fit and halo_fits):
        raise DataError(f"'{folder}' must have edges between its nodes and its halo (got others)")


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> dict[str, StoredFile]:
    """Write arrays as `.npy` files; return what the manifest says of them."""
    stored = {}
    for name, array in arrays.items():
        path = folder / f"{name}.npy"
        write_npy(path, array.shape, array.dtype, [array])
        stored[name] = stored_file(path)
    return stored


def stored_file(path: Path) -> StoredFile:
    return StoredFile(bytes=path.stat().st_size, sha256=sha256(path))


def graph_id(manifest: Mapping[str, Any]) -> str:
    """Return a name for the graph of these parts, given what the manifest says of it."""
    plain = {**manifest, "files": [{name: file.sha256 for name, file in part.items()} for part in manifest["files"]]}
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


def balanced_offsets(degrees: Ints, parts: int) -> tuple[int, ...]:
    """Return where to cut the rows so that every part has about as many edges and nodes as any other."""
    if not 1 <= parts <= len(degrees):
        raise DataError(f"'parts' must be between 1 and the number of nodes, {len(degrees)} (got {parts})")
    load = np.cumsum(degrees + 1, dtype=np.int64)
    cuts = np.searchsorted(load, load[-1] * np.arange(1, parts) / parts, side="left") + 1
    # Every part has a node, also if a few nodes have most of the edges.
    for k in range(len(cuts)):
        cuts[k] = max(cuts[k], (cuts[k - 1] if k else 0) + 1)
    for k in reversed(range(len(cuts))):
        cuts[k] = min(cuts[k], len(degrees) - (len(cuts) - k))
    return (0, *cuts.tolist(), len(degrees))


def local_columns(neighbours: Ints, low: int, high: int) -> tuple[NDArray[np.int32], Ints]:
    """Return numbers of nodes as columns of the part that owns `low` to `high`, and its halo."""
    is_own = (neighbours >= low) & (neighbours < high)
    halo = distinct_sorted(neighbours[~is_own])
    check_columns(high - low, len(halo))
    columns = np.empty(len(neighbours), np.int32)
    columns[is_own] = neighbours[is_own] - low
    columns[~is_own] = high - low + np.searchsorted(halo, neighbours[~is_own])
    return columns, halo


def check_columns(own: int, halo: int) -> None:
    if own + halo > np.iinfo(np.int32).max:
        raise DataError(f"'parts' must be larger: a part may have 2^31 nodes (got {own:,} and {halo:,})")


def part_statistics(part: GraphPart) -> dict[str, int]:
    return {"nodes": part.num_nodes, "edges": len(part.indices), "halo": len(part.halo)}


def write_parts(graph: GraphArrays, directory: PathLike, parts: int) -> Manifest:
    """Write a graph that fits in memory in parts; return the manifest."""
    target, source = graph.edge_index[1], graph.edge_index[0]
    nodes = len(graph.x)
    order = np.lexsort((source, target))
    target, source = target[order], source[order]
    pointers = np.searchsorted(target, np.arange(nodes + 1))
    offsets = balanced_offsets(np.diff(pointers), parts)
    stored, statistics = [], []
    for number, (low, high) in enumerate(pairwise(offsets)):
        rows, entries = slice(low, high), slice(pointers[low], pointers[high])
        columns, halo = local_columns(source[entries], low, high)
        part = GraphPart(
            **{name: getattr(graph, name)[rows] for name in _BY_NODE},
            indptr=pointers[low : high + 1] - pointers[low],
            indices=columns,
            halo=halo,
            edge_weight=None if graph.edge_weight is None else graph.edge_weight[order[entries]],
            safety_mask=None if graph.safety_mask is None else graph.safety_mask[rows],
            node_ids=None if graph.node_ids is None else _plain_ids(graph.node_ids[rows]),
        )
        stored.append(write_arrays(part_directory(directory, number), part.arrays()))
        statistics.append(part_statistics(part))
    shared: dict[str, Any] = {name: getattr(graph, name) for name in _SHARED}
    return write_manifest(
        directory,
        offsets=offsets,
        num_edges=len(source),
        **shared,
        y=graph.y,
        sens=graph.sens,
        parts=statistics,
        files=stored,
    )


def write_manifest(
    directory: PathLike,
    *,
    offsets: tuple[int, ...],
    num_edges: int,
    feature_names: list[str],
    y: Ints,
    sens: Ints,
    parts: Sequence[Mapping[str, int]],
    files: Sequence[Mapping[str, StoredFile]],
    **shared: Any,
) -> Manifest:
    """Write the manifest of parts whose files are all there, with the statistics of the graph."""
    counted = {
        "labels": _counts(y, shared["label_names"]),
        "unlabelled": int((y < 0).sum()),
        "groups": _counts(sens, shared["group_names"]),
        "unknown_group": int((sens < 0).sum()),
    }
    described = {
        "offsets": offsets,
        "num_edges": num_edges,
        "num_features": len(feature_names),
        "feature_names": feature_names,
        **shared,
        "statistics": {"parts": list(parts), **counted},
        "files": tuple(files),
    }
    manifest = Manifest(graph=graph_id(described), **described)
    manifest.write(directory)
    return manifest


def _counts(codes: Ints, names: Sequence[str]) -> dict[str, int]:
    counts = np.bincount(codes[codes >= 0], minlength=len(names)).tolist()
    return {str(name): count for name, count in zip(names, counts, strict=False)}


def join_parts(directory: PathLike) -> GraphArrays:
    """Return the whole graph of a directory of parts, in memory."""
    manifest = Manifest.read(directory)
    parts = [read_part(directory, number, manifest) for number in range(manifest.parts)]
    sources, targets = [], []
    for part, (low, high) in zip(parts, pairwise(manifest.offsets), strict=True):
        numbers = np.concatenate([np.arange(low, high), part.halo])
        sources.append(numbers[part.indices])
        targets.append(np.repeat(np.arange(low, high), np.diff(part.indptr)))
    target, source = np.concatenate(targets), np.concatenate(sources)
    order = np.lexsort((target, source))  # as `simple_graph` sorts them
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _BY_NODE}
    optional: dict[str, Any] = {
        name: None if getattr(parts[0], name) is None else np.concatenate([getattr(part, name) for part in parts])
        for name in _OPTIONAL
    }
    if optional["edge_weight"] is not None:
        optional["edge_weight"] = optional["edge_weight"][order]
    if optional["node_ids"] is not None:
        optional["node_ids"] = optional["node_ids"].tolist()
    shared: dict[str, Any] = {name: getattr(manifest, name) for name in _SHARED}
    return GraphArrays(edge_index=np.stack([source[order], target[order]]), **joined, **shared, **optional)


def _plain_ids(ids: list[Any]) -> NDArray[Any]:
    array = np.asarray(ids)
    return array if array.dtype.kind in "iuU" else np.asarray([str(each) for each in ids])
