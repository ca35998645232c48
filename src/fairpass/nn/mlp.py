"""The multi-layer perceptron in front of the message passing."""

from itertools import pairwise

from torch import Tensor, nn

from fairpass.nn.members import Linear, dropout


class MLP(nn.Module):
    """`M` linear layers with ReLU and dropout between them.

    Args:
        in_channels: number of features.
        out_channels: number of classes `c`.
        num_layers: `M`; with 1 it is a linear map.
        hidden_channels: width of the layers between.
        dropout: probability of dropping a hidden unit.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        num_layers: int = 2,
        hidden_channels: int = 16,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ValueError(f"'num_layers' must be at least 1 (got {num_layers})")
        widths = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.layers = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))
        self.dropout = dropout

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator] # every layer is a Linear

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits, `(..., c)`."""
        for i, layer in enumerate(self.layers):
            if i:
                x = dropout(x.relu(), self.dropout, self.training)
            x = layer(x)
        return x
