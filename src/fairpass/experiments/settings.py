"""The configurations that the experiments use, as data.

Every method has the same common rule: epoch, threshold and configuration are chosen on validation, by
`AUC + F1 + ACC - DP - EO`. The baselines have their authors' hyper-parameters where these are known, plus the small
grids below.
"""

from collections.abc import Mapping
from typing import Any

from fairpass.experiments.spec import Configuration
from fairpass.methods import EDITS, NIFTY, FairGNN, FairVGNN, NodeClassifier
from fairpass.nn.convolution import Backbone

DATASETS = ("german", "credit", "bail")

# Nodes drawn from each group by the sampled message passing (the paper's appendix).
SAMPLES = {"german": 100, "credit": 6000, "bail": 200}

# German's literature trains on raw features; both ways are tried for every method.
SCALES = {"german": ("none", "minmax"), "credit": ("minmax",), "bail": ("minmax",)}

_COMMON = {"threshold": "selection"}

# The settings of version 0.1, with which these experiments were made.
_GMMD_0_1: Mapping[str, Any] = {"columns": "all", "momentum": False, "fair_steps": 4, "alpha": 0.3}
_TRAINING_0_1: Mapping[str, Any] = {
    "epochs": 200,
    "patience": None,
    "learning_rate": 0.01,
    "weight_decay": 0.01,
    "window": 1,
}

# How the public baselines train their plain networks. They have one convolution and a linear head, which is a linear
# map of the smoothed features, as one convolution is.
_PUBLIC = {"epochs": 1000, "learning_rate": 1e-3}


def of(classifier: NodeClassifier, **training: Any) -> Configuration:
    """Return a classifier's settings as a configuration, with the threshold chosen on validation."""
    settings = {name: value for name, value in classifier.training.to_dict().items() if name != "seed"}
    return Configuration(classifier.name, classifier.hyperparameters, {**settings, **_COMMON, **training})


def scaled(dataset: str, *configurations: Configuration) -> tuple[Configuration, ...]:
    """Return the configurations with each of the data set's scales."""
    return tuple(c.but(scale=scale) for scale in SCALES[dataset] for c in configurations)


def plain(dataset: str, backbone: Backbone = "gcn") -> tuple[Configuration, ...]:
    """Return the candidates of a plain GNN: our rate, and the slower one of the public baselines."""
    ours = Configuration(backbone, {}, {**_COMMON, "epochs": 300})
    public = Configuration(backbone, {}, {**_COMMON, **_PUBLIC})
    # At the slow rate a large graph takes minutes, and the fast one is preferred there in any case.
    return scaled(dataset, ours, public, public.but(num_layers=1)) if dataset == "german" else (ours,)


def constant() -> tuple[Configuration, ...]:
    """Return the classifier that predicts the majority."""
    return (Configuration("constant"),)


def baseline(name: str, dataset: str, backbone: Backbone = "gcn") -> tuple[Configuration, ...]:
    """Return the candidates of a baseline: its authors' settings and the small grid stated here."""
    if name == "nifty":
        return scaled(dataset, of(NIFTY.authors(dataset, backbone=backbone)))
    if name == "edits":
        authors = of(EDITS.authors(dataset, backbone=backbone))
        return scaled(dataset, *((authors, authors.but(num_layers=1)) if dataset == "german" else (authors,)))
    if name == "fairgnn":
        return scaled(dataset, of(FairGNN.authors(dataset, backbone=backbone)))
    if name == "fairvgnn":
        return scaled(dataset, of(FairVGNN.authors(dataset, backbone=backbone)))
    if name == "fmp":
        return scaled(
            dataset, *(Configuration("fmp", {"K": K, "lambda_f": f}, _COMMON) for K, f in ((2, 3.0), (5, 30.0)))
        )
    if name == "mmd":
        grid = [
            Configuration("mmd", {"weight": w, "backbone": backbone}, {**_COMMON, "epochs": 300}) for w in (1.0, 10.0)
        ]
        if dataset == "german":
            grid += [c.but(num_layers=1, training=_PUBLIC) for c in grid]
        return scaled(dataset, *grid)
    raise ValueError(f"'name' must be a baseline (got {name!r})")


def paper(
    name: str, dataset: str, backbone: Backbone = "gcn", *, lambda_f: tuple[float, ...] = (1.0, 5.0)
) -> tuple[Configuration, ...]:
    """Return GMMD or GMMD-S as the paper defines it: sampled, its step, fixed alpha, its scaling of lambda_f.

    Of its grid only `lambda_f` is searched here, in two values; `fairpass tune --strategy grid` has all of it.
    """
    shared: dict[str, Any] = {
        **_GMMD_0_1,
        "backbone": backbone,
        "step": "paper",
        "bandwidth": "fixed",
        "alpha": 0.7,
        "sample": SAMPLES[dataset],
        "lambda_f_scaling": "product",
    }
    epochs = {"german": 300, "credit": 100, "bail": 300}[dataset]
    training = {**_TRAINING_0_1, **_COMMON, "epochs": epochs, "learning_rate": 3e-3, "weight_decay": 1e-5}
    return scaled(dataset, *(Configuration(name, {**shared, "lambda_f": f}, training) for f in lambda_f))


# What we recommend on each data set; among several, validation chooses. The candidates on German come from a random
# search over some fifty configurations, of which validation preferred raw features and a small learning rate.
_RECOMMENDED: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "german": tuple(
        {**changes, "training": {"epochs": 300, "learning_rate": 3e-3}}
        for changes in (
            {"lambda_s": 1.0, "alpha": 0.3},
            {"lambda_s": 0.5, "alpha": 0.3},
            {"lambda_s": 1.0, "alpha": 3.0},
            {"lambda_s": 0.5, "alpha": 3.0},
            # A linear map of the features, as the other methods' single convolution is.
            {"num_layers": 1, "lambda_s": 1.0, "alpha": 0.3},
            {"num_layers": 1, "lambda_s": 1.0, "alpha": 3.0},
        )
    ),
    "credit": ({"fair_steps": 4, "training": {"epochs": 100}}, {"fair_steps": 12, "training": {"epochs": 100}}),
    "bail": ({"training": {"epochs": 150}},),
}


# GMMD-S only draws the groups together and nothing holds them apart, so that it needs less weight.
_SIMPLIFIED_WEIGHTS = (1.0, 10.0)


def recommended(name: str, dataset: str, backbone: Backbone = "gcn") -> tuple[Configuration, ...]:
    """Return the candidates of GMMD or GMMD-S as we recommend it: all nodes, stable steps, adaptive bandwidth."""
    start = Configuration(name, {**_GMMD_0_1, "backbone": backbone}, {**_TRAINING_0_1, **_COMMON})
    ours = [start.but(**changes) for changes in _RECOMMENDED[dataset]]
    if name == "gmmd-s":
        # Of the candidates on Credit the one with few steps: more of them only draw the groups further together.
        few = ours[:1] if dataset == "credit" else ours
        ours = [c.but(weight=weight) for c in few for weight in _SIMPLIFIED_WEIGHTS]
    return scaled(dataset, *ours)
