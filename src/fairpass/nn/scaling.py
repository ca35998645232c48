"""Feature scaling inside a model, so that a new graph is scaled as the fitted one was."""

from typing import Literal

import torch
from torch import Tensor, nn

InputScale = Literal["given", "standard", "minmax"]


class FeatureScaler(nn.Module):
    """Shifts and scales each feature by its statistics on the fitted graph.

    Args:
        scale: `"given"` leaves the features as they are, `"standard"` gives them mean 0 and variance 1, and
            `"minmax"` the range from -1 to 1. A constant feature becomes 0.
        channels: number of features.
    """

    shift: Tensor
    factor: Tensor

    def __init__(self, scale: InputScale, channels: int) -> None:
        super().__init__()
        self.scale = scale
        if scale != "given":
            self.register_buffer("shift", torch.zeros(channels))
            self.register_buffer("factor", torch.ones(channels))

    def fit(self, x: Tensor) -> None:
        """Measure the features `(N, d)` of the fitted graph."""
        if self.scale == "given":
            return
        if self.scale == "standard":
            shift, spread = x.mean(0), x.std(0, correction=0)
        else:
            low, high = x.amin(0), x.amax(0)
            shift, spread = (low + high) / 2, (high - low) / 2
        self.shift, self.factor = shift, torch.where(spread > 0, 1 / spread, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled features."""
        return x if self.scale == "given" else (x - self.shift) * self.factor

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.scale!r})"
