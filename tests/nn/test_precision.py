"""Layers take single and double precision, and refuse anything less with a clear message."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fairpass.nn import GNN, MLP, Attention, SparseOperator

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
STRUCTURE = SparseOperator.from_edge_index(EDGES, 3, "gat")
Layer = Callable[[Tensor], Tensor]


def gcn(out_channels: int) -> Layer:
    """A convolution multiplies by the graph first or last, whichever is cheaper."""

    def layer(x: Tensor) -> Tensor:
        known = torch.float64 if x.dtype == torch.float64 else torch.float32
        out: Tensor = GNN("gcn", (4, out_channels)).to(known)(x, SparseOperator.from_edge_index(EDGES, 3, dtype=known))
        return out

    return layer


LAYERS: dict[str, tuple[str, Layer]] = {
    "mlp": ("x", lambda x: MLP(4, 2).to(x.dtype)(x)),
    "attention": ("features", lambda x: Attention(4).to(x.dtype)(x, STRUCTURE)),
    "gat": ("x", lambda x: GNN("gat", (4, 2)).to(x.dtype)(x, STRUCTURE)),
    "wider": ("x", gcn(8)),
    "narrower": ("x", gcn(2)),
}


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(("dtype", "given"), [(torch.float16, "float16"), (torch.bfloat16, "bfloat16")])
def test_half_precision_is_refused(layer: str, dtype: torch.dtype, given: str) -> None:
    name, function = LAYERS[layer]
    with pytest.raises(ValueError, match=rf"^'{name}' must be float32 or float64 \(got {given}\)$"):
        function(torch.ones(3, 4, dtype=dtype))


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_single_and_double_precision_are_kept(layer: str, dtype: torch.dtype) -> None:
    assert LAYERS[layer][1](torch.ones(3, 4, dtype=dtype)).dtype == dtype
