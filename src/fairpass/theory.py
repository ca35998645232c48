r"""The bounds of the paper's Theorems 4.1 and 4.2, side by side with the quantities they bound.

Both are about two layers with unit weights, from `F^(0) = X`, without step size, `lambda` or `4 alpha`:

.. math:: F^{(k)} = X + D^{-1} A F^{(k-1)} + P F^{(k-1)}, \qquad k = 1, 2.

`D^{-1} A` is the mean over a node's neighbours, without itself, and `P` is the message of GMMD. :math:`\mu^{(a)}` is
the mean of `X` over group `a`, :math:`\Delta_m = \max_i |X_{im} - \mu_m|` the largest deviation from the mean over all
nodes, norms are Euclidean (of a matrix: spectral) and :math:`s = 1/N_0 + 1/N_1`. `docs/theory.md` discusses what holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt

import torch
from torch import Tensor

from fairpass.kernels import Discrepancy, Groups
from fairpass.nn import SparseOperator
from fairpass.world import world

# For two classes softmax(x)_1 = sigmoid(x_1 - x_0), whose slope is at most 1/4 (at 0), and
# |x_1 - x_0| <= sqrt(2) |x|. So |g(x) - g(y)|_1 = 2 |g(x)_1 - g(y)_1| <= 2 sqrt(2)/4 |x - y|, and no less.
LIPSCHITZ = 1 / sqrt(2)

# Tolerance for rounding, relative to the bound and to the numbers whose difference is measured.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-12


@dataclass(frozen=True)
class Bound:
    """Both sides of a theorem's inequality, `measured <= bound`."""

    measured: float
    bound: float
    terms: Mapping[str, float]  # the named quantities of the right-hand side, such as `C1`
    rounding: float = 0.0  # how far rounding alone can lift `measured` above `bound`

    @property
    def holds(self) -> bool:
        return self.measured <= self.bound + self.rounding

    @property
    def ratio(self) -> float:
        if self.bound:
            return self.measured / self.bound
        return 0.0 if self.holds else inf


class RepresentationBound:
    r"""The right-hand side of Theorem 4.2 for given features.

    .. math::
        (3 - s\,\bar k)\, C_3 + C_2, \quad
        C_2 = \|\mu^{(0)} - \mu^{(1)}\| + \big(8 (1 + s)^2 + 2\big) \|\Delta\|, \quad
        C_3 = (3 - s) \|\mu^{(0)} - \mu^{(1)}\| + (4 + 2 s) \|\Delta\|,

    where :math:`\bar k` is the inter-group similarity, the mean of `k` between nodes of different groups.

    Features `x_in` are `(..., N, d)`; `sens` has the group of each node, 0 or 1 (negative: unknown).
    """

    def __init__(self, x_in: Tensor, sens: Tensor | Groups) -> None:
        groups = _two_groups(x_in, sens)
        self.inverse_sizes = s = float((1 / groups.sizes.double()).sum())
        self.gap = _gap(x_in, groups)
        farthest = world().largest((x_in - world().mean(x_in, -2)).abs().amax(-2))
        self.deviation = farthest.square().sum(-1).sqrt()
        self.C2 = self.gap + (8 * (1 + s) ** 2 + 2) * self.deviation
        self.C3 = (3 - s) * self.gap + (4 + 2 * s) * self.deviation

    def __call__(self, similarity: Tensor | float) -> Tensor:
        return (3 - self.inverse_sizes * similarity) * self.C3 + self.C2


