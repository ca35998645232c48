"""Message passing layers and operators, as plain modules in PyTorch Geometric's conventions."""

from fairpass.nn.convolution import GNN, MLP, Attention, Encoder
from fairpass.nn.operators import SparseOperator
from fairpass.nn.propagation import GMMDPropagation, GMMDSPropagation

__all__ = ["GNN", "MLP", "Attention", "Encoder", "GMMDPropagation", "GMMDSPropagation", "SparseOperator"]
