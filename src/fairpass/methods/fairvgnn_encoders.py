r"""FairVGNN's encoders: one layer of a backbone with a linear head on top, under many feature masks at once.

A mask scales columns and `A` mixes rows, so :math:`A (X \odot m) W = (A X \odot m) W`, and `A X` is computed once. The
rest up to a head :math:`v` is affine (batch normalisation follows from the mean and covariance of `A X`), so the logits
under `K` masks are one product, :math:`(A X)(m_k \odot W v) + b^\top v`. Only attention needs a pass for each mask.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fairpass.nn import Attention, SparseOperator
from fairpass.nn.convolution import Backbone
from fairpass.training import Task


class MaskedEncoder(nn.Module):
    r"""One layer of width `hidden`, for the GCN :math:`\tilde A (X \odot m) W + b`."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_features, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))

    def view(self, task: Task, nodes: Tensor | None) -> Any:
        """Return what `forward` needs of a graph for the logits of these nodes (None: all)."""
        return _rows(task.operator("gcn") @ task.x, nodes)

    def forward(self, view: Any, masks: Tensor, head: nn.Linear) -> Tensor:
        """Return the head's logits of the view's nodes under masks `(K, d)`, `(K, n)`."""
        directions = masks * (head.weight @ self.linear.weight)
        out: Tensor = directions @ view.T + head(self.bias)
        return out

    @torch.no_grad()
    def clamp(self, bound: Tensor) -> None:
        self.linear.weight.clamp_(-bound, bound)


