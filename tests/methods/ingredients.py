"""Small graphs, quick methods, and other things that tests of methods are made of."""

import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.datasets.splits import stratified_split
from fairpass.methods import Constant, ExponentiatedGradient, Logistic, NodeClassifier, Thresholds
from fairpass.training import EpochRecord, Training

EPOCHS = 5

# What makes a method's preparation short.
QUICK: dict[str, dict[str, Any]] = {
    "fairgb": {"warmup": 1},
    "fairgnn": {"estimator_epochs": 3},
    "fairinv": {"reference_epochs": 3, "partition_epochs": 3},
    "edits": {"debias_epochs": 3},
    "exponentiated-gradient": {"max_iter": 4},
}

Kind = type[NodeClassifier]


def small_graph(nodes: int = 150, *, classes: int = 2, groups: int = 2, seed: int = 0) -> Data:
    """Return a random graph, its sensitive attribute the last feature, with every label in every group."""
    data = synthetic(nodes, avg_degree=8, num_features=6, num_groups=groups, group_fraction=0.5, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    if classes > 2:
        data.y = torch.randint(classes, (nodes,), generator=generator)
        data.label_names = [f"label {i}" for i in range(classes)]
        split = stratified_split(data.y, data.sens, seed=seed)
        masks = (split.train, split.val, split.test)
        data.train_mask, data.val_mask, data.test_mask = map(torch.from_numpy, masks)
    data.x = torch.cat([data.x, data.sens[:, None].float()], 1)
    data.feature_names, data.sens_column = [*data.feature_names, "group"], 6
    return data


def some_unknown(data: Data, share: float = 0.3) -> Data:
    """Return the graph with the groups of some nodes unknown, outside validation."""
    chosen = torch.rand(data.num_nodes, generator=torch.Generator().manual_seed(1)) < share
    changed = copy.copy(data)
    changed.sens = torch.where(chosen & ~data.val_mask, -1, data.sens)
    return changed


def make(kind: Kind, **settings: Any) -> NodeClassifier:
    return kind(**QUICK.get(kind.name, {}), training=Training(**{"epochs": EPOCHS, **settings}))


def draws_nothing(kind: Kind) -> bool:
    """Return whether a method's scores are the same for every seed."""
    return issubclass(kind, Constant | Logistic | Thresholds | ExponentiatedGradient)


def fit_or_refuse(model: NodeClassifier, data: Data) -> bool:
    """Return whether a method takes this graph; one that does not must say so before any epoch."""
    epochs: list[EpochRecord] = []
    refusal = None
    try:
        model.fit(data, callbacks=[epochs.append])
    except ValueError as error:
        refusal = str(error)
    if refusal is not None:
        assert not epochs
        assert " must " in refusal
    return refusal is None


def check_probabilities(probabilities: Tensor, nodes: int, classes: int = 2) -> None:
    assert probabilities.shape == (nodes, classes)
    assert bool((probabilities >= 0).all())
    torch.testing.assert_close(probabilities.sum(1), torch.ones(nodes))


def changed(data: Data, **attributes: Any) -> Data:
    """Return the graph with some attributes replaced, or removed if None."""
    other = copy.copy(data)
    for name, value in attributes.items():
        if value is None:
            del other[name]
        else:
            other[name] = value
    return other


class Interrupt:
    """A callback that presses Ctrl-C after an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def __call__(self, record: EpochRecord) -> None:
        if record.epoch == self.epoch:
            raise KeyboardInterrupt
