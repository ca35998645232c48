"""Fits in several threads of one process: each gives what it gives alone, and leaves PyTorch as it was."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from fairpass import methods
from fairpass.datasets import load
from fairpass.methods import NodeClassifier
from fairpass.training import Training

SHORT = Training(epochs=3, seed=5)


def _classifiers() -> list[NodeClassifier]:
    names = ("gmmd", "gcn", "gat", "nifty", "bemap", "fairdrop")
    return [methods.method(name)(training=SHORT) for name in names]


def test_fits_in_threads_give_what_they_give_alone() -> None:
    data = load("german")

    def predict(model: NodeClassifier) -> Tensor:
        return model.fit(data).predict_proba(data)

    alone = [predict(model) for model in _classifiers()]
    state = torch.get_rng_state()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(predict, _classifiers()))
    for model, ours, theirs in zip(_classifiers(), found, alone, strict=True):
        assert torch.equal(ours, theirs), model.name
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.equal(torch.get_rng_state(), state)
