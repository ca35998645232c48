"""What a `fairpass.toml` says: its sections, as frozen dataclasses, read strictly."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fairpass.projects.strict import ConfigError, check_keys, read_section

__all__ = ["Choice", "Config", "ConfigError", "load_config"]


# The library's own type would do, but it comes with torch: a test keeps this equal to it.
Criterion = Literal["dp", "eo", "odds"]


@dataclass(frozen=True)
class DataSection:
    """The tables, and the columns in them that are not features."""

    nodes: str
    label: str
    edges: str | None = None
    similarity: float | None = None
    id: str | None = None
    source: str | None = None
    target: str | None = None
    positive: str | int | None = None
    text_encoding: str = "utf-8"


@dataclass(frozen=True)
class Groups:
    """Who is to be treated alike."""

    sensitive: str | list[str]
    bins: dict[str, int | list[int | float]] = field(default_factory=dict)
    min_size: int = 10
    small: Literal["error", "other"] = "error"
    missing: Literal["error", "unknown"] = "unknown"
    as_feature: bool = False


@dataclass(frozen=True)
class Features:
    """What a model may look at."""

    use: list[str] | None = None
    drop: list[str] = field(default_factory=list)
    missing: Literal["error", "drop", "mean", "indicator"] = "indicator"
    scale: Literal["minmax", "standard", "none"] = "standard"
    max_levels: int = 50


@dataclass(frozen=True)
class SplitSection:
    """Which nodes are learnt from, chosen by, and measured on."""

    column: str | None = None
    fractions: list[int | float] = field(default_factory=lambda: [0.5, 0.25, 0.25])
    seed: int = 0


@dataclass(frozen=True)
class Choice:
    """Which of the tuned configurations to take: `fairness`, or limits, or neither."""

    fairness: float | None = None
    max_dp: float | None = None
    max_eo: float | None = None

    def __post_init__(self) -> None:
        """Refuse wishes that contradict each other, however they were given."""
        from fairpass.tuning.choice import check_wishes

        check_wishes(**vars(self))


@dataclass(frozen=True)
class Tuning:
    """What to search, and for how long."""

    methods: list[str] = field(default_factory=lambda: ["gmmd"])
    budget: str | int = "5m"
    seeds: int = 1
    epochs: int = 100
    criterion: Criterion = "dp"

    def fixed(self, name: str) -> dict[str, Any]:
        """Return what is the same for all settings of a method, by name."""
        return {"epochs": self.epochs, **({"criterion": self.criterion} if _has_criterion(name) else {})}


@dataclass(frozen=True)
class TrainingSection:
    """What to train in the end."""

    reference: str = "gcn"
    seeds: int = 3


@dataclass(frozen=True)
class Predictions:
    """How predictions are written."""

    format: Literal["csv", "parquet"] = "csv"


@dataclass(frozen=True)
class Config:
    """A whole project; paths are relative to `folder`, where its file is."""

    folder: Path
    file: str
    name: str
    data: DataSection
    groups: Groups
    directory: str | None = None
    question: str = ""
    features: Features = field(default_factory=Features)
    split: SplitSection = field(default_factory=SplitSection)
    choice: Choice = field(default_factory=Choice)
    tuning: Tuning = field(default_factory=Tuning)
    training: TrainingSection = field(default_factory=TrainingSection)
    predictions: Predictions = field(default_factory=Predictions)

    @property
    def run_directory(self) -> Path:
        """Where everything is made."""
        return self.folder / (self.directory or f"runs/{self.name}")

    def path(self, given: str) -> Path:
        """Return the path of a file that the configuration names."""
        return self.folder / given

    def but(
        self,
        *,
        choice: Choice | None = None,
        budget: str | int | None = None,
        epochs: int | None = None,
        criterion: Criterion | None = None,
    ) -> "Config":
        """Return the configuration with what the command line says instead."""
        from fairpass.tuning.budget import Budget

        tuning = self.tuning
        if budget is not None:
            Budget.of(budget)  # an error if it is none
            tuning = replace(tuning, budget=budget)
        if epochs is not None:
            tuning = replace(tuning, epochs=epochs)
        if criterion is not None:
            tuning = replace(tuning, criterion=criterion)
            _check_criterion(tuning, "")
        return replace(self, choice=choice or self.choice, tuning=tuning)

    def to_dict(self) -> dict[str, Any]:
        """Return what was asked, in JSON's types."""
        return {name: value for name, value in asdict(self).items() if name not in {"folder", "file"}}

    def table_arguments(self) -> dict[str, Any]:
        """Return the arguments of `from_tables`."""
        data, groups, features, split = self.data, self.groups, self.features, self.split
        return {
            "nodes": self.path(data.nodes),
            "edges": None if data.edges is None else self.path(data.edges),
            "similarity": data.similarity,
            "id": data.id,
            "source": data.source,
            "target": data.target,
            "label": data.label,
            "positive": data.positive,
            "text_encoding": data.text_encoding,
            "sensitive": groups.sensitive,
            "sens_bins": groups.bins or None,
            "min_group_size": groups.min_size,
            "small_groups": groups.small,
            "missing_sensitive": groups.missing,
            "keep_sensitive": groups.as_feature,
            "features": features.use,
            "drop": features.drop,
            "missing": features.missing,
            "scale": features.scale,
            "max_levels": features.max_levels,
            "split": split.column,
            "fractions": tuple(split.fractions),
            "seed": split.seed,
        }


