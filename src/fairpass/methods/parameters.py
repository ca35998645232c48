"""The hyper-parameters of a classifier, by scikit-learn's conventions: arguments of `__init__`, kept by their names."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Self

from fairpass.training import Training


class Parameters:
    """A base for classes whose arguments are hyper-parameters and `training`, each stored under its own name."""

    training: Training

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """Return the hyper-parameters by name: all arguments but `training`."""
        return {name: getattr(self, name) for name in _defaults(type(self)) if name != "training"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters and `training` by name, as scikit-learn does.

        Args:
            deep: whether to return each setting of `training` too, as `training__epochs` and so on.
        """
        params = {**self.hyperparameters, "training": self.training}
        nested = {f"training__{name}": value for name, value in self.training.to_dict().items()}
        return {**params, **nested} if deep else params

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters or, as `training__epochs`, settings of `training` by name.

        A wrong name or value is an error that changes nothing. What was fitted before stays as it is until the
        next `fit`.
        """
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(f"'{name}' is not a parameter of {type(self).__name__} (it has {', '.join(known)})")
        settings = {name: params.pop(name) for name in list(params) if name.startswith("training__")}
        if settings:
            training = params.get("training", self.training)
            params["training"] = training.but(**{name.partition("__")[2]: settings[name] for name in settings})
        # A wrong value is an error of `__init__`, as it would have been there.
        changed = type(self)(**{**self.get_params(deep=False), **params})
        for name in params:
            setattr(self, name, getattr(changed, name))
        return self

    def __repr__(self) -> str:
        declared = usual = _defaults(type(self))
        if inspect.Parameter.empty not in usual.values():
            usual = type(self)().get_params(deep=False)  # with what it makes of an argument that is not given
        params = self.get_params(deep=False).items()
        changed = [f"{name}={value!r}" for name, value in params if value not in (declared[name], usual[name])]
        return f"{type(self).__name__}({', '.join(changed)})"


def _defaults(method: type[Parameters]) -> dict[str, Any]:
    parameters = inspect.signature(method.__init__).parameters
    return {name: parameter.default for name, parameter in parameters.items() if name != "self"}


def stored_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyper-parameters as a file holds them: a function by its name."""
    return {name: {"function": _name(value)} if callable(value) else value for name, value in parameters.items()}


def _name(function: Callable[..., Any]) -> str:
    """Return where a function is defined; `functools.partial` and other objects that can be called have no name."""
    named = function if hasattr(function, "__qualname__") else getattr(function, "func", type(function))
    return f"{named.__module__}.{named.__qualname__}"
