"""Checks of the arguments of layers, and buffers that are filled when a model is fitted."""

from collections.abc import Mapping
from typing import Any, get_args

import torch
from torch import Tensor, nn


def check_choice(name: str, value: str, choices: Any) -> None:
    """Raise `ValueError` unless a value is one of those of a `Literal` type."""
    if value not in get_args(choices):
        raise ValueError(f"'{name}' must be one of {get_args(choices)} (got {value!r})")


def check_precision(name: str, x: Tensor) -> None:
    # Half precision is not enough for sums over many neighbours, and sparse products do not support it everywhere.
    if x.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"'{name}' must be float32 or float64 (got {str(x.dtype).removeprefix('torch.')})")


class LateBuffers(nn.Module):
    """A module whose buffers are registered empty and filled when a model is fitted or loaded."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            self.register_buffer(name, None)

    @property
    def is_empty(self) -> bool:
        return all(value is None for value in self._buffers.values())


def check_buffers(module: nn.Module, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise `ValueError` unless these buffers are all absent, or all finite and of the given shapes."""
    found = {name: getattr(module, name) for name in shapes}
    if all(value is None for value in found.values()):
        return
    for name, value in found.items():
        if value is None or value.shape != shapes[name]:
            shape = None if value is None else tuple(value.shape)
            raise ValueError(f"'{name}' must have shape {shapes[name]} (got {shape})")
        if not bool(value.isfinite().all()):
            raise ValueError(f"'{name}' must be finite (got nan or infinity)")