class MaskedSAGE(MaskedEncoder):
    r""":math:`D^{-1} A (X \odot m) W + (X \odot m) R + b`; both `W` and `R` are clamped."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__(num_features, hidden)
        self.root = nn.Linear(num_features, hidden, bias=False)

    def view(self, task: Task, nodes: Tensor | None) -> Tensor:
        return _rows(torch.cat([task.operator("sage") @ task.x, task.x], -1), nodes)

    def forward(self, view: Tensor, masks: Tensor, head: nn.Linear) -> Tensor:
        directions = masks.repeat(1, 2) * (head.weight @ torch.cat([self.linear.weight, self.root.weight], -1))
        out: Tensor = directions @ view.T + head(self.bias)
        return out

    @torch.no_grad()
    def clamp(self, bound: Tensor) -> None:
        super().clamp(bound)
        self.root.weight.clamp_(-bound, bound)


class Moments(NamedTuple):
    """Some rows of `A X`, and its mean and covariance over all nodes."""

    rows: Tensor
    mean: Tensor
    covariance: Tensor


class MaskedGIN(MaskedEncoder):
    r""":math:`\mathrm{BN}\big((A + I)(X \odot m) W\big)`, each mask normalised by itself."""

    mean: Tensor
    variance: Tensor

    def __init__(self, num_features: int, hidden: int, momentum: float = 0.1, epsilon: float = 1e-5) -> None:
        super().__init__(num_features, hidden)
        self.scale = nn.Parameter(torch.ones(hidden))
        self.momentum, self.epsilon = momentum, epsilon
        self.register_buffer("mean", torch.zeros(hidden))
        self.register_buffer("variance", torch.ones(hidden))

    def view(self, task: Task, nodes: Tensor | None) -> Moments:
        propagated = task.operator("gin") @ task.x
        mean = propagated.mean(0)
        centred = propagated - mean
        return Moments(_rows(propagated, nodes), mean, centred.T @ centred / len(centred))

    def forward(self, view: Moments, masks: Tensor, head: nn.Linear) -> Tensor:
        masked = masks[:, None, :] * self.linear.weight  # (K, hidden, d)
        mean, variance = self._statistics(masked, view)
        scale = self.scale * (variance + self.epsilon).rsqrt()
        directions = ((scale * head.weight)[:, :, None] * masked).sum(1)
        out: Tensor = directions @ view.rows.T + head(self.bias - scale * mean)
        return out

    def _statistics(self, masked: Tensor, view: Moments) -> tuple[Tensor, Tensor]:
        if not self.training:
            return self.mean[None], self.variance[None]
        mean, variance = masked @ view.mean, (masked @ view.covariance * masked).sum(-1)
        self.mean.lerp_(mean.detach().mean(0), self.momentum)
        self.variance.lerp_(variance.detach().mean(0), self.momentum)
        return mean, variance


class Neighbourhoods(NamedTuple):
    """The features, the edges into some nodes, and these nodes (None: all)."""

    x: Tensor
    structure: SparseOperator
    nodes: Tensor | None


class MaskedGAT(MaskedEncoder):
    r""":math:`A^{att} (X \odot m) W + b`, one head, attention from :math:`(X \odot m) W`."""

    def __init__(self, num_features: int, hidden: int) -> None:
        super().__init__(num_features, hidden)
        self.attention = Attention(hidden)

    def view(self, task: Task, nodes: Tensor | None) -> Neighbourhoods:
        if nodes is None:
            return Neighbourhoods(task.x, task.operator("gat"), None)
        wanted = torch.zeros(task.num_nodes, dtype=torch.bool, device=task.device)
        wanted[nodes] = True
        inwards = task.edge_index[:, wanted[task.edge_index[1]]]
        return Neighbourhoods(task.x, SparseOperator.from_edge_index(inwards, task.num_nodes, "gat"), nodes)

    def forward(self, view: Neighbourhoods, masks: Tensor, head: nn.Linear) -> Tensor:
        # Attention needs two products of `X W` with a vector, and the head a third.
        vectors = torch.cat([self.attention.b_target.T, self.attention.b_source.T, head.weight])
        products = (masks[:, None, :] * (vectors @ self.linear.weight)) @ view.x.T  # (K, 3, N)
        slope = self.attention.negative_slope
        means = torch.stack([attended(each[0], each[1], each[2], view.structure, slope) for each in products])
        out: Tensor = (means if view.nodes is None else means[:, view.nodes]) + head(self.bias)
        return out


def attended(target: Tensor, source: Tensor, value: Tensor, structure: SparseOperator, slope: float) -> Tensor:
    r"""Return :math:`\sum_j a_{ij} v_j`, :math:`a_{i\cdot}` the softmax over `j` of LeakyReLU(target_i + source_j).

    The gradient is written by hand: with autograd, an epoch on the Bail graph takes more than twice as long.
    """
    out: Tensor = _Attended.apply(target, source, value, structure, slope)  # type: ignore[no-untyped-call] # torch's own
    return out


class _Attended(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, target: Tensor, source: Tensor, value: Tensor, structure: SparseOperator, slope: float
    ) -> Tensor:
        row, col = structure.row, structure.col
        score = target.index_select(0, row) + source.index_select(0, col)
        raised = torch.nn.functional.leaky_relu(score, slope)
        exp = (raised - structure.row_max(raised).index_select(0, row)).exp_()
        sums = structure.with_values(exp) @ torch.stack([value, torch.ones_like(value)], 1)
        out = sums[:, 0] / sums[:, 1]
        ctx.structure, ctx.slope = structure, slope
        ctx.save_for_backward(score, exp, sums[:, 1], value, out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        structure = ctx.structure
        score, exp, total, value, out = ctx.saved_tensors
        # With a_ij the attention and g the gradient: g_i a_ij by value j, times (v_j - out_i) by score.
        share = exp * (grad / total).index_select(0, structure.row)
        by_score = share * (value.index_select(0, structure.col) - out.index_select(0, structure.row))
        by_score = torch.where(score > 0, by_score, ctx.slope * by_score)
        by_target = (structure.with_values(by_score) @ torch.ones_like(grad)[:, None])[:, 0]
        by_source, by_value = (torch.zeros_like(grad).index_add_(0, structure.col, part) for part in (by_score, share))
        return by_target, by_source, by_value, None, None


def _rows(values: Tensor, nodes: Tensor | None) -> Tensor:
    return values if nodes is None else values[nodes]


ENCODERS: dict[Backbone, type[MaskedEncoder]] = {
    "gcn": MaskedEncoder,
    "gin": MaskedGIN,
    "gat": MaskedGAT,
    "sage": MaskedSAGE,
}
