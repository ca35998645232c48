"""A graph as numpy arrays: what `load` and `from_tables` build before they make PyG's `Data`.

The audit works on these arrays, so that it imports neither torch nor torch_geometric, which take seconds to load.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

# The label of an unlabelled node, and the group of a node whose group is unknown.
MISSING = -1


@dataclass(frozen=True)
class GraphArrays:
    """The attributes of a graph's `Data`, with numpy arrays in place of tensors."""

    x: NDArray[np.float32]
    edge_index: NDArray[np.int64]
    y: NDArray[np.int64]
    sens: NDArray[np.int64]
    train_mask: NDArray[np.bool_]
    val_mask: NDArray[np.bool_]
    test_mask: NDArray[np.bool_]
    feature_names: list[str]
    sens_column: int | None
    label_names: list[str]
    group_names: list[str]
    provenance: dict[str, Any]
    node_ids: list[Any] | None = None

    def to_data(self) -> "Data":
        """Return the graph as PyG's `Data`."""
        from torch_geometric.data import Data

        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return Data(**{name: _tensor(v) if isinstance(v, np.ndarray) else v for name, v in values.items()})


def _tensor(values: NDArray[Any]) -> "torch.Tensor":
    import torch

    # pandas gives out arrays that must not be written to.
    return torch.from_numpy(values if values.flags.writeable else values.copy())


def array_of(graph: "Data | GraphArrays", name: str) -> Any:
    """Return an attribute of a graph as a numpy array, None if the graph does not have it."""
    value = getattr(graph, name, None)
    return value if value is None or isinstance(value, np.ndarray) else value.detach().cpu().numpy()
