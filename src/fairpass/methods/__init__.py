"""Classifiers of nodes: the paper's methods, what it compares them with, and what yours can be built on."""

from fairpass.methods.base import NodeClassifier
from fairpass.methods.constant import Constant
from fairpass.methods.edits import EDITS
from fairpass.methods.exponentiated_gradient import ExponentiatedGradient
from fairpass.methods.fairgnn import FairGNN
from fairpass.methods.fairvgnn import FairVGNN
from fairpass.methods.fmp import FMP
from fairpass.methods.gmmd import GMMD, GMMDS
from fairpass.methods.gnn import GAT, GCN, GIN, SAGE, MLPClassifier
from fairpass.methods.logistic import Logistic
from fairpass.methods.mmd import MMD
from fairpass.methods.nifty import NIFTY
from fairpass.methods.registry import load_model, method, names
from fairpass.methods.thresholds import Thresholds

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
    "SAGE",
    "Constant",
    "ExponentiatedGradient",
    "FairGNN",
    "FairVGNN",
    "Logistic",
    "MLPClassifier",
    "NodeClassifier",
    "Thresholds",
    "load_model",
    "method",
    "names",
]
