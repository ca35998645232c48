"""One process's part of a graph, as methods see it."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fairpass.datasets.graph import SPLITS
from fairpass.datasets.parts import GraphPart, Manifest, read_part
from fairpass.distributed.halo import Halo
from fairpass.distributed.operator import PartOperator, check_edges
from fairpass.errors import DataError
from fairpass.nn.operators import OperatorKind
from fairpass.training.task import Task
from fairpass.world import SharedWorld


class PartTask(Task):
    """The own nodes of a process, with the sizes and names of the whole graph; must be made inside the shared world.

    Args:
        directory: of the parts; process `k` reads part `k`.
        shared: the processes, as many as there are parts.
        device: where the tensors go.
    """

    def __init__(self, directory: Path, shared: SharedWorld, device: str | torch.device = "cpu") -> None:
        self.manifest, self._part = manifest, part = shared.agree(lambda: _read(directory, shared))
        first = shared.broadcast(manifest.graph.encode())
        shared.agree(lambda: _check_graph(directory, manifest, (first or b"").decode()))
        shared.first_node = manifest.offsets[shared.rank]
        self.x = torch.from_numpy(part.x).to(device, torch.get_default_dtype())
        self.y, self.sens = (torch.from_numpy(each).to(device, torch.long) for each in (part.y, part.sens))
        masks = {name: getattr(part, f"{name}_mask") for name in SPLITS}
        self.masks = {name: torch.from_numpy(mask).to(device) for name, mask in masks.items() if mask is not None}
        self.edge_weight = None if part.edge_weight is None else torch.from_numpy(part.edge_weight)
        self.feature_names, self.label_names = manifest.feature_names, manifest.label_names
        self.group_names, self.sens_column = manifest.group_names, manifest.sens_column
        self.num_nodes, self.num_features = self.x.shape
        last = shared.largest(torch.stack([self.y.max(), self.sens.max()])).tolist()
        self.num_classes = max(2, len(self.label_names), last[0] + 1)
        self.num_groups = max(2, len(self.group_names), last[1] + 1)
        self._check_sizes()
        self.provenance = manifest.provenance
        self.halo = Halo(shared, manifest.offsets, torch.from_numpy(part.halo))
        check_edges(part, self.halo, str(directory))
        self._operators: dict[OperatorKind, Any] = {}
        self.cache: dict[Any, Any] = {}

    def operator(self, kind: OperatorKind) -> PartOperator:
        if kind not in self._operators:
            self._operators[kind] = PartOperator(self._part, self.halo, kind, self.x.dtype)
        found: PartOperator = self._operators[kind]
        return found

    @property
    def edge_index(self) -> Tensor:  # type: ignore[override] # a whole graph has it
        raise DataError("'encoder' must be one of 'mlp', 'linear', 'gcn', 'sage' for a graph in parts")


def _read(directory: Path, shared: SharedWorld) -> tuple[Manifest, GraphPart]:
    manifest = Manifest.read(directory)
    check_size(directory, manifest, shared.size)
    return manifest, read_part(directory, shared.rank, manifest)


def _check_graph(directory: Path, manifest: Manifest, expected: str) -> None:
    if manifest.graph != expected:
        raise DataError(f"'{directory}' must be parts of the same graph on every machine (process 0 has another)")


def check_size(directory: Path, manifest: Manifest, processes: int) -> None:
    if manifest.parts != processes:
        raise DataError(
            f"'workers' must be the number of parts in '{directory}', {manifest.parts} (got {processes}); "
            f"'partition' makes another number of parts"
        )
