"""Encoders: layers of one kind, from a node's features to its representation, with or without message passing."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from fairpass.nn.convolution import Backbone, convolution
from fairpass.nn.layers import Linear, NodeNorm, dropout
from fairpass.nn.operators import SparseOperator
from fairpass.nn.validation import check_choice, check_precision

EncoderKind = Literal["mlp", "linear", "gcn", "sage", "gat", "gin"]


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
        if num_layers < 1:
            raise ValueError(f"'num_layers' must be at least 1 (got {num_layers})")
        super().__init__("mlp", (in_channels, *[hidden_channels] * (num_layers - 1), out_channels), dropout)


class GNN(Encoder):
    """Convolutions of one backbone with ReLU and dropout between them; `widths` as for :class:`Encoder`."""

    backbone: Backbone

    def __init__(self, backbone: Backbone, widths: Sequence[int], dropout: float = 0.5) -> None:
        check_choice("backbone", backbone, Backbone)
        super().__init__(backbone, widths, dropout)
