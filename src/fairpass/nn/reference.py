"""The reference population of the fair layers: the fields in which the nodes of the fitted graph moved.

In the fair layers every node is moved by all others, so that a score would depend on who else is scored. What moves a
node are a few kernel sums over all nodes. Kept with the model, they move a new node as they would have moved it among
the fitted ones: alone, in any company, and without the fitted graph.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from fairpass.kernels import Discrepancy, Groups
from fairpass.kernels.field import KINDS, Field, field_of
from fairpass.nn.buffers import check_buffers
from fairpass.nn.fairness import FairnessTerm

_FIELD_TENSORS = tuple(dict.fromkeys(name for kind in KINDS for name in kind.__dataclass_fields__))


class StoredField(nn.Module):
    """A kernel field as buffers; empty until something is kept."""

    def __init__(self) -> None:
        super().__init__()
        for name in _FIELD_TENSORS:
            self.register_buffer(name, None)

    def keep(self, kept: Field) -> None:
        """Take over a field's tensors."""
        for name, value in kept.tensors().items():
            setattr(self, name, value)

    @property
    def field(self) -> Field:
        """Return the field of the buffers."""
        return field_of({name: value for name, value in self.named_buffers() if value is not None})

    @property
    def is_empty(self) -> bool:
        """Return whether nothing is kept."""
        return not any(True for _ in self.buffers())


class StoredLayer(nn.Module):
    """One layer's kernel parameter, weight, decisions and fields.

    Buffers: `alpha` and `lambda_f`; `accepted`, whether its steps with momentum were; and `lowered`, whether the layer
    lowered the objective, so that it was not damped.
    """

    alpha: Tensor
    lambda_f: Tensor
    accepted: Tensor
    lowered: Tensor

    def __init__(self, steps: int) -> None:
        super().__init__()
        for name in ("alpha", "lambda_f", "accepted", "lowered"):
            self.register_buffer(name, None)
        self.fields = nn.ModuleList(StoredField() for _ in range(steps))

    def kept(self) -> Iterator[Field]:
        """Yield the fields in the order in which they were felt."""
        for stored in self.fields:
            assert isinstance(stored, StoredField)
            if not stored.is_empty:
                yield stored.field

    def check(self, channels: int) -> None:
        """Raise `ValueError` unless the buffers are those of a layer on this many columns."""
        check_buffers(self, dict.fromkeys(("alpha", "lambda_f", "accepted", "lowered"), ()))
        for one in self.kept():
            if one.dimension != channels:
                raise ValueError(f"a kernel field must be of {channels} dimensions (got {one.dimension})")


class Reference(nn.Module):
    """What is kept of the fitted graph's groups; empty until the layers are recorded.

    Args:
        layers: number of layers.
        steps: number of fields that a layer feels at most.

    Buffer `scales`: what a node of each group counts, see :class:`~fairpass.kernels.Groups`.
    """

    scales: Tensor | None

    def __init__(self, layers: int, steps: int) -> None:
        super().__init__()
        self.register_buffer("scales", None)
        self.layers = nn.ModuleList(StoredLayer(steps) for _ in range(layers))

    def __iter__(self) -> Iterator[StoredLayer]:
        """Yield the layers."""
        for layer in self.layers:
            assert isinstance(layer, StoredLayer)
            yield layer

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has been recorded."""
        return self.scales is None

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


@dataclass(frozen=True)
class RecordedTerm(FairnessTerm):
    """A fairness term that keeps what it does to the nodes in a layer of a reference."""

    layer: StoredLayer = field(kw_only=True)
    _fields: Iterator[nn.Module] = field(init=False, repr=False)

    @classmethod
    def of(cls, term: FairnessTerm, layer: StoredLayer) -> "RecordedTerm":
        """Return a term that keeps what it does."""
        return cls(term.discrepancy, term.alpha, term.lambda_f, term.drawn, layer=layer)

    def __post_init__(self) -> None:
        layer = self.layer
        layer.alpha, layer.lambda_f = self.alpha.detach().clone(), self.lambda_f.detach().reshape(()).clone()
        layer.accepted = layer.lowered = torch.tensor(True)
        object.__setattr__(self, "_fields", iter(layer.fields))

    def gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient and the value, and keep the field."""
        stored = next(self._fields)
        assert isinstance(stored, StoredField)
        stored.keep(self.discrepancy.field(self._taking_part(F), self.alpha))
        return super().gradient(F)

    def accepts(self, limit: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Return whether the steps are accepted, and keep it."""
        self.layer.accepted, value = super().accepts(limit, moved)
        return self.layer.accepted, value

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor, *, is_exact: bool) -> Tensor:
        """Return whether the layer lowers the objective, and keep it."""
        self.layer.lowered = super().stays_below(moved, at_most, F, gained, is_exact=is_exact)
        return self.layer.lowered


class StoredTerm:
    """The fairness term as nodes feel it that move in the fields of a stored layer; decisions are as they were."""

    def __init__(self, layer: StoredLayer, discrepancy: Discrepancy) -> None:
        self.layer, self.discrepancy = layer, discrepancy
        self._fields = layer.kept()
        self.was_damped = not bool(layer.lowered)

    def gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradient in the next field; the value is not known, and nothing depends on it."""
        gradient = self.discrepancy.gradient_in(next(self._fields), F)
        return self.layer.lambda_f.to(F) * gradient, F.new_zeros(())

    def curvature(self, F: Tensor) -> Tensor:
        """Return the bound of each node's group."""
        return self.layer.lambda_f.to(F) * self.discrepancy.curvature(self.layer.alpha.to(F))

    def accepts(self, limit: Tensor, moved: Tensor) -> tuple[Tensor, Tensor]:
        """Return whether the steps were accepted."""
        return self.layer.accepted.to(moved.device), limit

    def stays_below(self, moved: Tensor, at_most: Tensor, F: Tensor, gained: Tensor, *, is_exact: bool) -> Tensor:
        """Return whether the layer lowered the objective."""
        return self.layer.lowered.to(moved.device)