_SECTIONS: Mapping[str, type[Any]] = {
    "data": DataSection,
    "groups": Groups,
    "features": Features,
    "split": SplitSection,
    "choice": Choice,
    "tuning": Tuning,
    "training": TrainingSection,
    "predictions": Predictions,
}
_TEXTS = ("name", "directory", "question")


def load_config(path: str | Path) -> Config:
    """Read a configuration; whatever is wrong with it is a `ConfigError` that names the file and the key."""
    path = Path(path)
    if not path.is_file():
        raise ConfigError(f"there is no file {str(path)!r}: `fairpass init` writes one")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} is not a TOML file: {error}") from None
    check_keys(values, [*_TEXTS, *_SECTIONS], str(path))
    for section in ("data", "groups"):
        if section not in values:
            raise ConfigError(f"{path} must have a section [{section}]")
    for name in _TEXTS:
        if not isinstance(values.get(name, ""), str):
            raise ConfigError(f"{path} {name} must be text (got {values[name]!r})")
    sections = {
        name: read_section(kind, values[name], f"{path}: [{name}]")
        for name, kind in _SECTIONS.items()
        if name in values
    }
    texts = {name: values[name] for name in _TEXTS if name in values}
    config = Config(folder=path.parent, file=path.name, **{"name": path.parent.resolve().name, **texts}, **sections)
    _check(config, path)
    return config


def _check(config: Config, path: Path) -> None:
    """Refuse values that no step could work with, before any step begins."""
    from fairpass.methods import names
    from fairpass.tuning.budget import Budget

    def refuse(key: str, expected: str, got: Any) -> None:
        raise ConfigError(f"{path}: {key} must be {expected} (got {got!r})")

    given = config.groups.sensitive
    if not given or not all([given] if isinstance(given, str) else given):
        refuse("[groups] sensitive", "the column with the sensitive attribute", config.groups.sensitive)
    if not config.data.label:
        refuse("[data] label", "the column to predict", config.data.label)
    if not config.name or Path(config.name).name != config.name:
        refuse("name", "a name for a directory", config.name)
    if not config.tuning.methods:
        refuse("[tuning] methods", "at least one method", config.tuning.methods)
    for key, method in [("[training] reference", config.training.reference)] + [
        ("[tuning] methods", method) for method in config.tuning.methods
    ]:
        # The constant is always there to compare with.
        known = [name for name in names() if name != "constant"]
        if method not in known:
            refuse(key, f"among {', '.join(known)}", method)
    counts = {
        "[tuning] seeds": config.tuning.seeds,
        "[tuning] epochs": config.tuning.epochs,
        "[training] seeds": config.training.seeds,
    }
    for key, count in counts.items():
        if count < 1:
            refuse(key, "at least 1", count)
    _check_criterion(config.tuning, f"{path}: [tuning] ")
    try:
        Budget.of(config.tuning.budget)
    except ValueError as error:
        raise ConfigError(f"{path}: [tuning] {error}") from None


def _has_criterion(name: str) -> bool:
    from fairpass.methods import method

    return "criterion" in method(name)().hyperparameters


def _check_criterion(tuning: Tuning, where: str) -> None:
    """Refuse a criterion that no method would follow."""
    from fairpass.methods import names

    if tuning.criterion != "dp" and not any(map(_has_criterion, tuning.methods)):
        able = ", ".join(filter(_has_criterion, names()))
        raise ConfigError(
            f"{where}'criterion' must be 'dp' unless one of {able} is tuned "
            f"(got {tuning.criterion!r} for {', '.join(tuning.methods)})"
        )
