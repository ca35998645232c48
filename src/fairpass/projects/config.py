"""The settings file of a project, `fairpass.toml`."""

import json
import re
import tomllib
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ValidationError, ValidationInfo

from fairpass.datasets.options import TableOptions
from fairpass.errors import FairpassError, did_you_mean, respelled, validation_message
from fairpass.plain_text import as_name, check_name, check_path, escaped
from fairpass.projects.sections import (
    LIMIT_NAMES,
    SECTIONS,
    Choice,
    Predictions,
    ReportSection,
    Settings,
    TrainingSection,
    Tuning,
)

MANIFEST = "manifest.json"  # in the run directory
# Where the defaults of a project differ from those of `from_tables`: an audit should run on tables with gaps.
TABLE_DEFAULTS: Mapping[str, Any] = {
    "min_group_size": 10,
    "missing_sensitive": "unknown",
    "missing": "indicator",
    "fractions": [0.4, 0.2, 0.2, 0.2],  # a fifth of the labels checks what is promised
}


# With fewer labelled nodes, a safety set that is large enough to show anything leaves too few to train on.
FEW_LABELS = 1_000


class ConfigError(FairpassError, ValueError):
    """A settings file is invalid."""


# The sections about tables: each key and the field of `TableOptions` that it sets.
TABLE_KEYS: dict[str, dict[str, str]] = {"data": {"nodes": "nodes", "edges": "edges"}}
for _name, _field in TableOptions.model_fields.items():
    if isinstance(_field.json_schema_extra, dict):
        _section, _key = _field.json_schema_extra["section"], _field.json_schema_extra["key"]
        TABLE_KEYS.setdefault(str(_section), {})[str(_key or _name)] = _name
_PLACES = {name: (section, key) for section, keys in TABLE_KEYS.items() for key, name in keys.items()}


def _directory_name(name: str) -> str:
    return check_name("name", name)


def _path(path: str, field: ValidationInfo) -> str:
    return check_path(str(field.field_name), path)


_PathText = Annotated[str, AfterValidator(_path)]


class Config(Settings):
    """A project; paths are relative to `folder`, the directory of its settings file."""

    folder: Path
    file: str
    name: Annotated[str, AfterValidator(_directory_name)]
    directory: _PathText | None = None
    question: str = ""
    nodes: _PathText
    """Table of nodes, one row per node: .csv, .tsv, .jsonl (also .gz) or .parquet."""
    edges: _PathText | None = None
    """Table of edges, one row per edge: .csv, .tsv, .jsonl (also .gz) or .parquet."""
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
    except (ValueError, RecursionError) as error:  # also of numbers that are too long, and of lists in lists in lists
        raise ConfigError(f"{str(path)!r} is not a TOML file: {error}") from None
    _check_keys(values, ["name", "directory", "question", *TABLE_KEYS, *SECTIONS], f"{path}: ")
    for section in (*TABLE_KEYS, *SECTIONS):
        if not isinstance(values.setdefault(section, {}), dict):
            raise ConfigError(f"{path}: [{section}] must be a table with keys (got {values[section]!r})")
        _check_finite(values[section], f"{path}: [{section}] ")
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
    about = {"folder": path.parent, "file": path.name, "name": as_name(path.parent.resolve().name, "project"), **values}
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
    return escaped(json.dumps(value, ensure_ascii=False))


def toml_line(key: str, value: Any) -> str:
    """Return a key with its value; a key that is not one word is in quotes."""
    return f"{key if re.fullmatch(r'[A-Za-z0-9_-]+', key) else as_toml(key)} = {as_toml(value)}"


def _check_finite(values: Mapping[str, Any], where: str) -> None:
    """Refuse nan and inf, which TOML has and JSON has not, wherever they are."""
    for key, value in values.items():
        if (odd := _not_finite(value)) is not None:
            raise ConfigError(f"{where}'{key}' must have finite numbers only (got {odd})")


def _not_finite(value: Any) -> float | None:
    """Return the first number that is not finite in nested values."""
    if isinstance(value, dict | list):
        found = map(_not_finite, value.values() if isinstance(value, dict) else value)
        return next((each for each in found if each is not None), None)
    return value if isinstance(value, float) and not isfinite(value) else None


def _check_keys(values: Mapping[str, Any], known: Any, where: str) -> None:
    for key in values:
        if key not in known:
            raise ConfigError(f"{where}there is no key '{key}': {did_you_mean(key, known)}")
