"""What a method declares in addition to its hyper-parameters, and scikit-learn's access to all of it."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

from fairpass.parameters import LARGEST_RATE, Declared, Dimension, parameter
from fairpass.training.settings import Training

SpaceKind = Literal["recommended", "grid"]
# Where a method acts: nowhere, on the data, on the training, or on the decisions.
Stage = Literal["plain", "pre-processing", "in-processing", "post-processing"]
GroupsNeeded = Literal["never", "training", "prediction"]


class Estimator(Declared):
    """A class with declared hyper-parameters and `training`."""

    training: Training = parameter(None, "settings of the training loop; the method's own by default")

    recommended_training: ClassVar[Training] = Training()
    learns_by_epochs: ClassVar[bool] = True  # whether the optimizer's settings matter, so that searches vary them
    grid_training: ClassVar[Mapping[str, Dimension]] = {}  # what differs from the grid of `Training`
    search_order: ClassVar[tuple[str, ...]] = ()  # what a search draws first; the rest follows as declared
    takes_two: ClassVar[tuple[Literal["labels", "groups"], ...]] = ()  # what there must be exactly two of
    stage: ClassVar[Stage] = "plain"
    needs_groups: ClassVar[GroupsNeeded] = "never"  # until when a person's group must be known
    switched_off: ClassVar[Mapping[str, Any]] = {}  # the parameters that switch fairness off, and nothing else
    takes_edge_weights: ClassVar[bool] = False  # whether it uses them, or no edges at all; else they are refused
    trains_in_parts: ClassVar[bool] = False  # whether it can be trained on a graph that several processes share
    version: ClassVar[int] = 1  # to be raised when the same settings give other results: see `RunSpec.identity`

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.training is None:
            self.training = self.default_training()

    @classmethod
    def default_training(cls) -> Training:
        """Return the settings a method trains with if none are given."""
        return cls.recommended_training

    @classmethod
    def space(cls, kind: SpaceKind = "recommended") -> dict[str, Dimension]:
        """Return the search space of the parameters and training settings."""
        which = "search" if kind == "recommended" else "grid"
        ordered = [*cls.search_order, *(name for name in cls.declared if name not in cls.search_order)]
        space = {name: getattr(cls.declared[name], which) for name in ordered}
        if cls.learns_by_epochs:
            space |= {name: getattr(each, which) for name, each in Training.declared.items()}
            space |= cls.grid_training if kind == "grid" else {}
        return {name: dimension for name, dimension in space.items() if dimension is not None}

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """All parameters but `training`, by name."""
        return {name: getattr(self, name) for name in self.declared if name != "training"}

    @property
    def learning_rates(self) -> tuple[str, ...]:
        """The names of all learning rates, the one that is largest for its default first."""
        larger = {"learning_rate": self.training.learning_rate / self.default_training().learning_rate}
        for name, each in self.declared.items():
            if each.limit == LARGEST_RATE:  # which only learning rates have
                larger[name] = getattr(self, name) / each.default
        return tuple(sorted(larger, key=lambda name: -larger[name]))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters by name; `deep` adds each setting of `training`, as `training__epochs` and so on."""
        nested = {f"training__{name}": value for name, value in self.training.to_dict().items()} if deep else {}
        return {**self.hyperparameters, "training": self.training, **nested}

    def with_params(self, **changes: Any) -> Self:
        """Return an unfitted classifier with some parameters changed."""
        return type(self)(**{**self.get_params(deep=False), **changes})

    def control(self) -> Self:
        """Return this classifier with fairness switched off and everything else equal."""
        if not self.switched_off:
            raise ValueError(f"'method' must have fairness to switch off (got {type(self).__name__}, a plain method)")
        return self.with_params(**self.switched_off)

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters or settings of `training` (as `training__epochs`) by name.

        A wrong name or value is an error that changes nothing. A fitted model stays as it is until the next `fit`.
        """
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(f"'{name}' is not a parameter of {type(self).__name__} (it has {', '.join(known)})")
        settings = {name: params.pop(name) for name in list(params) if name.startswith("training__")}
        if settings:
            training = params.get("training", self.training)
            params["training"] = training.but(**{name.partition("__")[2]: settings[name] for name in settings})
        changed = self.with_params(**params)
        for name in params:
            setattr(self, name, getattr(changed, name))
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        return Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "program_")


def stored_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyper-parameters as a file holds them: functions by name."""
    return {name: {"function": _name(value)} if callable(value) else value for name, value in parameters.items()}


def _name(function: Callable[..., Any]) -> str:
    # A `functools.partial` and other callable objects have no name themselves.
    named = function if hasattr(function, "__qualname__") else getattr(function, "func", type(function))
    return f"{named.__module__}.{named.__qualname__}"
