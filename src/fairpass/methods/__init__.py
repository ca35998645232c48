"""Classifiers of nodes: the paper's methods, what it compares them with, and what yours can be built on."""

from fairpass.methods.base import NodeClassifier
from fairpass.methods.constant import Constant
from fairpass.methods.gmmd import GMMD, GMMDS
from fairpass.methods.gnn import GAT, GCN, GIN
from fairpass.methods.registry import load_model, method, names

__all__ = ["GAT", "GCN", "GIN", "GMMD", "GMMDS", "Constant", "NodeClassifier", "load_model", "method", "names"]
