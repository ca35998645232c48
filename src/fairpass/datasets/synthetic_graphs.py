"""Random graphs with a chosen amount of bias."""

import math
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np

from fairpass.datasets.graph import AnyInts, GraphArrays, Ints, simple_graph
from fairpass.datasets.splits import apportion, stratified_split
from fairpass.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data

_NUM_CLASSES = 2

_RANGES = {
    "num_nodes": (1, math.inf),
    **dict.fromkeys(("class_homophily", "sens_homophily", "group_fraction", "base_rate"), (0, 1)),
    "label_bias": (-1, 1),
    **dict.fromkeys(("avg_degree", "feature_signal", "feature_leakage", "seed"), (0, math.inf)),
    **dict.fromkeys(("num_features", "num_groups"), (2, math.inf)),
}
_KIND_NAMES = ("the same label and group", "the same label only", "the same group only", "neither")

_Block = tuple[int, int, int]  # two cells and the number of edges between them

# Every label and group is in every part of the split if each of their pairs has this many nodes.
_SMALLEST_CELL = 3


def synthetic(
    num_nodes: int = 1000,
    *,
    avg_degree: float = 20.0,
    class_homophily: float = 0.7,
    sens_homophily: float = 0.8,
    group_fraction: float = 0.3,
    base_rate: float = 0.5,
    label_bias: float = 0.2,
    feature_signal: float = 2.0,
    feature_leakage: float = 1.0,
    num_features: int = 16,
    num_groups: int = 2,
    fractions: tuple[float, float, float] = (0.5, 0.25, 0.25),
    seed: int = 0,
) -> "Data":
    r"""Return a random graph with two labels whose dials set where bias comes from.

    *Nodes.* The sizes of labels :math:`y` and groups :math:`s` are exact, up to rounding. The nodes of one label and
    one group are a cell.

    *Edges.* A planted partition: of the `num_nodes * avg_degree / 2` edges, the share :math:`h_y h_s` joins nodes of
    the same label and group, :math:`h_y (1 - h_s)` of the same label and different groups, and so on (:math:`h_y` is
    `class_homophily`, :math:`h_s` is `sens_homophily`), up to rounding. Within each of these four kinds every pair of
    nodes is equally likely, so that with high homophily, nodes of larger cells have more neighbours.

    *Features.* :math:`x_i = \frac{a}{2} t(y_i) u + \frac{b}{2} t(s_i) v + \epsilon_i` with standard normal
    :math:`\epsilon_i`, random orthonormal :math:`u, v`, :math:`a` = `feature_signal`, :math:`b` = `feature_leakage`,
    and :math:`t` equally spaced from -1 (the first label or group) to 1 (the last). Among nodes of one label, the best
    guess of one of two groups from the features has the AUC :math:`\Phi(b / \sqrt 2)`; without leakage, features and
    group are independent given the label.

    Time and memory grow with the number of edges.

    Args:
        num_nodes: The number of nodes.
        avg_degree: The average degree.
        class_homophily: The share of edges that join nodes of the same label (H).
        sens_homophily: The share of edges that join nodes of the same group (H_f).
        group_fraction: The share of nodes outside group 0, in equal parts for the other groups.
        base_rate: The share of nodes with label 1.
        label_bias: P(y = 1 | first group) - P(y = 1 | last group), equally spaced in between.
        feature_signal: The distance between the labels' mean features, in standard deviations of the noise.
        feature_leakage: The same between the first and the last group.
        num_features: The number of features, at least 2.
        num_groups: The number of groups, at least 2.
        fractions: The shares of training, validation and test nodes.
        seed: The seed of everything that is random.
    """
    arguments = locals()
    dials: dict[str, float] = {name: arguments[name] for name in _RANGES}
    for name, (low, high) in _RANGES.items():
        if not (low <= dials[name] <= high and math.isfinite(dials[name])):
            expected = f"between {low:g} and {high:g}" if math.isfinite(high) else f"finite and at least {low:g}"
            raise DataError(f"'{name}' must be {expected} (got {dials[name]})")
    sizes = _cell_sizes(num_nodes, num_groups, group_fraction, base_rate, label_bias)
    blocks = _blocks(sizes, round(num_nodes * avg_degree / 2), class_homophily, sens_homophily)

    generator = np.random.default_rng(seed)
    # Nodes and edges are made cell by cell, and then shuffled.
    order = generator.permutation(num_nodes)
    y, sens = np.empty((2, num_nodes), dtype=np.int64)
    y[order], sens[order] = np.repeat(np.indices(sizes.shape).reshape(2, -1), sizes.ravel(), axis=1)
    source, target = _draw_edges(generator, sizes, blocks, order)

    signal, leakage = np.linalg.qr(generator.standard_normal((num_features, 2)))[0].astype(np.float32).T
    x = generator.standard_normal((num_nodes, num_features), dtype=np.float32)
    x += np.outer(feature_signal / 2 * np.linspace(-1, 1, _NUM_CLASSES), signal).astype(np.float32)[y]
    x += np.outer(feature_leakage / 2 * np.linspace(-1, 1, num_groups), leakage).astype(np.float32)[sens]

    split = stratified_split(y, sens, fractions=fractions, seed=seed)
    return GraphArrays(
        x=x,
        edge_index=simple_graph(source, target, num_nodes).edge_index,
        y=y,
        sens=sens,
        **split.masks(),
        feature_names=[f"feature_{i}" for i in range(num_features)],
        sens_column=None,
        label_names=[str(label) for label in range(_NUM_CLASSES)],
        group_names=[str(group) for group in range(num_groups)],
        provenance={"source": "synthetic", "options": dials | {"fractions": list(fractions)}},
    ).to_data()


