"""Message passing layers and operators, as plain modules in PyTorch Geometric's conventions."""

from fairpass.nn.adjacency import Adjacency
from fairpass.nn.attention import Attention, Structure
from fairpass.nn.convolution import GNN
from fairpass.nn.mlp import MLP
from fairpass.nn.propagation import GMMDPropagation, GMMDSPropagation

__all__ = ["GNN", "MLP", "Adjacency", "Attention", "GMMDPropagation", "GMMDSPropagation", "Structure"]
