"""The settings file of a project, `fairpass.toml`; descriptions of fields are comments in a new one."""

import json
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, model_validator

from fairpass.datasets.options import TableOptions
from fairpass.errors import FairpassError, did_you_mean, respelled, suggestion, validation_message

MANIFEST = "manifest.json"  # in the run directory
# The same as `fairpass.methods.gmmd.Criterion`, without importing torch; a test compares the two.
Criterion = Literal["dp", "eo", "odds"]

# Where the defaults of a project differ from those of `from_tables`: an audit should run on tables with gaps.
TABLE_DEFAULTS: Mapping[str, Any] = {
    "min_group_size": 10,
    "missing_sensitive": "unknown",
    "missing": "indicator",
    "fractions": [0.4, 0.2, 0.2, 0.2],  # a fifth of the labels checks what is promised
}


# The same as `fairpass.metrics.limit_check.LIMITS`, without importing torch; a test compares the two.
LIMIT_NAMES = ("max_dp", "max_eo", "min_impact_ratio")


# With fewer labelled nodes, a safety set that is large enough to show anything leaves too few to train on.
FEW_LABELS = 1_000


class ConfigError(FairpassError, ValueError):
    """A settings file is invalid."""


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
        from fairpass.metrics.promise import check_limits
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
    epochs: int = Field(default=100, ge=1)
    """Number of epochs of every training."""
    seeds: int = Field(default=1, ge=1)
    """Number of seeds per configuration; more are slower and less noisy."""
    criterion: Criterion = "dp"
    """What gmmd equalizes between groups: the predictions for all nodes ("dp"), for nodes with the positive label
    ("eo"), or for the nodes of each label ("odds")."""

    @model_validator(mode="after")
    def _budget_and_criterion(self) -> Self:
        from fairpass.methods import names
        from fairpass.tuning.budget import Budget

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

    seeds: int = Field(default=3, ge=1)
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
    min_group: int = Field(default=10, ge=1)
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


# The sections about tables: each key and the field of `TableOptions` that it sets.
TABLE_KEYS: dict[str, dict[str, str]] = {"data": {"nodes": "nodes", "edges": "edges"}}
for _name, _field in TableOptions.model_fields.items():
    if isinstance(_field.json_schema_extra, dict):
        _section, _key = _field.json_schema_extra["section"], _field.json_schema_extra["key"]
        TABLE_KEYS.setdefault(str(_section), {})[str(_key or _name)] = _name
_PLACES = {name: (section, key) for section, keys in TABLE_KEYS.items() for key, name in keys.items()}


def _directory_name(name: str) -> str:
    if not name or Path(name).name != name:
        raise ValueError(f"'name' must be a name for a directory (got {name!r})")
    return name


class Config(Settings):
    """A project; paths are relative to `folder`, the directory of its settings file."""

    folder: Path
    file: str
    name: Annotated[str, AfterValidator(_directory_name)]
    directory: str | None = None
    question: str = ""
    nodes: str
    """Table of nodes, one row per node: .csv, .tsv or .parquet."""
    edges: str | None = None
    """Table of edges, one row per edge: .csv, .tsv or .parquet."""
    tables: TableOptions
    choice: Choice
    tuning: Tuning
    training: TrainingSection
    predictions: Predictions
    report: ReportSection

    @property
    def run_directory(self) -> Path:
        return self.folder / (self.directory or f"runs/{self.name}")

    @property
    def table_paths(self) -> dict[str, Path]:
        return {name: self.folder / name for name in (self.nodes, self.edges) if name is not None}

    def table_arguments(self) -> dict[str, Any]:
        """Return the arguments of `from_tables`."""
        edges = None if self.edges is None else self.folder / self.edges
        return {"nodes": self.folder / self.nodes, "edges": edges, **self.tables.model_dump()}

    def replaced(self, *, choice: Mapping[str, Any] | None = None, **tuning: Any) -> "Config":
        """Return the configuration with other values in `[choice]` and `[tuning]`; None keeps what it has.

        A trade-off or a limit replaces all that the file asks for.
        """
        asked, given = ({k: v for k, v in (each or {}).items() if v is not None} for each in (choice, tuning))
        kept = self.choice.model_dump()
        if asked.keys() & {"fairness", *LIMIT_NAMES}:
            kept = {name: value for name, value in kept.items() if name not in ("fairness", *LIMIT_NAMES)}
        changes = {
            "choice": _read(Choice, {**kept, **asked}, ""),
            "tuning": _read(Tuning, {**self.tuning.model_dump(), **given}, ""),
        }
        return self.model_copy(update=changes)

    def with_people(self) -> "Config":
        """Return the configuration with people in the report."""
        return self.model_copy(update={"report": self.report.model_copy(update={"include_people": True})})

    def to_dict(self) -> dict[str, Any]:
        """Return the sections as the file has them, in JSON's types."""
        tables = {"nodes": self.nodes, "edges": self.edges, **self.tables.model_dump(mode="json")}
        return {
            **self.model_dump(mode="json", exclude={"folder", "file", "nodes", "edges", "tables"}),
            **{section: {key: tables[name] for key, name in keys.items()} for section, keys in TABLE_KEYS.items()},
        }


