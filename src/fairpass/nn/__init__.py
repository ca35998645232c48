"""Message passing layers and operators, as plain modules in PyTorch Geometric's conventions."""

from fairpass.nn.adjacency import Adjacency
from fairpass.nn.attention import Attention, Structure
from fairpass.nn.encoder import GNN, MLP, Encoder
from fairpass.nn.propagation import GMMDPropagation, GMMDSPropagation

__all__ = ["GNN", "MLP", "Adjacency", "Attention", "Encoder", "GMMDPropagation", "GMMDSPropagation", "Structure"]
