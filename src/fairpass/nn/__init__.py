"""Message passing layers and operators, as plain modules in PyTorch Geometric's conventions."""

from fairpass.nn.convolution import Attention
from fairpass.nn.encoder import GNN, MLP, Encoder
from fairpass.nn.operators import SparseOperator
from fairpass.nn.propagation import GMMDPropagation, GMMDSPropagation

__all__ = ["GNN", "MLP", "Attention", "Encoder", "GMMDPropagation", "GMMDSPropagation", "SparseOperator"]
