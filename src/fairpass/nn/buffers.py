"""Checks of buffers that were read from a file."""

from collections.abc import Mapping

from torch import nn


def check_buffers(module: nn.Module, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise `ValueError` unless all of these buffers are absent, or all are finite and of these shapes."""
    found = {name: getattr(module, name) for name in shapes}
    if all(value is None for value in found.values()):
        return
    for name, value in found.items():
        if value is None or value.shape != shapes[name]:
            shape = None if value is None else tuple(value.shape)
            raise ValueError(f"'{name}' must have shape {shapes[name]} (got {shape})")
        if not bool(value.isfinite().all()):
            raise ValueError(f"'{name}' must be finite (got nan or infinity)")
