"""Reading a classifier from its file, and describing its parameters for one."""

import inspect
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from fairpass.errors import ModelFileError
from fairpass.training import Program, Training, seeded
from fairpass.training.task import RememberedTask

if TYPE_CHECKING:
    from fairpass.methods.base import NodeClassifier

KIND = "fairpass model"


def method_of(
    header: Mapping[str, Any], wanted: "type[NodeClassifier]", path: str | os.PathLike[str]
) -> "type[NodeClassifier]":
    """Return the class of a stored model: the wanted one, or any subclass if that is abstract."""
    if inspect.isabstract(wanted):
        from fairpass.methods.registry import UnknownMethodError, method

        try:
            found = method(header["method"])
        except UnknownMethodError as error:
            raise ModelFileError(f"'{path}' holds a model that cannot be read here: {error}") from None
        if issubclass(found, wanted):
            return found
    elif header["method"] == wanted.name:
        return wanted
    raise ModelFileError(f"'{path}' must hold a {wanted.__name__} model (got one of method {header['method']!r})")


def restored(
    found: "type[NodeClassifier]",
    tensors: Mapping[str, Tensor],
    header: Mapping[str, Any],
    code: Mapping[str, Callable[..., Any]],
    path: str | os.PathLike[str],
) -> "tuple[NodeClassifier, Program]":
    """Return the unfitted classifier of a file, and its program with the stored tensors in it."""
    try:
        model = found(**found._read(header["parameters"], code), training=Training(**header["training"]))
        built = found(**found._read(header["chosen"], code)) if header.get("chosen") else model
        with seeded(model.training.seed, deterministic=False):  # what is drawn here is overwritten
            program = built.build(RememberedTask(header["sizes"]))
        program.load_state_dict({found.current_name(name): tensor for name, tensor in tensors.items()})
        program.check_state()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ModelFileError(
            f"'{path}' does not fit this version of {found.name!r} (it was written with {header['versions']}): {error}"
        ) from None
    return model, program


def stored_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyper-parameters as a file holds them: functions by name."""
    return {name: {"function": _name(value)} if callable(value) else value for name, value in parameters.items()}


def _name(function: Callable[..., Any]) -> str:
    """Return where a function is defined; a `functools.partial` and other callable objects have no name themselves."""
    named = function if hasattr(function, "__qualname__") else getattr(function, "func", type(function))
    return f"{named.__module__}.{named.__qualname__}"