def unit_layers(x: Tensor, edge_index: Tensor, sens: Tensor | Groups, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return `F^(0)`, `F^(1)` and `F^(2)` of the theorems in float64; the mean over no neighbours is taken to be 0."""
    if not alpha > 0:
        raise ValueError(f"'alpha' must be positive (got {alpha})")
    x = x.double()
    discrepancy = Discrepancy(_two_groups(x, sens), backend="exact")
    mean = SparseOperator.from_edge_index(edge_index, x.shape[-2], "sage", dtype=x.dtype)

    def layer(F: Tensor) -> Tensor:
        return x + mean @ F - discrepancy.gradient(F, alpha)[0] / (4 * alpha)

    first = layer(x)
    return x, first, layer(first)


@torch.no_grad()
def readout(x: Tensor, edge_index: Tensor, sens: Tensor | Groups, logits: Tensor, alpha: float) -> Tensor:
    """Return the matrix `W` for which the theorems' `F^(2) W` is nearest to a model's logits."""
    # The pseudo-inverse, because features may be linearly dependent.
    inverse: Tensor = torch.linalg.pinv(unit_layers(x, edge_index, sens, alpha)[-1], rtol=1e-6)
    return inverse @ logits.double()


@torch.no_grad()
def theorem_4_1(
    x: Tensor, edge_index: Tensor, sens: Tensor, weight_matrix: Tensor, alpha: float, *, lipschitz: float = LIPSCHITZ
) -> Bound:
    r"""Return both sides of Theorem 4.1, on the predictions `softmax(F^(2) W)`.

    .. math::
        \Delta_{DP} \le \frac L2 \|W\| \big(\Delta^{Rep}_{DP}(F^{(2)}) + C_1 \|\Delta\|\big), \qquad
        C_1 = (2 + 4 s)^2 + 6 + 8 s,

    with :math:`\Delta_{DP}` the difference between the groups' mean probabilities of class 1.

    Every node needs a neighbour for the bound to hold. `weight_matrix` is `W`, `(d, 2)`; `lipschitz` is `L` with
    `|g(x) - g(y)|_1 <= L |x - y|_2` for the softmax `g`, by default the smallest, `1/sqrt(2)`.
    """
    groups, W = _two_groups(x.double(), sens), weight_matrix.double()
    if W.shape != (x.shape[-1], 2):
        raise ValueError(f"'weight_matrix' must have shape ({x.shape[-1]}, 2) (got {tuple(W.shape)})")
    if not lipschitz > 0:
        raise ValueError(f"'lipschitz' must be positive (got {lipschitz})")
    first, _, last = unit_layers(x, edge_index, groups, alpha)
    right, norm = RepresentationBound(first, groups), float(torch.linalg.matrix_norm(W, 2))
    s, deviation, gap = right.inverse_sizes, float(right.deviation), float(_gap(last, groups))
    C1 = (2 + 4 * s) ** 2 + 6 + 8 * s
    bound = lipschitz / 2 * norm * (gap + C1 * deviation)
    terms = {"C1": C1, "L": lipschitz, "W": norm, "Delta_rep": gap, "Delta": deviation}
    measured = float(_gap((last @ W).softmax(-1)[:, 1:], groups))
    return Bound(measured, bound, terms, _RELATIVE * bound + _ABSOLUTE * float(last.abs().max()) * norm)


@torch.no_grad()
def theorem_4_2(x: Tensor, edge_index: Tensor, sens: Tensor, alpha: float) -> Bound:
    """Return both sides of Theorem 4.2: the distance between the groups' means of `F^(2)`, and its bound.

    The bound is :class:`RepresentationBound` at the similarity of `F^(1)`; arguments as in `theorem_4_1`.
    """
    groups = _two_groups(x.double(), sens)
    first, previous, last = unit_layers(x, edge_index, groups, alpha)
    similarity = float(groups.similarities(previous, alpha, backend="exact")[0, 1])
    right = RepresentationBound(first, groups)
    bound = float(right(similarity))
    C2, C3, gap, deviation = map(float, (right.C2, right.C3, right.gap, right.deviation))
    terms = {"C2": C2, "C3": C3, "similarity": similarity, "gap": gap, "Delta": deviation}
    return Bound(float(_gap(last, groups)), bound, terms, _RELATIVE * bound + _ABSOLUTE * float(last.abs().max()))


def _two_groups(x: Tensor, sens: Tensor | Groups) -> Groups:
    if x.dim() < 2:
        raise ValueError(f"features must have shape (N, d) (got {tuple(x.shape)})")
    groups = sens.to(x) if isinstance(sens, Groups) else Groups.of(sens, x.dtype)
    if len(groups.sizes) != 2:
        raise ValueError(f"'sens' must name exactly two groups (got {len(groups.sizes)})")
    if len(groups.membership) != x.shape[-2]:
        raise ValueError(f"'sens' must have {x.shape[-2]} entries (got {len(groups.membership)})")
    return groups


def _gap(values: Tensor, groups: Groups) -> Tensor:
    means = world().total(groups.membership.mT @ values)
    return (means[..., 0, :] - means[..., 1, :]).square().sum(-1).sqrt()
