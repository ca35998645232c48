"""The backbones' convolutions, as PyG defines them, on operators that are built once for a graph; encoders of them.

A convolution multiplies with a :class:`~fairpass.nn.SparseOperator` instead of gathering and scattering along edges; on
the Bail graph one epoch of a two-layer GCN then takes a tenth of the time. Leading axes of `x` are batches, except for
GAT.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt
from typing import Literal

import torch
from torch import Tensor, nn

from fairpass.nn.layers import Linear, NodeNorm, dropout
from fairpass.nn.operators import SparseOperator
from fairpass.nn.validation import check_choice, check_precision
from fairpass.parameters import check_count

Backbone = Literal["gcn", "gin", "gat", "sage"]
EncoderKind = Literal["mlp", "linear", "gcn", "sage", "gat", "gin"]


class Attention(nn.Module):
    r"""One head of graph attention over a node's neighbours and itself.

    .. math::
        a_{ij} = \frac{\exp e_{ij}}{\sum_{j' \in N(i) \cup i} \exp e_{ij'}}, \qquad
        e_{ij} = \mathrm{LeakyReLU}\big(b_1^\top F_i + b_2^\top F_j\big).

    Args:
        channels: number of columns `c` of `F`.
        negative_slope: of the LeakyReLU.

    Shapes:
        `F` `(N, c)` and an operator of kind `"gat"` -> `A^att F` `(N, c)`.
    """

    def __init__(self, channels: int, negative_slope: float = 0.2) -> None:
        super().__init__()
        check_count("channels", channels)
        self.channels, self.negative_slope = channels, negative_slope
        self.b_target = nn.Parameter(torch.empty(channels, 1))
        self.b_source = nn.Parameter(torch.empty(channels, 1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.b_target)
        nn.init.xavier_uniform_(self.b_source)

    def weights(self, features: Tensor, operator: SparseOperator) -> Tensor:
        """Return the attention `a_ij` of every entry of the operator."""
        check_precision("features", features)
        if operator.kind not in ("gat", None):
            raise ValueError(f"'operator' must be of kind 'gat' for attention (got {operator.kind!r})")
        if features.shape != (operator.num_nodes, self.channels):
            expected = (operator.num_nodes, self.channels)
            raise ValueError(f"'features' must have shape {expected} (got {tuple(features.shape)})")
        target, source = (features @ self.b_target)[:, 0], (features @ self.b_source)[:, 0]
        score = target.index_select(0, operator.row) + source.index_select(0, operator.col)
        e = nn.functional.leaky_relu(score, self.negative_slope)
        exp = torch.exp(e - operator.row_max(e).index_select(0, operator.row))
        total = operator.weighted_product(exp, exp.new_ones((operator.num_nodes, 1)))
        return exp / total[:, 0].index_select(0, operator.row)

    def forward(self, features: Tensor, operator: SparseOperator) -> Tensor:
        return operator.weighted_product(self.weights(features, operator), features)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.channels})"


class GCNConvolution(nn.Module):
    r""":math:`\tilde A X W + b`, as `torch_geometric.nn.GCNConv`."""

    def __init__(self, in_channels: int, out_channels: int, attention: Attention | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.attention = attention
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = sqrt(6 / sum(self.weight.shape))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)
        if self.attention is not None:
            self.attention.reset_parameters()

    def forward(self, x: Tensor, operator: SparseOperator) -> Tensor:
        return _multiply(operator, x, self.weight) + self.bias.unsqueeze(-2)


class GATConvolution(GCNConvolution):
    r""":math:`A^{att}(XW)\, XW + b`, as `torch_geometric.nn.GATConv` with one head."""

    attention: Attention

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, Attention(out_channels))

    def forward(self, x: Tensor, operator: SparseOperator) -> Tensor:
        out: Tensor = self.attention(x @ self.weight, operator) + self.bias
        return out


class GINConvolution(nn.Module):
    r""":math:`\mathrm{MLP}\big((A + (1+\epsilon) I) X\big)`, as `torch_geometric.nn.GINConv` with a two-layer MLP.

    Sums over many neighbours are large. As in the GIN of its authors, they are normalised between the two layers.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first, self.second = Linear(in_channels, out_channels), Linear(out_channels, out_channels)
        self.norm = NodeNorm(out_channels)

    def reset_parameters(self) -> None:
        for part in (self.first, self.norm, self.second):
            part.reset_parameters()

    def forward(self, x: Tensor, operator: SparseOperator) -> Tensor:
        out: Tensor = self.second(self.norm(self.first(operator @ x)).relu())
        return out


