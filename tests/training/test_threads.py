"""Fits in several threads of one process: each gives what it gives alone, and leaves PyTorch as it was."""

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_can_fit_while_a_thread_of_its_parent_does() -> None:
    data, fitting, over = load("german"), Event(), Event()

    def wait(_: object) -> None:
        fitting.set()
        over.wait(120)

    def fit() -> None:
        methods.method("mlp")(training=SHORT).fit(data)

    with ThreadPoolExecutor(1) as pool:
        model = methods.method("mlp")(training=SHORT)
        busy = pool.submit(model.fit, data, callbacks=[wait])
        assert fitting.wait(120)
        forked = multiprocessing.get_context("fork").Process(target=fit)
        forked.start()
        forked.join(60)
        code = forked.exitcode
        forked.kill()
        over.set()
        busy.result(120)
    assert code == 0
