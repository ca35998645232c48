"""Which types of numbers the layers compute with."""

import torch
from torch import Tensor

PRECISIONS = (torch.float32, torch.float64)


def check_precision(name: str, x: Tensor) -> None:
    """Raise `ValueError` unless a tensor is in single or double precision.

    Half precision is not enough for sums over many neighbours, and sparse products do not support it everywhere.
    """
    if x.dtype not in PRECISIONS:
        raise ValueError(f"'{name}' must be float32 or float64 (got {str(x.dtype).removeprefix('torch.')})")
