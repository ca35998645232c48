"""The sections of a settings file that are not about tables; descriptions of fields are comments in a new file."""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, model_validator

from fairpass.errors import suggestion
from fairpass.parameters import MOST, MOST_NODES, MOST_SEEDS

# The same as `fairpass.methods.gmmd.Criterion`, without importing torch; a test compares the two.
Criterion = Literal["dp", "eo", "odds"]
# The same as `fairpass.metrics.limits.LIMITS`, without importing torch; a test compares the two.
LIMIT_NAMES = ("max_dp", "max_eo", "min_impact_ratio")


class Settings(BaseModel):
    """Base of all sections: immutable, without unknown keys, without conversions between types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


def _known_method(name: str, field: ValidationInfo) -> str:
    from fairpass.methods import names

    known = [each for each in names() if each != "constant"]  # the constant is always compared with
    if name not in known:
        got = f"got {name!r}{suggestion(name, known)}"
        raise ValueError(f"'{field.field_name}' must be among {', '.join(known)} ({got})")
    return name


MethodName = Annotated[str, AfterValidator(_known_method)]


def _has_criterion(method: str) -> bool:
    from fairpass import methods

    return "criterion" in methods.method(method)().hyperparameters


# Epochs that are averaged before one is selected, so that a momentary dip of the differences is not.
_WINDOW = 10


class Choice(Settings):
    """Which of the tuned configurations to use: by `fairness`, by limits, or by neither."""

    fairness: float | None = None
    """Trade-off between accuracy and fairness: 0 is the most accurate, 1 the fairest configuration on the validation
    nodes."""
    max_dp: float | None = None
    """Or, instead of fairness, a limit: at most this difference between groups in demographic parity (the fraction of
    positive predictions). The most accurate configuration that keeps it is taken, and checked on nodes that had no part
    in the choice."""
    max_eo: float | None = None
    """The same for equal opportunity (the fraction of positive nodes that are predicted positive)."""
    min_impact_ratio: float | None = None
    """At least this ratio of the groups' fractions of positive predictions; 0.8 is the four-fifths rule."""
    confidence: float = 0.95
    """How sure the check of a limit has to be: 0.95 allows one wrong "shown" in twenty."""
    check: Literal["auto", "safety", "test", "cross-fitting"] = "auto"
    """Nodes that check a limit: the safety nodes of the split, the test nodes, or all but the test nodes by
    cross-fitting. By default the safety nodes; without any, cross-fitting if fewer than 1,000 nodes have a label, and
    otherwise the test nodes."""

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are asked for, by name."""
        return {name: value for name in LIMIT_NAMES if (value := getattr(self, name)) is not None}

    @model_validator(mode="after")
    def _no_contradiction(self) -> Self:
        from fairpass.metrics.limits import check_limits
        from fairpass.tuning.front import check_wishes

        check_wishes(fairness=self.fairness, **self.limits)
        check_limits(self.limits, self.confidence)
        return self


class Tuning(Settings):
    """What to search, and for how long."""

    methods: list[MethodName] = Field(default=["gmmd"], min_length=1)
    """Methods to search; `fairpass methods` lists them. The plain methods to compare with are searched as well, and
    each of all these gets the same share of the budget."""
    budget: str | int = "5m"
    """Time to search ("90s", "5m", "1h"), or number of configurations to try. With a larger budget, the next run
    continues the search."""
    epochs: int = Field(default=100, ge=1, le=MOST)
    """Number of epochs of every training."""
    seeds: int = Field(default=1, ge=1, le=MOST_SEEDS)
    """Number of seeds per configuration; more are slower and less noisy."""
    criterion: Criterion = "dp"
    """What gmmd equalizes between groups: the predictions for all nodes ("dp"), for nodes with the positive label
    ("eo"), or for the nodes of each label ("odds")."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        from fairpass.methods import names
        from fairpass.tuning.budget import Budget

        if len(set(self.methods)) < len(self.methods):
            raise ValueError(f"'methods' must not name a method twice (got {self.methods})")
        Budget.of(self.budget)
        if self.criterion != "dp" and not any(map(_has_criterion, self.methods)):
            got = f"got {self.criterion!r} for {', '.join(self.methods)}"
            able = ", ".join(filter(_has_criterion, names()))
            raise ValueError(f"'criterion' must be 'dp' unless one of {able} is tuned ({got})")
        return self

    def fixed(self, name: str, *, plain: bool = False) -> dict[str, Any]:
        """Return the settings that all configurations of a method have in common.

        A plain model keeps its last epoch: if validation selected one, it would be a little fair.
        """
        from fairpass import methods

        training: dict[str, Any] = {"select": "last"} if plain else {"window": min(_WINDOW, max(1, self.epochs // 4))}
        if methods.method(name).learns_by_epochs:
            training["epochs"] = self.epochs
        return training | ({"criterion": self.criterion} if _has_criterion(name) else {})


class TrainingSection(Settings):
    """What to train in the end."""

    seeds: int = Field(default=3, ge=1, le=MOST_SEEDS)
    """Number of seeds of the chosen configuration and of the models it is compared with."""
    reference: MethodName = "gcn"
    """Method without fairness to compare with, in addition to logistic regression; both are searched like the fair one,
    and the most useful configuration on the validation nodes is taken."""


class Predictions(Settings):
    """How predictions are written."""

    format: Literal["csv", "parquet"] = "csv"
    """File format of the predictions."""


class ReportSection(Settings):
    """What the report says about the model beyond its numbers, and how much it reveals; every text may be left out."""

    organisation: str | None = None
    """Who is responsible for the model."""
    author: str | None = None
    """Who made it."""
    contact: str | None = None
    """Where to send questions and complaints."""
    model_version: str | None = None
    """Version of the model, as you count them."""
    purpose: str | None = None
    """What the model is for."""
    intended_use: str | None = None
    """How its predictions are to be used, by whom, in which decisions."""
    out_of_scope: list[str] = []
    """Uses that it is not made for."""
    people_affected: str | None = None
    """Whom its predictions are about, and whom they affect."""
    oversight: str | None = None
    """Who can overrule it, and how."""
    monitoring: str | None = None
    """What is measured while it is in use, and how often."""
    limits: list[str] = []
    """Known limits of the model and its data."""
    approved_by: str | None = None
    """Name of the person who approves its use; the report has a line to sign on."""
    approved_role: str | None = None
    """Role of that person."""
    approved_on: date | str | None = None
    """Date of the approval."""
    favourable: str | None = None
    """The label that people want, if it is not the positive one of two: the figures of groups are about it. With more
    than two labels and without it, they are about each."""
    min_group: int = Field(default=10, ge=1, le=MOST_NODES)
    """Groups with fewer people than this are in no table of the report."""
    include_people: bool = False
    """Whether the report shows some people with their id, group, label and neighbours."""

    @property
    def identity(self) -> dict[str, Any]:
        """The texts by their key."""
        return self.model_dump(mode="json", exclude={"favourable", "min_group", "include_people"}, exclude_none=True)


SECTIONS: Mapping[str, type[Settings]] = {
    "choice": Choice,
    "tuning": Tuning,
    "training": TrainingSection,
    "predictions": Predictions,
    "report": ReportSection,
}
