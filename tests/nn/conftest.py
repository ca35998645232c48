"""Small random graphs with what goes wrong in large ones: isolated nodes, one-way edges, unknown groups."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch


@pytest.fixture(scope="session")
def make_graph() -> Callable[..., SimpleNamespace]:
    def make(
        seed: int = 0, n: int = 10, c: int = 2, *, directed: bool = False, groups: int = 2, unknown: int = 0
    ) -> SimpleNamespace:
        """Return features, edges (the last node has none), their weights, and groups in which all occur."""
        random = torch.Generator().manual_seed(seed)
        chosen = (torch.rand(n - 1, n - 1, generator=random) < 0.4).triu(1)
        weights = torch.rand(n - 1, n - 1, generator=random, dtype=torch.float64) + 0.5
        if not directed:
            chosen, weights = chosen | chosen.T, weights + weights.T
        edge_index = chosen.nonzero().T
        sens = torch.randint(groups, (n,), generator=random)
        sens[:groups] = torch.arange(groups)
        sens[n - unknown :] = -1
        x = torch.randn(n, c, generator=random, dtype=torch.float64)
        return SimpleNamespace(
            n=n,
            x=x,
            edge_index=edge_index,
            edge_weight=weights[edge_index[0], edge_index[1]],
            sens=sens,
            inputs=(x, edge_index, sens),
        )

    return make
