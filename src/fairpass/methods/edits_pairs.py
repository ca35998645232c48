"""The largest entries of a matrix of low rank, found without computing all of them."""

from math import ceil, inf, log2, sqrt

import torch
from torch import Tensor

# Nodes in a cell, unless there would be too many cells; and entries computed in one go.
_CELL, _MOST_HALVINGS = 64, 10
_ENTRIES_AT_ONCE = 2**20


class LowRank:
    """The matrix `left right'`, both factors `(N, r)`; only some of its entries are ever computed."""

    def __init__(self, left: Tensor, right: Tensor) -> None:
        self.left, self.right = left, right

    def entries(self, row: Tensor, col: Tensor) -> Tensor:
        return (self.left[row] * self.right[col]).sum(-1)

    def halves(self) -> tuple[Tensor, Tensor]:
        """Return `P, Q` with `P Q'` the symmetric part, both of the same range."""
        ratio = self.right.abs().amax(0) / self.left.abs().amax(0)
        balance = torch.where((ratio > 0) & torch.isfinite(ratio), ratio, 1).sqrt()
        left, right = self.left * balance / sqrt(2), self.right / balance / sqrt(2)
        return torch.cat([left, right], 1), torch.cat([right, left], 1)


def strongest_pairs(matrix: LowRank, count: int, edges: Tensor) -> Tensor:
    """Return the pairs of different nodes with the largest mean of their two entries, edges left out, `(2, count)`.

    Nodes with similar rows are grouped into cells. The cells' ranges bound the entries between two cells, so pairs of
    cells are visited best first, until no other can hold anything better. `edges` has both directions.
    """
    if count == 0:
        return edges.new_empty((2, 0))
    ahead, behind = matrix.halves()
    nodes = len(ahead)
    taken = (edges[0] * nodes + edges[1]).sort().values
    cells = _cells(ahead)
    # Row `nodes` stands for the empty places of a cell.
    ahead, behind = (torch.cat([half, half[-1:]]) for half in (ahead, behind))
    first, second = torch.triu_indices(len(cells), len(cells), device=edges.device)
    bounds, order = _bounds(ahead[cells], behind[cells])[first, second].sort(descending=True)
    place = torch.arange(cells.shape[1], device=edges.device)
    values, pairs = ahead.new_empty(0), edges.new_empty((2, 0))
    at_once = max(1, _ENTRIES_AT_ONCE // cells.shape[1] ** 2)
    for some, bound in zip(torch.split(order, at_once), bounds[::at_once].tolist(), strict=True):
        least = float(values.min()) if len(values) == count else -inf
        if bound <= least:
            break
        one, other = cells[first[some]], cells[second[some]]
        products = ahead[one] @ behind[other].mT
        # In a cell with itself, every pair would occur twice.
        once = (first[some] != second[some])[:, None, None] | (place[:, None] < place)
        which, i, j = torch.nonzero(once & (products > least), as_tuple=True)
        found = torch.stack([one[which, i], other[which, j]])
        new = (found < nodes).all(0) & ~_contains(taken, found[0] * nodes + found[1])
        values = torch.cat([values, products[which, i, j][new]])
        values, best = values.topk(min(count, len(values)))
        pairs = torch.cat([pairs, found[:, new]], 1)[:, best]
    return pairs


def _contains(members: Tensor, values: Tensor) -> Tensor:
    """Return which values are among sorted members."""
    if not len(members):
        return torch.zeros_like(values, dtype=torch.bool)
    return members[torch.searchsorted(members, values).clamp(max=len(members) - 1)] == values


def _cells(rows: Tensor) -> Tensor:
    """Return nodes in cells of equal size, split repeatedly along their widest column; empty places hold `N`."""
    levels = min(max(0, ceil(log2(len(rows) / _CELL))), _MOST_HALVINGS)
    size = ceil(len(rows) / 2**levels)
    cells = torch.arange(size * 2**levels, device=rows.device).clamp(max=len(rows))[None]
    rows = torch.cat([rows, rows[-1:]])
    for _ in range(levels):
        inside = rows[cells]
        widest = (inside.amax(1) - inside.amin(1)).argmax(-1)
        along = inside.gather(2, widest[:, None, None].expand(-1, inside.shape[1], 1))[:, :, 0]
        cells = cells.gather(1, along.argsort(1)).view(2 * len(cells), -1)
    return cells


def _bounds(ahead: Tensor, behind: Tensor) -> Tensor:
    """Return upper bounds of the product of a row in one cell with one in another, `(C, C)`."""
    ends = [(half.amin(1), half.amax(1)) for half in (ahead, behind)]
    corners = [a[:, None, :] * b[None, :, :] for a in ends[0] for b in ends[1]]
    return torch.stack(corners).amax(0).sum(-1)
