"""The paper's tables and figures, and ours: each item says what to run, and what to show of the results."""

from fairpass.experiments.items.costs import PARETO, RUNTIME
from fairpass.experiments.items.main import MAIN
from fairpass.experiments.items.studies import CASES, STATS, THEORY
from fairpass.experiments.items.sweeps import ALPHA, HYPER, LAYERS, MLP
from fairpass.experiments.items.variants import ABLATION, BACKBONES, BEYOND

_ALL = (STATS, MAIN, BACKBONES, ABLATION, HYPER, LAYERS, THEORY, ALPHA, MLP, CASES, RUNTIME, PARETO, BEYOND)

ITEMS = {item.name: item for item in _ALL}
"""In the order of the results page."""
