"""Classifiers of nodes: the paper's methods, what it compares them with, and what yours can be built on."""

from fairpass.methods.base import NodeClassifier
from fairpass.methods.constant import Constant
from fairpass.methods.edits import EDITS
from fairpass.methods.fairgnn import FairGNN
from fairpass.methods.fairvgnn import FairVGNN
from fairpass.methods.fmp import FMP
from fairpass.methods.gmmd import GMMD, GMMDS
from fairpass.methods.gnn import GAT, GCN, GIN
from fairpass.methods.mmd import MMD
from fairpass.methods.nifty import NIFTY
from fairpass.methods.registry import load_model, method, names

__all__ = [
    "EDITS",
    "FMP",
    "GAT",
    "GCN",
    "GIN",
    "GMMD",
    "GMMDS",
    "MMD",
    "NIFTY",
    "Constant",
    "FairGNN",
    "FairVGNN",
    "NodeClassifier",
    "load_model",
    "method",
    "names",
]
