"""How large halos are: power-law graphs cut by the partitioner into 2 to 256 parts, nodes in any order or by community.

A process holds contiguous rows of the node table. Its halo, the other nodes that have an edge to it, is what it
receives at every exchange, so its size decides what a graph in parts costs on the network.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks.result import Cell, Result, Table
from fairpass.datasets.graph import Ints
from fairpass.datasets.parts import balanced_offsets

NODES, DEGREE, COMMUNITY = 1_000_000, 20, 1000
# Exponent of the degrees, and share of edges inside communities; None: nodes in random order.
GRAPHS: tuple[tuple[float, float | None], ...] = (
    (2.1, None),
    (2.5, None),
    (2.1, 0.9),
    (2.5, 0.5),
    (2.5, 0.9),
    (2.5, 0.99),
)
PARTS = (2, 4, 8, 16, 32, 64, 128, 256)

Edges = tuple[NDArray[np.int32], NDArray[np.int32]]


def run(quick: bool) -> Result:
    nodes = NODES // 20 if quick else NODES
    rows: list[dict[str, Cell]] = []
    for exponent, inside in GRAPHS:
        edges = power_law_edges(nodes, DEGREE, exponent, inside or 0.0)
        rows += [_row(nodes, edges, exponent, inside, parts) for parts in PARTS]
    what = f"power-law graphs of {nodes:,} nodes, average degree {DEGREE}, communities of {COMMUNITY:,} nodes"
    return Result("halo_sizes", [Table(f"Halo nodes for each own node, {what}", _by_parts(rows)), Table(what, rows)])


def _by_parts(rows: list[dict[str, Cell]]) -> list[dict[str, Cell]]:
    """Return one row for each graph, with the mean halo in each number of parts."""
    graphs: dict[tuple[Cell, ...], dict[str, Cell]] = {}
    for row in rows:
        same = {name: row[name] for name in ("exponent", "order", "edges inside")}
        graphs.setdefault(tuple(same.values()), same)[f"P = {row['parts']}"] = row["halo / own nodes"]
    return list(graphs.values())


def _row(nodes: int, edges: Edges, exponent: float, inside: float | None, parts: int) -> dict[str, Cell]:
    degrees = degrees_of(edges, nodes)
    offsets = balanced_offsets(degrees, parts)
    own, halos = np.diff(offsets), halo_sizes(edges, offsets)
    load = np.add.reduceat(degrees + 1, offsets[:-1])
    return {
        "exponent": exponent,
        "order": "random" if inside is None else "communities",
        "edges inside": inside,
        "parts": parts,
        "halo / own nodes": float(halos.sum() / nodes),
        "largest halo / mean part": float(halos.max() * parts / nodes),
        "largest part / mean, nodes": float(own.max() * parts / nodes),
        "largest part / mean, edges": float(load.max() * parts / load.sum()),
        "largest degree": int(degrees.max()),
    }


def power_law_edges(
    nodes: int, degree: float, exponent: float, inside: float = 0.0, *, community: int = COMMUNITY, seed: int = 0
) -> Edges:
    """Return the edges of a configuration model, each once, whose degrees have a density `d ** -exponent`.

    A share `inside` of them joins nodes of the same `community` consecutive nodes, the others any two. No expected
    degree is above a hundredth of the nodes. Loops and repeated edges are left out.
    """
    generator = np.random.default_rng(seed)
    weights = generator.random(nodes) ** (-1 / (exponent - 1))
    for _ in range(20):  # the limit lowers the mean, which raises the others
        weights = np.minimum(weights * (degree / weights.mean()), max(nodes / 100, degree))
    near = _paired(weights * inside, community, generator)
    far = _paired(weights * (1 - inside), nodes, generator)
    source, target = np.concatenate([near, far], 1)
    low, high = np.minimum(source, target), np.maximum(source, target)
    keys = (low * nodes + high)[low < high]
    keys.sort()  # `unique` takes several times as long
    keys = keys[np.diff(keys, prepend=-1) > 0]
    return (keys // nodes).astype(np.int32), (keys % nodes).astype(np.int32)


def _paired(weights: NDArray[np.float64], community: int, generator: np.random.Generator) -> Ints:
    """Return edges `(2, E)` that join the ends of nodes at random within each community."""
    ends = np.repeat(np.arange(len(weights)), generator.poisson(weights))
    # Sorted by community, a random number and the node, all in one integer: neighbours in this order are joined.
    node_bits, community_bits = community.bit_length(), (len(weights) // community).bit_length()
    random_bits = 63 - node_bits - community_bits
    keys = (ends // community) << random_bits
    keys |= generator.integers(1 << random_bits, size=len(ends))
    keys <<= node_bits
    keys |= ends % community
    keys.sort()
    ends = (keys >> (random_bits + node_bits)) * community + (keys & ((1 << node_bits) - 1))
    first, second = ends[: len(ends) // 2 * 2].reshape(-1, 2).T
    inside = first // community == second // community  # not so for one pair where a community has an odd end
    return np.stack([first[inside], second[inside]])


def degrees_of(edges: Edges, nodes: int) -> Ints:
    return np.bincount(edges[0], minlength=nodes) + np.bincount(edges[1], minlength=nodes)


def halo_sizes(edges: Edges, offsets: tuple[int, ...]) -> Ints:
    """Return how many nodes of other parts have an edge to each part; an edge is given in one direction."""
    nodes, parts = offsets[-1], len(offsets) - 1
    owner = np.repeat(np.arange(parts), np.diff(offsets))
    seen = np.zeros(parts * nodes, bool)
    for here, there in (edges, edges[::-1]):
        seen[owner[here] * nodes + there] = True
    by_part = seen.reshape(parts, nodes)
    for number, (low, high) in enumerate(pairwise(offsets)):
        by_part[number, low:high] = False
    return np.array([np.count_nonzero(row) for row in by_part])