class SAGEConvolution(nn.Module):
    r""":math:`D^{-1} A X W + X R + b`, as `torch_geometric.nn.SAGEConv` with the mean aggregator.

    The mean is over a node's neighbours, without the node itself, and 0 for a node that has none.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.root = Linear(in_channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / sqrt(self.weight.shape[-2])  # as in `nn.Linear`
        nn.init.uniform_(self.weight, -bound, bound)
        self.root.reset_parameters()

    def forward(self, x: Tensor, operator: SparseOperator) -> Tensor:
        out: Tensor = _multiply(operator, x, self.weight) + self.root(x)
        return out


def convolution(backbone: Backbone, in_channels: int, out_channels: int) -> nn.Module:
    check_choice("backbone", backbone, Backbone)
    kinds = {"gcn": GCNConvolution, "gin": GINConvolution, "gat": GATConvolution, "sage": SAGEConvolution}
    layer: nn.Module = kinds[backbone](in_channels, out_channels)
    return layer


def _multiply(operator: SparseOperator, x: Tensor, weight: Tensor) -> Tensor:
    # The product on the narrower side of `W` is the cheaper one.
    if weight.shape[-2] <= weight.shape[-1]:
        return (operator @ x) @ weight
    return operator @ (x @ weight)


class Encoder(nn.Module):
    """Linear layers or convolutions of one backbone, with ReLU and dropout between them.

    Args:
        kind: `"mlp"` for linear layers (`"linear"` is one of them), or the backbone of the convolutions.
        widths: number of columns before the first and after every layer, e.g. `(27, 16, 2)` for two.
        dropout: probability of dropping a hidden unit.
        norm: whether to normalise hidden units to mean 0 and variance 1 over the nodes.
        residual: whether to add a hidden layer's input to its output where both have the same width.

    Shapes:
        `x` `(..., N, widths[0])` and the operator of the backbone -> `(..., N, widths[-1])`.
    """

    def __init__(
        self,
        kind: EncoderKind,
        widths: Sequence[int],
        dropout: float = 0.0,
        *,
        norm: bool = False,
        residual: bool = False,
    ) -> None:
        super().__init__()
        check_choice("kind", kind, EncoderKind)
        if kind == "linear":
            widths = (widths[0], widths[-1])
        backbone: Backbone | None = None if kind == "mlp" or kind == "linear" else kind  # noqa: PLR1714 # narrows the type
        self.backbone = backbone
        self.layers = nn.ModuleList(
            Linear(a, b) if backbone is None else convolution(backbone, a, b) for a, b in pairwise(widths)
        )
        self.norms = nn.ModuleList(NodeNorm(width) for width in widths[1:-1]) if norm else None
        self.dropout, self.residual = dropout, residual

    def reset_parameters(self) -> None:
        for layer in (*self.layers, *(self.norms or ())):
            layer.reset_parameters()

    def forward(self, x: Tensor, operator: SparseOperator | None = None) -> Tensor:
        check_precision("x", x)
        if self.backbone is not None and operator is None:
            raise ValueError(f"'operator' must be given for {self.backbone!r} (got None)")
        for i, layer in enumerate(self.layers):
            hidden = x
            if i:
                hidden = hidden if self.norms is None else self.norms[i - 1](hidden)
                # In place, because the values before are not needed and take much memory on a large graph.
                hidden = dropout(hidden.relu_(), self.dropout, self.training)
            out = layer(hidden) if self.backbone is None else layer(hidden, operator)
            is_last = i == len(self.layers) - 1
            x = out + hidden if self.residual and not is_last and out.shape[-1] == hidden.shape[-1] else out
        return x


class MLP(Encoder):
    """`num_layers` linear layers with ReLU and dropout between them."""

    def __init__(
        self, in_channels: int, out_channels: int, num_layers: int = 2, hidden_channels: int = 16, dropout: float = 0.0
    ) -> None:
        check_count("num_layers", num_layers)
        super().__init__("mlp", (in_channels, *[hidden_channels] * (num_layers - 1), out_channels), dropout)


class GNN(Encoder):
    """Convolutions of one backbone with ReLU and dropout between them; `widths` as for :class:`Encoder`."""

    backbone: Backbone

    def __init__(self, backbone: Backbone, widths: Sequence[int], dropout: float = 0.5) -> None:
        check_choice("backbone", backbone, Backbone)
        super().__init__(backbone, widths, dropout)
