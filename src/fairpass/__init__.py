"""fairpass: fair node classification on graphs by message passing.

The names below are loaded when they are first used, so that `import fairpass` costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# Public name -> the module it lives in.
_HOME = {
    "load": "fairpass.datasets",
    "from_tables": "fairpass.datasets",
    "join": "fairpass.datasets",
    "join_tables": "fairpass.datasets",
    "synthetic": "fairpass.datasets",
    "describe": "fairpass.datasets",
    "find_bias": "fairpass.datasets",
    "graph_gain": "fairpass.datasets.graph_gain",
    "Evaluation": "fairpass.metrics",
    "evaluate": "fairpass.metrics",
    "best_threshold": "fairpass.metrics",
    "GMMDPropagation": "fairpass.nn",
    "GMMDSPropagation": "fairpass.nn",
    "Training": "fairpass.training",
    "NodeClassifier": "fairpass.methods",
    "Constant": "fairpass.methods",
    "GAT": "fairpass.methods",
    "GCN": "fairpass.methods",
    "GIN": "fairpass.methods",
    "SAGE": "fairpass.methods",
    "MLPClassifier": "fairpass.methods",
    "Logistic": "fairpass.methods",
    "Thresholds": "fairpass.methods",
    "ExponentiatedGradient": "fairpass.methods",
    "GMMD": "fairpass.methods",
    "GMMDS": "fairpass.methods",
    "EDITS": "fairpass.methods",
    "FMP": "fairpass.methods",
    "FairGNN": "fairpass.methods",
    "FairVGNN": "fairpass.methods",
    "MMD": "fairpass.methods",
    "NIFTY": "fairpass.methods",
    "fit_all": "fairpass.runs",
    "load_model": "fairpass.methods",
    "tune": "fairpass.tuning",
    "Evidence": "fairpass.report",
    "collect": "fairpass.report",
    "write_report": "fairpass.report",
}

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
    "Evaluation",
    "Evidence",
    "ExponentiatedGradient",
    "FairGNN",
    "FairVGNN",
    "GMMDPropagation",
    "GMMDSPropagation",
    "Logistic",
    "MLPClassifier",
    "NodeClassifier",
    "Thresholds",
    "Training",
    "__version__",
    "best_threshold",
    "collect",
    "describe",
    "evaluate",
    "find_bias",
    "fit_all",
    "from_tables",
    "graph_gain",
    "join",
    "join_tables",
    "load",
    "load_model",
    "synthetic",
    "tune",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fairpass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
