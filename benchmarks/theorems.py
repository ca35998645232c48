"""A search for violations of the two theorems: both sides of both on many small random graphs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from benchmarks.result import Cell, Result, Table
from fairpass.theory import Bound, theorem_4_1, theorem_4_2

Theorem = Literal["4.1", "4.2"]
# Whether nodes without neighbours are allowed.
COLUMNS = {"every node has a neighbour": False, "isolated nodes allowed": True}


@dataclass(frozen=True)
class Trial:
    """One random problem and a theorem's bound for it."""

    theorem: Theorem
    x: Tensor
    edge_index: Tensor
    sens: Tensor
    alpha: float
    weight_matrix: Tensor
    bound: Bound


def run(quick: bool) -> Result:
    graphs = 100 if quick else 5000
    trials = {column: list(random_trials(graphs, seed=0, isolated=allowed)) for column, allowed in COLUMNS.items()}
    rows: list[dict[str, Cell]] = []
    for theorem in get_args(Theorem):
        bounds = {column: [t.bound for t in found if t.theorem == theorem] for column, found in trials.items()}
        failed = {column: sum(not bound.holds for bound in some) for column, some in bounds.items()}
        # Bounds of 0 have no ratio.
        largest = {column: max(bound.ratio for bound in some if bound.bound) for column, some in bounds.items()}
        rows.append({"": f"violations of Theorem {theorem}", **failed})
        rows.append({"": f"largest measured / bound, Theorem {theorem}", **largest})
    of_C2 = {column: max(b.measured / b.terms["C2"] for b in some if b.bound) for column, some in bounds.items()}
    rows.append({"": "largest measured / C2, Theorem 4.2", **of_C2})
    return Result("theorems", [Table(f"Both theorems on {graphs:,} random graphs of 2 to 16 nodes", rows)])


@torch.no_grad()
def random_trials(trials: int, seed: int, *, isolated: bool = False) -> Iterator[Trial]:
    """Yield both theorems on random graphs of 2 to 16 nodes, twice `trials` in all.

    Groups have one node or more; edges within and across groups have their own densities. Features of 1 to 3 columns
    are two-valued, normal or heavy-tailed, offset by up to about 1,000 times their scale, with or without a gap between
    the groups; `alpha` and `W` vary over six and four orders of magnitude. Unless `isolated`, a node without neighbours
    gets a random one.
    """
    generator = torch.Generator().manual_seed(seed)
    for _ in range(trials):
        sizes = (_integer(generator, 1, 8), _integer(generator, 1, 8))
        sens = torch.arange(2).repeat_interleave(torch.tensor(sizes))
        x, scale = _random_features(generator, sens)
        edge_index = _random_edges(generator, sens, isolated)
        alpha = _power_of_ten(generator, 3) / scale**2
        W = torch.randn(x.shape[1], 2, generator=generator, dtype=x.dtype) * _power_of_ten(generator, 2) / scale
        problem = (x, edge_index, sens, alpha, W)
        yield Trial("4.1", *problem, theorem_4_1(x, edge_index, sens, W, alpha))
        yield Trial("4.2", *problem, theorem_4_2(x, edge_index, sens, alpha))


def _integer(generator: torch.Generator, least: int, most: int) -> int:
    return int(torch.randint(least, most + 1, (), generator=generator))


def _power_of_ten(generator: torch.Generator, span: float) -> float:
    """Return a number whose logarithm is uniform between `-span` and `span`."""
    return float(10 ** (span * (2 * torch.rand((), generator=generator, dtype=torch.float64) - 1)))


def _random_features(generator: torch.Generator, sens: Tensor) -> tuple[Tensor, float]:
    """Return features and their scale."""
    shape = (len(sens), _integer(generator, 1, 3))
    base = torch.randn(shape, generator=generator, dtype=torch.float64)
    base = (base.sign(), base, base**3)[_integer(generator, 0, 2)]
    offset = torch.randn(shape[1], generator=generator, dtype=torch.float64) * _power_of_ten(generator, 3)
    gap = torch.randn(shape[1], generator=generator, dtype=torch.float64) * _integer(generator, 0, 2)
    scale = _power_of_ten(generator, 1)
    return scale * (base + offset + gap * sens[:, None]), scale


def _random_edges(generator: torch.Generator, sens: Tensor, isolated: bool) -> Tensor:
    """Return an undirected graph, in which only `isolated` allows nodes without neighbours."""
    nodes = len(sens)
    within, across = torch.rand(2, generator=generator)
    density = torch.where(sens[:, None] == sens, within, across)
    drawn = (torch.rand(nodes, nodes, generator=generator) < density).triu(1)
    joined = drawn | drawn.T
    if not isolated:
        for node in torch.nonzero(~joined.any(1)).flatten().tolist():
            other = (node + _integer(generator, 1, nodes - 1)) % nodes
            joined[node, other] = joined[other, node] = True
    return joined.nonzero().T
