r"""Maximum mean discrepancy between groups of nodes, exactly over all nodes, and its gradient.

With the signed weights `u_i = 1/N_0` on the first of two groups and `-1/N_1` on the second,

.. math:: \mathrm{MMD}^2(F) = u^\top K u, \qquad K_{ij} = k(F_i, F_j).

For more groups it is the sum over all pairs of groups. Everything here is a quadratic form
:math:`\sum_{ab} C_{ab}\, m_{ab}` in the mean similarities :math:`m_{ab}` of two groups. Only the small coupling matrix
`C` differs between the full discrepancy (GMMD) and its simplified form (GMMD-S).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple, Unpack, get_args

import torch
from torch import Tensor

from fairpass.kernels.backend import EPS, described
from fairpass.kernels.dispatch import is_sliced
from fairpass.kernels.field import Field, kept_field
from fairpass.kernels.sums import SumOptions, gauss_gram, gauss_slope, gauss_sum, laplace_sum
from fairpass.parameters import check_index
from fairpass.world import world

KernelName = Literal["gaussian", "laplace"]

INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)  # torch only stores other unsigned ones


class Coupling(NamedTuple):
    """A quadratic form in the mean similarities between groups."""

    columns: Tensor  # strengths of the kernel sums, `(..., N, q)`
    matrix: Tensor  # of the form, in these columns, `(q, q)`
    coupled: Tensor  # `columns @ matrix`
    row_sums: Tensor  # of `8 |C| / N_a`; see `Discrepancy.curvature`
    largest: Tensor  # row sum of each problem


@dataclass(frozen=True)
class Groups:
    """The distributions that are compared: the mean over group `a` is `membership[:, a] @ values`.

    Entry `i, a` is `1/N_a` if node `i` is in group `a`, else 0. A node of unknown group has a row of zeros, so that it
    neither exerts nor feels any force. After :meth:`among` there are `G` columns for each label, with weighted nodes.
    """

    membership: Tensor  # `(..., N, blocks G)`, one block of columns after another
    sizes: Tensor  # number of nodes of each group, `(G,)`
    scales: Tensor  # weight of a node that is certainly in a column's group and has its label, `(..., blocks G)`
    blocks: int = 1  # number of separate comparisons

    @classmethod
    def of(cls, sens: Tensor, dtype: torch.dtype = torch.float32) -> "Groups":
        """Return the groups of a vector of group indices, two or more; a negative index means 'unknown'."""
        is_vector = isinstance(sens, Tensor) and sens.dim() == 1 and sens.layout == torch.strided
        if not is_vector or sens.dtype not in (*INTEGERS, torch.bool):
            raise ValueError(f"'sens' must be a vector of integers (got {described(sens)})")
        known = sens >= 0
        group = sens[known].long()
        sizes = _group_sizes(group)
        lacking = torch.nonzero(sizes == 0).flatten().tolist()
        if len(sizes) - len(lacking) < 2:
            raise ValueError(f"'sens' must name at least two groups (got {len(sizes) - len(lacking)})")
        if lacking:
            got = f"no node of group {lacking[0]}, but of group {len(sizes) - 1}"
            raise ValueError(f"'sens' must number its groups without gaps (got {got})")
        membership = torch.zeros((len(sens), len(sizes)), dtype=dtype, device=sens.device)
        scales = 1.0 / sizes.to(dtype)
        membership[known, group] = scales[group]
        return cls(membership, sizes, scales)

    @classmethod
    def of_others(cls, scales: Tensor, shares: Tensor, probabilities: Tensor | None = None) -> "Groups":
        """Return other nodes as members of groups with these `scales`, with the weights of the groups' own nodes.

        `shares` has the probability that a node is in each group, `(N, G)`, a row of zeros for a node that takes no
        part; `probabilities` those of the labels that are compared, `(N, blocks)`, if they are.
        """
        weights = shares if probabilities is None else (probabilities[:, :, None] * shares[:, None]).flatten(1)
        blocks = 1 if probabilities is None else probabilities.shape[-1]
        return cls(weights * scales, 1 / scales[: shares.shape[-1]], scales, blocks)

    def rows(self, index: Tensor) -> "Groups":
        """Return the groups restricted to some nodes of every group, which keep the weight `1/N_a` of the whole."""
        chosen = self.membership[..., index, :]
        present, before = (world().total((part > 0).flatten(0, -2).sum(0)) for part in (chosen, self.membership))
        if bool(((present == 0) & (before > 0)).any()):
            raise ValueError(f"'index' must choose nodes of every group (got group sizes {present.tolist()})")
        return replace(self, membership=chosen)

    def among(self, probabilities: Tensor) -> "Groups":
        """Return the groups' distributions among the nodes of each label, one block for each label.

        The `probabilities` of the labels, `(..., N, Y)`, weight the nodes. A label that a group lacks is not compared.
        """
        weights = probabilities[..., :, None] * self.membership[..., None, :]
        totals = world().total(weights.sum(-3, keepdim=True))
        is_everywhere = (totals > 0).all(-1, keepdim=True)
        weights = torch.where(is_everywhere, weights / totals, 0.0)
        scales = torch.where(is_everywhere, self.scales[..., None, None, :] / totals, 0.0)[..., 0, :, :]
        return Groups(weights.flatten(-2), self.sizes, scales.flatten(-2), probabilities.shape[-1])

    @cached_property
    def num_nodes(self) -> int:
        """The number of nodes of all processes, also those of unknown group."""
        return world().count(self.membership.shape[-2])

    @cached_property
    def full(self) -> Coupling:
        return self._coupling(simplified=False)

    @cached_property
    def simplified(self) -> Coupling:
        return self._coupling(simplified=True)

    def _coupling(self, *, simplified: bool) -> Coupling:
        columns = self.membership
        count = columns.shape[-1] // self.blocks
        identity, blocks = (torch.eye(n, dtype=columns.dtype, device=columns.device) for n in (count, self.blocks))
        matrix = torch.kron(blocks, identity - 1 if simplified else count * identity - 1)
        row_sums = 8 * (columns @ matrix.abs().sum(1, keepdim=True))
        if count == 2 and not simplified:
            # C = v v' with v = (1, -1): one signed column serves both groups.
            columns = columns @ torch.kron(blocks, identity.new_tensor([[1.0], [-1.0]]))
            matrix = blocks
        largest = world().largest(row_sums.amax((-2, -1), keepdim=row_sums.dim() > 2))
        return Coupling(columns, matrix, columns @ matrix, row_sums, largest)

    def similarities(self, points: Tensor, alpha: float | Tensor, **options: Unpack[SumOptions]) -> Tensor:
        """Return the mean kernel value between each pair of groups, `(..., G, G)`, without gradient."""
        return gauss_gram(points, self.membership, alpha, **options)

    def to(self, like: Tensor) -> "Groups":
        """Return the groups in the type and on the device of another tensor."""
        if self.membership.dtype == like.dtype and self.membership.device == like.device:
            return self
        sizes, is_member = self.sizes.to(like.device), self.membership > 0
        if self.blocks > 1 or not torch.equal(self.membership, is_member.to(self.membership) / self.sizes):
            return Groups(self.membership.to(like), sizes, self.scales.to(like), self.blocks)
        # From the sizes: a converted 1/3 would keep the digits of the type it was computed in.
        return Groups(is_member.to(like) / sizes, sizes, 1 / sizes.to(like))


class Discrepancy:
    r"""The fairness term `h_f` of the objective and its gradient.

    Args:
        groups: the nodes' groups.
        simplified: False for :math:`\mathrm{MMD}^2` (GMMD); True for its inter-group part alone,
            :math:`-\frac{2}{N_0 N_1}\sum_{i \in S_0}\sum_{j\in S_1} k_{ij}` (GMMD-S).
        kernel: `"gaussian"`, or `"laplace"`, whose sums visit all pairs of nodes.
        sums: `eps`, `backend` and `directions` of all Gaussian sums; see :func:`gauss_sum`.
    """

    def __init__(
        self, groups: Groups, *, simplified: bool = False, kernel: KernelName = "gaussian", **sums: Unpack[SumOptions]
    ) -> None:
        if kernel not in get_args(KernelName):
            raise ValueError(f"'kernel' must be one of {get_args(KernelName)} (got {kernel!r})")
        if kernel == "laplace" and world().is_shared:
            raise ValueError("'kernel' must be 'gaussian' for a graph in parts (got 'laplace')")
        self.groups, self.kernel = groups, kernel
        self._options: SumOptions = {"backend": "auto", "directions": None, **sums}
        self._coupling = groups.simplified if simplified else groups.full
        self._twice_coupled = 2 * self._coupling.coupled
        # No similarity exceeds 1, and a squared discrepancy is never negative.
        count = groups.membership.shape[-1] // groups.blocks
        self.least = -float(groups.blocks * count * (count - 1)) if simplified else 0.0
        self._is_one_norm = self._coupling.columns.shape[-1] == 1 and not simplified and kernel == "gaussian"

    def value(self, points: Tensor, alpha: float | Tensor) -> Tensor:
        """Return `h_f`, one number for each problem of the batch."""
        inputs = (points, points, self._coupling.columns, alpha)
        sums = laplace_sum(*inputs) if self.kernel == "laplace" else gauss_sum(*inputs, **self._options)
        return world().joint_loss((self._coupling.coupled * sums).sum((-2, -1)))

    def constant_value(self, points: Tensor, alpha: float | Tensor) -> Tensor:
        """Return `h_f` without gradient, without an evaluation at the points."""
        if self.kernel == "laplace":
            return self.value(points.detach(), alpha)
        gram = gauss_gram(points, self._coupling.columns, alpha, **self._options)
        return (self._coupling.matrix * gram).sum((-2, -1))

    @torch.no_grad()
    def at_least(self, points: Tensor, alpha: Tensor) -> Tensor:
        """Return a lower bound of `h_f` at a small part of its cost; `alpha` has one entry for each problem."""
        # The discrepancy of two groups is the largest difference of the groups' means over functions of norm 1. A
        # function spanned by the kernels at the two groups' centres mostly attains nine tenths of it. With slices such
        # a function costs as much as the value itself.
        if not self._is_one_norm:
            return alpha.new_full((), self.least)
        count, dimension = points.shape[-2:]
        if is_sliced(count, count, dimension, self._options["backend"], self._options["directions"]):
            return self.constant_value(points, alpha)
        centres = world().total(self.groups.membership.mT @ points)
        if dimension == 1:
            squared = (centres - points.mT).square_()
        else:
            squared = (centres[..., None, :] - points[..., None, :, :]).square().sum(-1)
        similar = squared.mul_(-alpha[..., None, None]).exp_() @ self._coupling.columns
        near, far = world().total(similar)[..., 0].unbind(-1)
        overlap = (-alpha * (centres[..., 0, :] - centres[..., 1, :]).square().sum(-1)).exp()
        found = near.square() + far.square() - 2 * overlap * near * far
        # For centres that nearly coincide, rounding errors dominate.
        return found / (1 - overlap.square()).clamp(min=1e-3)

    def gradient(self, points: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor]:
        r"""Return :math:`\nabla h_f(F) = -4\alpha P F`, differentiable, and `h_f` as a constant."""
        if self.kernel == "laplace":
            again = points.requires_grad and torch.is_grad_enabled()
            with torch.enable_grad():
                at = points if again else points.detach().requires_grad_()
                value = self.value(at, alpha)
                return torch.autograd.grad(value.sum(), at, create_graph=again)[0], value.detach()
        slopes, gram = gauss_slope(points, self._coupling.columns, alpha, **self._options)
        return self._along(slopes), (self._coupling.matrix * gram).sum((-2, -1))

    def field(self, points: Tensor, alpha: Tensor) -> Field:
        """Return the field of these nodes, in which `gradient_in` moves other nodes; without a batch axis."""
        backend, directions, columns = self._options["backend"], self._options["directions"], self._coupling.columns
        return kept_field(points, columns, alpha, backend, directions, laplace=self.kernel == "laplace")

    def gradient_in(self, field: Field, points: Tensor) -> Tensor:
        """Return the gradient at nodes that move in the field of other nodes of the same groups."""
        return self._along(field.slopes(points))

    def _along(self, slopes: Tensor) -> Tensor:
        if slopes.shape[-2] == 1:
            return self._twice_coupled * slopes[..., 0, :]
        # Not a batched product: PyTorch would make one call for each node.
        return (self._twice_coupled[..., None] * slopes).sum(-2)

    def curvature(self, alpha: float | Tensor) -> Tensor:
        r"""Return for each node a bound on the Hessian of `h_f`, `(N, 1)`; for GMMD :math:`16\alpha/N_a`.

        With node `i` weighted by :math:`m_{ia}` in group `a`, usually :math:`1/N_a`, a block of the Hessian is at most
        :math:`4\alpha \sum_{ab} |C_{ab}| m_{ia} m_{jb}`, because :math:`|(1 - 2\alpha r^2) e^{-\alpha r^2}| \le 1`. No
        column of `m` sums to more than 1, so Gershgorin's row sums give the diagonal matrix
        :math:`8\alpha \sum_{ab} |C_{ab}| m_{ia}` above it. For a batch `alpha` is `(B, 1, 1)`.
        """
        return alpha * self._coupling.row_sums

    def stiffness(self, alpha: float | Tensor) -> Tensor:
        """Return the largest bound of `curvature`, one for each problem."""
        return alpha * self._coupling.largest


def mmd2(
    points: Tensor, sens: Tensor, alpha: float | Tensor, *, kernel: KernelName = "gaussian", eps: float = EPS
) -> Tensor:
    """Return the squared maximum mean discrepancy between the groups, summed over all pairs of groups.

    `points` are `(..., N, d)`; `sens` has the group index of each node, negative if unknown.

    Example:
        >>> mmd2(torch.tensor([[0.0], [0.0]]), torch.tensor([0, 1]), 1.0)
        tensor(0.)
    """
    return Discrepancy(_groups(points, sens), kernel=kernel, eps=eps).value(points, alpha)


def witness(at: Tensor, points: Tensor, sens: Tensor, alpha: float | Tensor, *, eps: float = EPS) -> Tensor:
    r"""Return the witness function of two groups at the points `at`.

    .. math:: \frac1{N_0}\sum_{j \in S_0} k(x, F_j) - \frac1{N_1}\sum_{j \in S_1} k(x, F_j)

    GMMD moves group 0 down its slope and group 1 up.
    """
    groups = _groups(points, sens)
    if len(groups.sizes) != 2:
        raise ValueError(f"'sens' must name exactly two groups (got {len(groups.sizes)})")
    signed = groups.membership @ points.new_tensor([[1.0], [-1.0]])
    return gauss_sum(at, points, signed, alpha, eps=eps)[..., 0]


def intergroup_similarity(points: Tensor, sens: Tensor, alpha: float | Tensor, *, eps: float = EPS) -> Tensor:
    """Return the mean of `k` between nodes of different groups (Theorem 4.2), averaged over all pairs of groups."""
    groups = _groups(points, sens)
    count = len(groups.sizes)
    return -Discrepancy(groups, simplified=True, eps=eps).value(points, alpha) / (count * (count - 1))


def _group_sizes(group: Tensor) -> Tensor:
    """Return the number of nodes of each group; a process may have none of the last ones."""
    last = int(world().largest(group.max() if len(group) else group.new_tensor(-1)))
    check_index("sens", last)
    return world().total(torch.bincount(group, minlength=last + 1))


def _groups(points: Tensor, sens: Tensor) -> Groups:
    if not isinstance(points, Tensor) or points.dim() < 2:
        raise ValueError(f"'points' must be a tensor (..., N, d) (got {described(points)})")
    groups = Groups.of(sens, points.dtype)
    if sens.shape != points.shape[-2:-1]:
        shapes = f"{tuple(sens.shape)} and {tuple(points.shape)}"
        raise ValueError(f"'sens' must have one entry for each of the points (got shapes {shapes})")
    return groups
