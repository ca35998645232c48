"""Where to search: for every method, as data."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Literal, get_args

from fairpass.tuning.dimensions import Choice, Dimension, Integers, LogUniform, Uniform

Space = Mapping[str, Dimension]
Kind = Literal["recommended", "grid"]

_ADAM: Space = {"learning_rate": LogUniform(1e-3, 3e-2), "weight_decay": LogUniform(1e-5, 1e-1)}
_GNN: Space = {"dropout": Choice(0.0, 0.2, 0.5, 0.8), **_ADAM}
# Whether message passing helps, and where (in the encoder, in the smoothing, or not at all), is for validation to say.
_GMMD: Space = {
    "encoder": Choice("linear", "mlp", "gcn", "sage"),
    "hidden": Choice(16, 32, 64),
    "scale": Choice("given", "minmax"),
    "lambda_s": Choice(0.0, 0.5, 1.0, 2.0),
    "weight": LogUniform(1, 10_000),
    "alpha": LogUniform(0.1, 2),
    "fair_steps": Choice(2, 4, 6, 12),  # the time of an epoch grows with it
    **_ADAM,
}

# `C` is for standardised features; of a mixture the regressions differ in it as one alone would.
_LOGISTIC: Space = {"C": LogUniform(1e-3, 100)}

RECOMMENDED: Mapping[str, Space] = {
    "constant": {},
    "gcn": _GNN,
    "gin": _GNN,
    "gat": _GNN,
    "sage": _GNN,
    "mlp": _GNN,
    "logistic": _LOGISTIC,
    "thresholds": {"base": Choice("logistic", "mlp", "gcn", "sage"), **_ADAM},
    "exponentiated-gradient": {"eps": LogUniform(1e-3, 0.3), **_LOGISTIC},
    "mmd": {"weight": LogUniform(0.1, 100), "alpha": LogUniform(0.1, 30), **_GNN},
    "fmp": {"lambda_f": LogUniform(0.1, 100), "lambda_s": LogUniform(0.1, 10), "K": Integers(1, 6), **_ADAM},
    "nifty": {"similarity": Uniform(0.1, 0.9), "drop_edges": LogUniform(1e-3, 0.5), "noise": Uniform(0, 0.5), **_ADAM},
    "fairgnn": {"alpha": LogUniform(0.1, 100), "beta": LogUniform(1e-3, 10), **_GNN},
    "fairvgnn": {
        "clip": LogUniform(0.01, 10),
        "ratio": Uniform(0, 2),
        "d_epochs": Choice(5, 10),
        "c_epochs": Choice(5, 10),
        "g_epochs": Choice(5, 10),
        **_ADAM,
    },
    "edits": {
        "alpha": LogUniform(0.01, 1),
        "beta": LogUniform(0.05, 5),
        "gamma": LogUniform(1, 100),
        "tau": LogUniform(0.005, 0.5),
        "drop": Integers(0, 8),
        **_GNN,
    },
    "gmmd": _GMMD,
    # Nothing but its weight keeps GMMD-S from drawing all nodes together.
    "gmmd-s": {**_GMMD, "weight": LogUniform(0.1, 100)},
}
"""What we recommend: intervals around what is known to work, for `tpe`, `motpe`, `nsga2` and `random`."""

# Section "Setup and Hyper-parameter settings" of Zhu et al. 2023. `sample` is German's: fix it at 200 for Bail and at
# 6000 for Credit.
_PAPER: Space = {
    "lambda_s": Choice(0.0, 0.1, 0.5, 1.0, 2.0),
    "lambda_f": Choice(0.0, 0.1, 0.5, 1.0, 5.0, 10.0),
    "alpha": Choice(0.1, 0.3, 0.7, 1.0),
    "num_layers": Choice(1, 2, 4, 6),
    "learning_rate": Choice(0.003, 0.001, 0.0001),
    "weight_decay": Choice(0.0, 0.4, 0.0001, 0.00001),
    "lambda_f_scaling": Choice("product"),
    "step": Choice("paper"),
    "bandwidth": Choice("fixed"),
    "sample": Choice(100),
    "encoder": Choice("mlp"),
    "hidden": Choice(16),
    "scale": Choice("given"),
    "columns": Choice("all"),
    "criterion": Choice("dp"),
    "K": Choice(2),
}
_ADAM_GRID: Space = {"learning_rate": Choice(0.001, 0.01), "weight_decay": Choice(1e-5, 1e-3)}
_GNN_GRID: Space = {"dropout": Choice(0.0, 0.5), **_ADAM_GRID}

GRIDS: Mapping[str, Space] = {
    "constant": {},
    "gcn": _GNN_GRID,
    "gin": _GNN_GRID,
    "gat": _GNN_GRID,
    "sage": _GNN_GRID,
    "mlp": _GNN_GRID,
    "logistic": {"C": Choice(0.01, 0.1, 1.0, 10.0)},
    "thresholds": {"base": Choice("logistic", "mlp", "gcn", "sage"), **_ADAM_GRID},
    "exponentiated-gradient": {"eps": Choice(0.01, 0.05, 0.1), "C": Choice(0.1, 1.0, 10.0)},
    "mmd": {"weight": Choice(0.1, 1.0, 10.0, 100.0), **_ADAM_GRID},
    "fmp": {"lambda_f": Choice(1.0, 3.0, 10.0, 30.0), "lambda_s": Choice(1.0, 3.0), "K": Choice(2, 5), **_ADAM_GRID},
    "nifty": {"similarity": Choice(0.4, 0.6, 0.8), "drop_edges": Choice(0.001, 0.1), **_ADAM_GRID},
    "fairgnn": {"alpha": Choice(4.0, 10.0, 50.0, 100.0), "beta": Choice(0.01, 1.0), **_ADAM_GRID},
    "fairvgnn": {"clip": Choice(0.01, 0.1, 1.0), "ratio": Choice(0.0, 0.5, 1.0), **_ADAM_GRID},
    "edits": {"tau": Choice(0.015, 0.02, 0.29), "beta": Choice(0.1, 0.8, 1.0), **_ADAM_GRID},
    "gmmd": _PAPER,
    "gmmd-s": _PAPER,
}
"""The paper's own grid for its methods. For the others it names none, and these are small ones of ours around their
authors' values."""


def space_of(method: str, kind: Kind = "recommended") -> Space:
    """Return where to search for a method; for one that is not listed, how Adam is set.

    Args:
        method: its name.
        kind: `"recommended"` for ours, `"grid"` for a finite one, which for GMMD and GMMD-S is the paper's.
    """
    if kind not in get_args(Kind):
        raise ValueError(f"'kind' must be one of {get_args(Kind)} (got {kind!r})")
    known, other = (RECOMMENDED, _ADAM) if kind == "recommended" else (GRIDS, _ADAM_GRID)
    return known.get(method, other)


def combinations(space: Space) -> Iterator[dict[str, Any]]:
    """Return every configuration of a finite space, the last parameter changing fastest."""
    values = []
    for name, dimension in space.items():
        if isinstance(dimension, Choice):
            values.append(dimension.values)
        elif isinstance(dimension, Integers):
            values.append(tuple(range(int(dimension.low), int(dimension.high) + 1)))
        else:
            raise ValueError(f"'{name}' must be a Choice or Integers for the strategy 'grid' (got {dimension})")
    return (dict(zip(space, combination, strict=True)) for combination in product(*values))
