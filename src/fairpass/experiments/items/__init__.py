"""The paper's tables and figures, and ours: each item says what to run, and what to show of the results."""

from fairpass.experiments.items.comparisons import ABLATION, BACKBONES, BEYOND, MAIN
from fairpass.experiments.items.studies import CASES, RUNTIME, STATS, THEORY
from fairpass.experiments.items.sweeps import ALPHA, HYPER, LAYERS, MLP

# In the order of the results page.
_ALL = (STATS, MAIN, BACKBONES, ABLATION, HYPER, LAYERS, THEORY, ALPHA, MLP, CASES, RUNTIME, BEYOND)
ITEMS = {item.name: item for item in _ALL}
