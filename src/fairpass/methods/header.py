"""The header of a model file: its schema, and whether the stored tensors fit it before a network is built."""

import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Any, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch_geometric.data import Data

from fairpass.documents import Count, Stored, Values, validate
from fairpass.errors import DataError, ModelFileError
from fairpass.metrics.group_thresholds import GroupThresholds
from fairpass.parameters import MOST_CLASSES
from fairpass.training import EpochRecord, Program, Task
from fairpass.training.task import RememberedTask
from fairpass.training.tensors import read_tensors

KIND = "fairpass model"
# What comes of a header that fits its schema and no method, and how many characters of it are told.
ODD = (TypeError, ValueError, RuntimeError, LookupError, ArithmeticError, AttributeError, MemoryError)
SHOWN = 500
_MOST_FEATURES = 10_000_000  # of a model that is tried out
_PARTS = 50  # parts of a network for each stored tensor; most have one or two

Few = Annotated[int, Field(ge=2, le=MOST_CLASSES)]


class Sizes(Stored):
    """What a program is built from; see `RememberedTask`."""

    num_features: Annotated[int, Field(ge=1)]
    num_classes: Few
    num_groups: Few
    group_sizes: list[Count]
    sens_column: Count | None
    feature_names: list[str]
    label_names: list[str]
    group_names: list[str]

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        for what, names, number in (
            ("features", self.feature_names, self.num_features),
            ("classes", self.label_names, self.num_classes),
            ("groups", self.group_names or self.group_sizes, self.num_groups),
        ):
            if len(names) > number or (what == "features" and names and len(names) < number):
                raise ValueError(f"there must be {number} {what} (got names or sizes of {len(names)})")
        return self


class Header(Stored, extra="ignore"):
    """Everything about a fitted classifier but its tensors.

    The method's constructor checks the parameters: one that it accepts must load.
    """

    method: str
    parameters: Values
    training: Values
    sizes: Sizes
    fingerprint: str
    provenance: Values | None
    versions: dict[str, str]
    threshold: float | None
    epoch: Count
    history: Annotated[list[EpochRecord], Field(min_length=1)]
    chosen: Values | None = None
    candidates: list[Values] = Field(default_factory=list)
    group_thresholds: GroupThresholds | None = None
    validation: Values = Field(default_factory=dict)
    promise: Values | None = None

    @model_validator(mode="after")
    def _epoch_is_one_of_the_history(self) -> Self:
        if self.epoch >= len(self.history):
            raise ValueError(f"'epoch' must be one of {len(self.history)} (got {self.epoch})")
        return self


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the header of a model file, or raise `ModelFileError`."""
    tensors, header = read_tensors(path, KIND)
    try:
        validate(header, Header)
    except ValueError as error:
        raise ModelFileError(f"'{path}' must be a {KIND} file (damaged or not one: {error})") from None
    return tensors, header


def restored(
    build: Callable[[Task], Program], sizes: dict[str, Any], tensors: Mapping[str, Tensor], *, own_code: bool
) -> Program:
    """Return the program of a stored model, or raise an error if sizes and tensors do not fit each other."""
    task = RememberedTask(sizes)
    _check_shapes(partial(build, task), tensors)
    program = build(task)
    program.load_state_dict(tensors)
    program.eval().check_state()
    if not own_code:
        _try_out(program, sizes)
    return program


def _check_shapes(build: Callable[[], Program], tensors: Mapping[str, Tensor]) -> None:
    """Raise `ValueError` unless a program, built without memory, has parameters of the shapes that are stored."""
    try:
        with torch.device("meta"), _at_most(_PARTS * (_PARTS + len(tensors))):
            program = build()
    except RuntimeError:  # a method of another package that cannot be built so
        return
    for name, parameter in program.named_parameters():
        stored = tensors.get(name)
        if stored is None or stored.shape != parameter.shape:
            found = "none" if stored is None else tuple(stored.shape)
            raise ValueError(f"there must be a tensor '{name}' of shape {tuple(parameter.shape)} (got {found})")


@torch.no_grad()
def _try_out(program: Program, sizes: Mapping[str, Any]) -> None:
    """Let a program that was read score three nodes; wrong types or shapes of buffers are a `RuntimeError` or so."""
    num_features, expected = sizes["num_features"], (3, sizes["num_classes"])
    if num_features > _MOST_FEATURES:
        return
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    few = Data(x=torch.zeros(3, num_features), edge_index=edges, sens=torch.tensor([0, 1, 0]))
    # An error of its own means that three nodes are too few for the method, which is no fault of the file.
    with _quiet(), suppress(DataError):
        found = program.score(Task(few, need_masks=False), "fitted" if program.keeps_reference else "batch", "none")
        if found.shape != expected or not found.is_floating_point():
            got = f"{tuple(found.shape)}, {found.dtype}"
            raise RuntimeError(f"logits must be floating point of the shape {expected} (got {got})")


@contextmanager
def _quiet() -> Iterator[None]:
    log = logging.getLogger(__package__)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


@contextmanager
def _at_most(limit: int) -> Iterator[None]:
    """Stop the building of a network, in this thread, that has far more parts than there are tensors to fill it."""
    thread, parts = threading.get_ident(), 0

    def count(module: nn.Module, name: str, part: object) -> None:
        nonlocal parts
        parts += threading.get_ident() == thread
        if parts > limit:
            raise ValueError(f"the network must have parts for its tensors only (got more than {limit:,})")

    hooks = [register_module_module_registration_hook(count), register_module_parameter_registration_hook(count)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
