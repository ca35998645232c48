"""Layers take single and double precision, and refuse anything less with a clear message."""

import pytest
import torch

from fairpass.nn import Attention, Structure

STRUCTURE = Structure(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)


@pytest.mark.parametrize(("dtype", "name"), [(torch.float16, "float16"), (torch.bfloat16, "bfloat16")])
def test_half_precision_is_refused(dtype: torch.dtype, name: str) -> None:
    with pytest.raises(ValueError, match=rf"^'features' must be float32 or float64 \(got {name}\)$"):
        Attention(4)(torch.ones(3, 4, dtype=dtype), STRUCTURE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_single_and_double_precision_are_kept(dtype: torch.dtype) -> None:
    assert Attention(4).to(dtype)(torch.ones(3, 4, dtype=dtype), STRUCTURE).dtype == dtype