def _cell_sizes(num_nodes: int, num_groups: int, group_fraction: float, base_rate: float, label_bias: float) -> Ints:
    """Return the number of nodes of each label and group, shape [2, num_groups]."""
    shares = np.full(num_groups, group_fraction / (num_groups - 1))
    shares[0] = 1 - group_fraction
    steps = np.linspace(0, 1, num_groups)
    rates = base_rate + label_bias * (shares @ steps - steps)
    if rates.min() < 0 or rates.max() > 1:
        raise DataError(
            f"'label_bias' must leave every group's rate of label 1 between 0 and 1 "
            f"(got {label_bias}, which makes them {', '.join(f'{rate:.3g}' for rate in rates)})"
        )
    group_sizes = apportion(num_nodes, shares)
    positives = np.rint(rates * group_sizes).astype(np.int64)
    sizes = np.stack([group_sizes - positives, positives])
    if sizes.min() < _SMALLEST_CELL:
        cells = f"every pair of label and group at least {_SMALLEST_CELL} nodes (got {sizes.min()})"
        raise DataError(f"'num_nodes', 'group_fraction', 'base_rate' and 'label_bias' must give {cells}")
    return sizes


def _blocks(sizes: Ints, num_edges: int, class_homophily: float, sens_homophily: float) -> list[_Block]:
    """Return how many edges there are between which cells (within one, if both are the same)."""
    num_groups = sizes.shape[1]
    cells = list(combinations_with_replacement(range(sizes.size), 2))
    first, second = np.array(cells).T
    n = sizes.ravel()
    possible = np.where(first == second, n[first] * (n[first] - 1) // 2, n[first] * n[second])
    # 0: same label, same group; 1: only the label; 2: only the group; 3: neither
    kinds = 2 * (first // num_groups != second // num_groups) + (first % num_groups != second % num_groups)
    shares = np.outer([class_homophily, 1 - class_homophily], [sens_homophily, 1 - sens_homophily])
    counts = np.empty_like(possible)
    for kind, wanted in enumerate(apportion(num_edges, shares.ravel())):
        available = possible[kinds == kind]
        if wanted > available.sum():
            raise DataError(
                f"'avg_degree' must be smaller: the dials ask for {wanted} edges between nodes of "
                f"{_KIND_NAMES[kind]}, and there are {available.sum()} such pairs"
            )
        counts[kinds == kind] = apportion(wanted, available)
    return [(a, b, int(count)) for (a, b), count in zip(cells, counts, strict=True)]


def _draw_edges(generator: np.random.Generator, sizes: Ints, blocks: list[_Block], order: Ints) -> AnyInts:
    """Return both ends of all edges, shape [2, E]: of the numbered pairs of each block, some numbers are drawn."""
    # Block by block and in the shortest type: the edges take most of the memory of a large graph.
    starts = np.cumsum(sizes) - sizes.ravel()
    ends = np.empty((2, sum(count for *_, count in blocks)), np.min_scalar_type(-len(order)))
    done = 0
    for a, b, count in blocks:
        n, m = int(sizes.flat[a]), int(sizes.flat[b])
        if a == b:  # the pairs are (i, i + k mod n) for k = 1, 2, ..., which names no pair twice
            steps, i = np.divmod(_distinct_integers(generator, n * (n - 1) // 2, count), n)
            j = (i + steps + 1) % n
        else:
            i, j = np.divmod(_distinct_integers(generator, n * m, count), m)
        ends[:, done : done + count] = order[np.stack([starts[a] + i, starts[b] + j])]
        done += count
    return ends


def _distinct_integers(generator: np.random.Generator, bound: int, count: int) -> Ints:
    """Return `count` of the integers below `bound`, every choice equally likely.

    numpy's `choice` may need memory for all `bound` integers, and its `unique` is slower than sorting.
    """
    if 2 * count > bound:
        chosen = np.ones(bound, dtype=bool)
        chosen[_distinct_integers(generator, bound, bound - count)] = False
        return np.flatnonzero(chosen)
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < count:
        drawn = np.concatenate([drawn, generator.integers(bound, size=count - len(drawn))])
        drawn.sort()
        drawn = drawn[np.diff(drawn, prepend=-1) > 0]
    return drawn
