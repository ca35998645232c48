"""The backends that the shared battery tests, among them one that only the tests know."""

from typing import cast

import torch
from torch import Tensor

from fairpass.kernels.backend import Gradients, KernelBackend
from fairpass.kernels.dispatch import Backend


class OneByOne(KernelBackend):
    """One target after another: all that a new backend has to implement."""

    name = "one by one"

    def sum(self, w: Tensor) -> Tensor:
        rows = [kernel @ w for kernel, _ in self._rows()]
        return torch.cat([w.new_zeros((len(w), 0, w.shape[-1])), *rows], 1)

    def vjp(self, w: Tensor, grad: Tensor) -> Gradients:
        by_target = torch.zeros_like(self.problem.targets)
        by_source, by_strength = torch.zeros_like(self.problem.sources), torch.zeros_like(w)
        for i, (kernel, slope) in enumerate(self._rows()):
            weights = grad[:, i : i + 1] @ w.mT  # (B, 1, M)
            by_target[:, i : i + 1] = weights @ slope
            by_source -= weights.mT * slope
            by_strength += kernel.mT @ grad[:, i : i + 1]
        return by_target, by_source, by_strength

    def _rows(self) -> list[tuple[Tensor, Tensor]]:
        """Return for each target the kernel `(B, 1, M)` and its gradient by the target, `(B, M, d)`."""
        sources, alpha = self.problem.sources, self.problem.alpha[:, None, None]
        found = []
        for target in torch.unbind(self.problem.targets[:, :, None], 1):
            kernel = torch.exp(-alpha * (target - sources).square().sum(-1)[:, None])
            found.append((kernel, -2 * alpha * (target - sources) * kernel.mT))
        return found


BACKENDS: list[Backend] = ["dense", "tiled", "spectral", "split", "sliced", "exact", "auto"]
BACKENDS.append(cast(Backend, OneByOne.name))
# Backends without an error of their own.
WITHOUT_EPS = ("dense", "tiled", "sliced", OneByOne.name)
