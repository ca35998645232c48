"""The backbones' convolutions, as PyG defines them, on operators that are built once for a graph.

They multiply by the fixed operators of `adjacency.py` and `attention.py` instead of gathering and scattering along
edges; on the Bail graph one epoch of a two-layer GCN then takes a tenth of the time.
"""

from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot, uniform, zeros

from fairpass.nn.adjacency import Adjacency
from fairpass.nn.attention import Attention, Structure
from fairpass.nn.members import Linear
from fairpass.nn.norm import NodeNorm
from fairpass.nn.precision import check_precision

Backbone = Literal["gcn", "gin", "gat", "sage"]
Operator = Adjacency | Structure


class GCNConvolution(nn.Module):
    r""":math:`\tilde A X W + b`, as `torch_geometric.nn.GCNConv`; leading axes of `x` are batches."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        glorot(self.weight)
        zeros(self.bias)

    def forward(self, x: Tensor, operator: Operator) -> Tensor:
        """Return the convolved features, `(..., N, out_channels)`."""
        check_precision("x", x)
        if not isinstance(operator, Adjacency):
            raise ValueError("'operator' must be an Adjacency for a GCN (got a Structure)")
        # The product with the narrower side of W is the cheaper one.
        bias = self.bias.unsqueeze(-2)
        if self.weight.shape[-2] <= self.weight.shape[-1]:
            return (operator @ x) @ self.weight + bias
        return operator @ (x @ self.weight) + bias


class GINConvolution(nn.Module):
    r""":math:`\mathrm{MLP}\big((A + (1+\epsilon) I) X\big)`, as `torch_geometric.nn.GINConv` with a two-layer MLP.

    Sums over many neighbours are large. As in the GIN of its authors, they are normalised between the two layers.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first, self.second = Linear(in_channels, out_channels), Linear(out_channels, out_channels)
        self.norm = NodeNorm(out_channels)

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        self.first.reset_parameters()
        self.norm.reset_parameters()
        self.second.reset_parameters()

    def forward(self, x: Tensor, operator: Operator) -> Tensor:
        """Return the convolved features, `(..., N, out_channels)`."""
        check_precision("x", x)
        if not isinstance(operator, Adjacency):
            raise ValueError("'operator' must be an Adjacency for a GIN (got a Structure)")
        out: Tensor = self.second(self.norm(self.first(operator @ x)).relu())
        return out


class GATConvolution(nn.Module):
    r""":math:`A^{att}(XW)\, XW + b`, as `torch_geometric.nn.GATConv` with one head."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.attention = Attention(out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters."""
        glorot(self.weight)
        zeros(self.bias)
        self.attention.reset_parameters()

    def forward(self, x: Tensor, operator: Operator) -> Tensor:
        """Return the convolved features, `(N, out_channels)`."""
        check_precision("x", x)
        if not isinstance(operator, Structure):
            raise ValueError("'operator' must be a Structure for a GAT (got an Adjacency)")
        out: Tensor = self.attention(x @ self.weight, operator) + self.bias
        return out


class SAGEConvolution(nn.Module):
    r""":math:`D^{-1} A X W + X R + b`, as `torch_geometric.nn.SAGEConv` with the mean aggregator.

    The mean is over a node's neighbours, without the node itself, and 0 for a node that has none. Leading axes of `x`
    are batches.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.root = Linear(in_channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters, all from the distribution of `nn.Linear`."""
        uniform(self.weight.shape[-2], self.weight)
        self.root.reset_parameters()

    def forward(self, x: Tensor, operator: Operator) -> Tensor:
        """Return the convolved features, `(..., N, out_channels)`."""
        check_precision("x", x)
        if not isinstance(operator, Adjacency):
            raise ValueError("'operator' must be an Adjacency for a GraphSAGE (got a Structure)")
        # The product with the narrower side of W is the cheaper one.
        widens = self.weight.shape[-2] <= self.weight.shape[-1]
        mean = (operator @ x) @ self.weight if widens else operator @ (x @ self.weight)
        out: Tensor = mean + self.root(x)
        return out


_CONVOLUTIONS: dict[str, type[GCNConvolution | GINConvolution | GATConvolution | SAGEConvolution]] = {
    "gcn": GCNConvolution,
    "gin": GINConvolution,
    "gat": GATConvolution,
    "sage": SAGEConvolution,
}


def convolution(backbone: Backbone, in_channels: int, out_channels: int) -> nn.Module:
    """Return one convolution of a backbone."""
    if backbone not in _CONVOLUTIONS:
        raise ValueError(f"'backbone' must be one of {tuple(_CONVOLUTIONS)} (got {backbone!r})")
    return _CONVOLUTIONS[backbone](in_channels, out_channels)
