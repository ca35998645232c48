"""The configurations that the experiments use; their numbers are in `settings.toml`.

All methods share one rule: epoch, threshold and configuration are chosen on validation, by `AUC + F1 + ACC - DP - EO`.
The baselines have their authors' hyper-parameters where these are known, plus the small grids below.
"""

from collections.abc import Mapping
from typing import Any

from fairpass.experiments.paper import PAPERS
from fairpass.experiments.texts import read_toml
from fairpass.methods import EDITS, NIFTY, FairGNN, FairVGNN
from fairpass.nn.convolution import Backbone
from fairpass.runs import Configuration

_SETTINGS = read_toml("settings.toml")

DATASETS: tuple[str, ...] = tuple(_SETTINGS["scales"])
GMMDS: Mapping[str, str] = _SETTINGS["gmmds"]
BASELINES: Mapping[str, str] = _SETTINGS["baselines"]
LATER: Mapping[str, str] = _SETTINGS["later"]
SAMPLES: Mapping[str, int] = _SETTINGS["samples"]
SWEEP_EPOCHS: Mapping[str, int] = _SETTINGS["sweep_epochs"]
PARTS_EPOCHS: Mapping[str, int] = _SETTINGS["parts_epochs"]
MAJORITY = (Configuration("constant"),)
SMOOTHING = f"smoothing{PAPERS}"  # the label of the paper's GMMD without fairness

_COMMON = {"threshold": "selection"}
# Version 0.1 had no early stopping, which TOML cannot say.
_TRAINING_0_1 = {**_SETTINGS["training_0_1"], "patience": None}
_PUBLIC: Mapping[str, Any] = _SETTINGS["public_training"]


def scaled(dataset: str, *configurations: Configuration) -> tuple[Configuration, ...]:
    """Return the configurations with each of the data set's scales."""
    return tuple(c.but(scale=scale) for scale in _SETTINGS["scales"][dataset] for c in configurations)


def plain(dataset: str, backbone: Backbone = "gcn") -> tuple[Configuration, ...]:
    """Return the candidates of a plain GNN: our learning rate, and the lower one of the public baselines."""
    fast = Configuration(backbone, {}, {**_COMMON, "epochs": 300})
    slow = fast.but(training=_PUBLIC)
    # At the low rate a large graph takes minutes, and validation prefers the high one there in any case.
    return scaled(dataset, fast, slow, slow.but(num_layers=1)) if dataset == "german" else (fast,)


def baseline(name: str, dataset: str, backbone: Backbone = "gcn") -> tuple[Configuration, ...]:
    """Return the candidates of a baseline: its authors' settings, or a small grid."""
    published = {method.name: method for method in (NIFTY, EDITS, FairGNN, FairVGNN)}
    if name in published:
        grid = [Configuration.of(published[name].authors(dataset, backbone=backbone)).but(training=_COMMON)]
    elif name == "fmp":
        grid = [Configuration("fmp", {"K": K, "lambda_f": f}, _COMMON) for K, f in ((2, 3.0), (5, 30.0))]
    elif name == "mmd":
        training = {**_COMMON, "epochs": 300}
        grid = [Configuration("mmd", {"weight": w, "backbone": backbone}, training) for w in (1.0, 10.0)]
    else:
        raise ValueError(f"'name' must be a baseline (got {name!r})")
    if dataset == "german" and name in ("edits", "mmd"):
        grid += [c.but(num_layers=1, training=_PUBLIC if name == "mmd" else {}) for c in grid]
    return scaled(dataset, *grid)


def later(name: str, dataset: str) -> tuple[Configuration, ...]:
    """Return a method that was published after the paper, with its defaults."""
    parameters = _SETTINGS["later_parameters"].get(name, {})
    return scaled(dataset, Configuration(name, parameters, {**_COMMON, **_SETTINGS["later_training"]}))


def papers(name: str, dataset: str, *, lambda_f: tuple[float, ...] = (1.0, 5.0)) -> tuple[Configuration, ...]:
    """Return GMMD or GMMD-S as the paper defines it; of its grid only `lambda_f` is searched, in two values."""
    parameters = {**_SETTINGS["gmmd_0_1"], **_SETTINGS["papers"]["parameters"], "sample": SAMPLES[dataset]}
    training = {**_TRAINING_0_1, **_COMMON, **_SETTINGS["papers"]["training"], **_SETTINGS["papers"][dataset]}
    return scaled(dataset, *(Configuration(name, {**parameters, "lambda_f": f}, training) for f in lambda_f))


def recommended(name: str, dataset: str, backbone: Backbone = "gcn") -> tuple[Configuration, ...]:
    """Return the candidates of GMMD or GMMD-S as we recommend it: all nodes, stable steps, adaptive bandwidth."""
    chosen = _SETTINGS["recommended"][dataset]
    training = {**_TRAINING_0_1, **_COMMON, **chosen["training"]}
    start = Configuration(name, {**_SETTINGS["gmmd_0_1"], "backbone": backbone}, training)
    grid = [start.but(**changes) for changes in chosen["candidates"]]
    if name == "gmmd-s":
        # On Credit only the candidate with few steps: more of them only draw the groups further together.
        few = grid[:1] if dataset == "credit" else grid
        # GMMD-S draws the groups together and nothing holds them apart, so that it needs less weight.
        grid = [c.but(weight=weight) for c in few for weight in (1.0, 10.0)]
    return scaled(dataset, *grid)


def ours(name: str, dataset: str, **changes: Any) -> Configuration:
    """Return the first candidate that we recommend, with some settings changed."""
    return recommended(name, dataset)[0].but(**changes)


def methods(dataset: str) -> dict[str, tuple[Configuration, ...]]:
    """Return the candidates of every method by its label, GMMD and GMMD-S both as the paper's and as recommended."""
    return {
        "GCN": plain(dataset),
        **{label: baseline(name, dataset) for label, name in BASELINES.items()},
        **{f"{label}{PAPERS}": papers(name, dataset) for label, name in GMMDS.items()},
        SMOOTHING: papers("gmmd", dataset, lambda_f=(0.0,)),
        **{label: recommended(name, dataset) for label, name in GMMDS.items()},
    }


def variants(item: str, dataset: str) -> dict[str, Configuration]:
    """Return the variants of GMMD that an item compares, by label."""
    found = {}
    for kind, start in {"recommended": ours("gmmd", dataset), "papers": papers("gmmd", dataset)[0]}.items():
        for label, changes in _SETTINGS["variants"][item][kind].items():
            sample = {"sample": SAMPLES[dataset] if changes["sample"] else None} if "sample" in changes else {}
            found[label] = start.but(**{**changes, **sample})
    return found
