"""Random classification problems in which every group has nodes of every label."""

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture(scope="session")
def make_problem() -> Callable[..., SimpleNamespace]:
    def make(seed: int, n: int = 60, *, classes: int = 2, groups: int = 2, unknown: bool = False) -> SimpleNamespace:
        random = np.random.default_rng(seed)
        y = random.integers(classes, size=n)
        sens = random.integers(-int(unknown), groups, size=n)
        cells = np.arange(classes * groups)
        y[: cells.size], sens[: cells.size] = cells % classes, cells // classes
        scores = random.random((n, classes))
        if seed % 2:  # many ties
            scores = scores.round(1) + 0.01
        scores /= scores.sum(axis=1, keepdims=True)
        pred = scores.argmax(axis=1)
        if classes == 2:
            scores = scores[:, 1]
            pred = (scores > 0.5).astype(np.int64)
        return SimpleNamespace(y=y, sens=sens, scores=scores, pred=pred)

    return make
