"""The `fairpass.toml` that `fairpass init` writes: every setting, its description and, where guessed, the reason."""

import os
import textwrap
import tomllib
from collections.abc import Collection
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from fairpass.datasets.column_kinds import MAX_LEVELS
from fairpass.datasets.column_names import positive_of
from fairpass.datasets.options import TableOptions
from fairpass.datasets.table_inspection import Inspection
from fairpass.files import PathLike
from fairpass.plain_text import as_name, printable
from fairpass.projects.config import FEW_LABELS, TABLE_DEFAULTS, TABLE_KEYS, Config, as_toml, toml_line
from fairpass.projects.sections import SECTIONS

_TEXTS = tomllib.loads(files(__package__).joinpath("template.toml").read_text(encoding="utf-8"))
# What a new project rarely needs, or what has no effect in one: written only if it is not the default.
_RARE = set(_TEXTS["rare"])
_WIDTH = 116


def template(
    found: Inspection,
    *,
    folder: Path | str = ".",
    file: str = "fairpass.toml",
    features: Collection[str] = (),
    **options: Any,
) -> str:
    """Return the text of a settings file in a folder, which the paths of the tables are relative to.

    Args:
        found: What is in the tables.
        folder: Where the file will be.
        file: Its name.
        features: The columns among the undecided ones that may be features; the others are left out.
        options: Options of tables that were given, such as `text_encoding`.
    """
    name, label, title = as_name(Path(found.nodes).stem, "project"), found.best("label"), " and ".join(found.sensitive)
    question = f"Are predictions of {label} alike for all groups of {title}?" if label and title else ""
    lines = [
        _TEXTS["head"].format(
            file=" ".join(file.split()), name=name, name_text=as_toml(name), question=as_toml(question)
        )
    ]
    fields = {**TableOptions.model_fields, "nodes": Config.model_fields["nodes"], "edges": Config.model_fields["edges"]}
    values = {**_values(found, Path(folder), features), **options, "fairness": 0.5}
    sections = {
        **{section: {key: fields[option] for key, option in keys.items()} for section, keys in TABLE_KEYS.items()},
        **{section: model.model_fields for section, model in SECTIONS.items()},
    }
    rules = sections["features"].pop("columns")
    for section, settings in sections.items():
        lines.append(f"[{section}]")
        for key, field in settings.items():
            option = TABLE_KEYS.get(section, {}).get(key, key)
            value = values.get(option, TABLE_DEFAULTS.get(option, field.get_default()))
            if option in _RARE and value == field.get_default():
                continue
            if option in ("fractions", "seed") and values["split"]:
                continue
            for sentence in (str(field.description), *_reasons(found, option, features)):
                lines += _comment(sentence)
            if get_origin(field.annotation) is Literal:
                lines.append(f"# One of {', '.join(map(as_toml, get_args(field.annotation)))}.")
            example = _TEXTS["examples"].get(option, '"..."')
            lines.append(f"# {key} = {example}" if value is None else f"{key} = {as_toml(value)}")
        lines.append("")
        if section == "features" and values["columns"]:
            lines += ["[features.columns]", *_comment(str(rules.description))]
            for column, rule in values["columns"].items():
                lines += _comment(f"{column!r}: {found.column(column).note}." if found.column(column).note else "")
                lines.append(toml_line(column, rule))
            lines.append("")
    return printable("\n".join(lines[:-1])) + "\n"  # only comments still have something to replace: see `as_toml`


def _comment(sentence: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(sentence, _WIDTH)]


def _values(found: Inspection, folder: Path, features: Collection[str]) -> dict[str, Any]:
    """Return the settings that follow from the tables; what is required and was not found is empty, to be filled in."""
    label = found.best("label")
    asked = [guess.column for guess in found.undecided if guess.column not in features]
    values: dict[str, Any] = {
        **found.settings,
        "nodes": relative(found.nodes, folder),
        "edges": None if found.edges is None else relative(found.edges, folder),
        "similarity": 0.9 if found.edges is None else None,
        "drop": [*found.left_out, *asked],
        "columns": {name: rule for name, rule in found.rules.items() if name not in asked},
        "label": label or "",
        "sensitive": list(found.sensitive) or "",
        **{role: found.best(role) for role in ("id", "source", "target", "split")},
    }
    if label is not None and found.column(label).distinct == 2:
        values["positive"] = positive_of(found.column(label).examples)
    if _has_few_labels(found):
        values["fractions"] = TableOptions.model_fields["fractions"].get_default()
    contents = [found.column(name) for name in found.sensitive]
    bins = {
        each.name: 3 for each in contents if each.kind in ("number", "date") and each.distinct > min(10, MAX_LEVELS)
    }
    return values | ({"sens_bins": bins} if bins else {})


def _reasons(found: Inspection, option: str, features: Collection[str]) -> list[str]:
    """Return why a value was chosen, and which others there are."""
    label = found.best("label")
    asked = [guess for guess in found.undecided if guess.column not in features]
    reasons = {
        "nodes": [f"{found.rows:,} rows."],
        "edges": [] if found.edge_rows is None else [f"{found.edge_rows:,} rows."],
        "fractions": [_TEXTS["few_labels"]] if _has_few_labels(found) else [],
        "drop": [
            *(f"{name!r} {reason}." for name, reason in found.left_out.items()),
            *(_TEXTS["undecided"].format(column=repr(each.column), reason=each.reason) for each in asked),
        ],
        **{name: [f"{reason}."] for name, reason in found.reasons.items()},
    }
    if label is not None and found.column(label).distinct == 2:
        reasons["positive"] = [f"One of {' and '.join(map(repr, found.column(label).examples))}."]
    return reasons.get(option) or _guesses(found, option)


def _has_few_labels(found: Inspection) -> bool:
    label = found.best("label")
    return label is not None and found.rows - found.column(label).missing < FEW_LABELS


def _guesses(found: Inspection, role: str) -> list[str]:
    """Return why a column was chosen for a role, and which others may have it."""
    guesses = found.roles.get(role, ())
    if not guesses:
        return ["No column looks like one: write its name here."] if role in ("label", "sensitive") else []
    chosen = found.sensitive if role == "sensitive" else (found.best(role),)
    lines = [f"Why {guess.column!r}: {guess.reason}." for guess in guesses if guess.column in chosen]
    others = [repr(guess.column) for guess in guesses if guess.column not in chosen]
    if others and role == "sensitive":
        lines.append(_TEXTS["another"].format(others=", ".join(others), chosen=" and ".join(map(repr, chosen))))
    elif others:
        lines.append(f"Others: {', '.join(others)}.")
    return lines


def relative(path: PathLike, folder: Path) -> str:
    """Return a path as settings in a folder have it."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return str(path)
