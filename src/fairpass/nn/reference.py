"""The reference population of the fair layers: the fields in which the nodes of the fitted graph moved.

In the fair layers every node is moved by all others, through a few kernel sums, so a score would depend on who else is
scored. Kept with the model, these sums move a new node as if it were among the fitted ones, without the fitted graph.
"""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from fairpass.kernels import Groups
from fairpass.kernels.field import KINDS, Field, field_of
from fairpass.nn.validation import LateBuffers, check_buffers

_FIELD_TENSORS = tuple(dict.fromkeys(name for kind in KINDS for name in kind.__dataclass_fields__))
_LAYER_TENSORS = ("alpha", "lambda_f", "accepted", "lowered")


class ReferenceLayer(LateBuffers):
    """One layer's kernel parameter, weight, decisions and fields.

    Buffers: `alpha` and `lambda_f`; `accepted`, whether its steps with momentum were accepted; `lowered`, whether the
    layer lowered the objective, so that it was not damped.
    """

    alpha: Tensor
    lambda_f: Tensor
    accepted: Tensor
    lowered: Tensor

    def __init__(self, steps: int) -> None:
        super().__init__(*_LAYER_TENSORS)
        self.fields = nn.ModuleList(LateBuffers(*_FIELD_TENSORS) for _ in range(steps))

    def record_field(self, number: int, field: Field) -> None:
        """Keep the field of a step."""
        for name, value in field.tensors().items():
            setattr(self.fields[number], name, value)

    def recorded_fields(self) -> list[Field]:
        """Return the fields in the order of the layer's steps."""
        return [field_of(tensors) for stored in self.fields if (tensors := dict(stored.named_buffers()))]

    def check(self, channels: int) -> None:
        """Raise `ValueError` unless the buffers are those of a layer on this many columns."""
        check_buffers(self, dict.fromkeys(_LAYER_TENSORS, ()))
        for field in self.recorded_fields():
            if field.dimension != channels:
                raise ValueError(f"a kernel field must be of {channels} dimensions (got {field.dimension})")


class Reference(LateBuffers):
    """What is kept of the fitted graph's groups; empty until the layers are recorded.

    Buffer `scales`: the weight of a node of each group, see :class:`~fairpass.kernels.Groups`. Each layer has room for
    the fields of `steps` steps.
    """

    scales: Tensor | None
    layers: Any  # a ModuleList of ReferenceLayer

    def __init__(self, layers: int, steps: int) -> None:
        super().__init__("scales")
        self.layers = nn.ModuleList(ReferenceLayer(steps) for _ in range(layers))

    def __iter__(self) -> Iterator[ReferenceLayer]:
        return iter(self.layers)

    def groups(self, shares: Tensor, probabilities: Tensor | None = None) -> Groups:
        """Return other nodes in the groups of the fitted graph; see :meth:`~fairpass.kernels.Groups.of_others`."""
        if self.scales is None:
            raise ValueError("a reference must be recorded before it is used (it is empty)")
        return Groups.of_others(self.scales.to(shares), shares, probabilities)

    def check(self, channels: int, columns: int) -> None:
        """Raise `ValueError` unless the buffers fit layers on this many columns and this many groups (and labels)."""
        check_buffers(self, {"scales": (columns,)})
        for layer in self:
            layer.check(channels)