def load_config(path: str | Path) -> Config:
    """Read a settings file; a `ConfigError` names the file, the section and the key that is wrong."""
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"there is no file {str(path)!r}: `fairpass init` writes one")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} is not a TOML file: {error}") from None
    _check_keys(values, ["name", "directory", "question", *TABLE_KEYS, *SECTIONS], f"{path}: ")
    for section in (*TABLE_KEYS, *SECTIONS):
        if not isinstance(values.setdefault(section, {}), dict):
            raise ConfigError(f"{path}: [{section}] must be a table with keys (got {values[section]!r})")
    options: dict[str, Any] = {}
    for section, known in TABLE_KEYS.items():
        # Keys may also be the names of the library's options.
        _check_keys(values[section], {**known, **dict.fromkeys(known.values())}, f"{path}: [{section}] ")
        for key, value in values.pop(section).items():
            if known.get(key, key) in options:
                raise ConfigError(f"{path}: [{section}] '{key}' is given twice, under two names")
            options[known.get(key, key)] = value
    tables: dict[str, Any] = {name: options.pop(name) for name in ("nodes", "edges") if name in options}
    tables["tables"] = _read(TableOptions, {**TABLE_DEFAULTS, **options}, f"{path}: ")
    sections = {name: _read(kind, values.pop(name), f"{path}: [{name}] ") for name, kind in SECTIONS.items()}
    about = {"folder": path.parent, "file": path.name, "name": path.parent.resolve().name, **values}
    return _read(Config, {**about, **tables, **sections}, f"{path}: ")


Model = TypeVar("Model", bound=BaseModel)


def _read(kind: type[Model], values: Mapping[str, Any], where: str) -> Model:
    try:
        return kind(**values)
    except ValidationError as error:
        message = validation_message(error, kind.model_fields, "key")
    raise ConfigError(where + (in_toml(message) if kind in (TableOptions, Config) else message))


def in_toml(message: str) -> str:
    """Return a message of the library with the options of tables as the settings file has them."""
    return respelled(message, _toml_key, toml_setting)


def _toml_key(name: str) -> str | None:
    return "[{}] '{}'".format(*_PLACES[name]) if name in _PLACES else None


def toml_setting(name: str, value: Any) -> str | None:
    """Return an option of tables with a value as a line of the settings file, after its section."""
    return "[{}] {} = {}".format(*_PLACES[name], as_toml(value)) if name in _PLACES else None


def as_toml(value: Any) -> str:
    """Return a value in TOML, which writes texts, numbers and lists like JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(toml_line(key, each) for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


def toml_line(key: str, value: Any) -> str:
    """Return a key with its value; a key that is not one word is in quotes."""
    return f"{key if re.fullmatch(r'[A-Za-z0-9_-]+', key) else as_toml(key)} = {as_toml(value)}"


def _check_keys(values: Mapping[str, Any], known: Any, where: str) -> None:
    for key in values:
        if key not in known:
            raise ConfigError(f"{where}there is no key '{key}': {did_you_mean(key, known)}")
