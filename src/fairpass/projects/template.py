"""The `fairpass.toml` that `fairpass init` writes: every setting, its description and, where guessed, the reason."""

import os
import textwrap
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from fairpass.datasets.options import TableOptions
from fairpass.datasets.table_inspection import MAX_LEVELS, Inspection
from fairpass.projects.config import SECTIONS, TABLE_DEFAULTS, TABLE_KEYS, Config, as_toml

# What a new project rarely needs, or what has no effect in one.
_LEFT_OUT = {"max_levels", "on_constant", "unknown_category"}
_TEXTS = tomllib.loads(files(__package__).joinpath("template.toml").read_text(encoding="utf-8"))


def template(
    found: Inspection, *, folder: Path | str = ".", file: str = "fairpass.toml", text_encoding: str = "utf-8"
) -> str:
    """Return the text of a settings file in a folder, which the paths of the tables are relative to."""
    name, label, sensitive = Path(found.nodes).stem, found.best("label"), found.best("sensitive")
    question = f"Are predictions of {label} alike for all groups of {sensitive}?" if label and sensitive else ""
    lines = [_TEXTS["head"].format(file=file, name=name, name_text=as_toml(name), question=as_toml(question))]
    fields = {**TableOptions.model_fields, "nodes": Config.model_fields["nodes"], "edges": Config.model_fields["edges"]}
    values = {**_values(found, Path(folder)), "text_encoding": text_encoding, "fairness": 0.5}
    sections = {
        **{section: {key: fields[option] for key, option in keys.items()} for section, keys in TABLE_KEYS.items()},
        **{section: model.model_fields for section, model in SECTIONS.items()},
    }
    for section, settings in sections.items():
        lines.append(f"[{section}]")
        for key, field in settings.items():
            option = TABLE_KEYS.get(section, {}).get(key, key)
            if option in _LEFT_OUT or (option in ("fractions", "seed") and values["split"]):
                continue
            lines += [f"# {line}" for line in textwrap.wrap(str(field.description), 116)]
            lines += [f"# {line}" for line in _reasons(found, option)]
            if get_origin(field.annotation) is Literal:
                lines.append(f"# One of {', '.join(map(as_toml, get_args(field.annotation)))}.")
            value = values.get(option, TABLE_DEFAULTS.get(option, field.default))
            example = _TEXTS["examples"].get(option, '"..."')
            lines.append(f"# {key} = {example}" if value is None else f"{key} = {as_toml(value)}")
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _values(found: Inspection, folder: Path) -> dict[str, Any]:
    """Return the settings that follow from the tables; what is required and was not found is empty, to be filled in."""
    label, sensitive = found.best("label"), found.best("sensitive")
    values: dict[str, Any] = {
        "nodes": _relative(found.nodes, folder),
        "edges": None if found.edges is None else _relative(found.edges, folder),
        "similarity": 0.9 if found.edges is None else None,
        "drop": found.unusable,
        "label": label or "",
        "sensitive": [sensitive] if sensitive else "",
        **{role: found.best(role) for role in ("id", "source", "target", "split")},
    }
    if label is not None and found.column(label).distinct == 2:
        values["positive"] = max(found.column(label).examples)
    content = None if sensitive is None else found.column(sensitive)
    if content is not None and content.kind == "number" and content.distinct > min(10, MAX_LEVELS):
        values["sens_bins"] = {sensitive: 3}
    return values


def _reasons(found: Inspection, option: str) -> list[str]:
    """Return why a column was chosen, and which others there are."""
    if option in ("nodes", "edges"):
        rows = {"nodes": found.rows, "edges": found.edge_rows}[option]
        return [] if rows is None else [f"{rows:,} rows."]
    label = found.best("label")
    if option == "positive" and label is not None and found.column(label).distinct == 2:
        return [f"One of {' and '.join(map(repr, found.column(label).examples))}."]
    guesses = found.roles.get(option, ())
    if not guesses:
        return ["No column looks like one: write its name here."] if option in ("label", "sensitive") else []
    first, *others = guesses
    lines = [f"Why {first.column!r}: {first.reason}."]
    return lines + ([f"Others: {', '.join(repr(guess.column) for guess in others)}."] if others else [])


def _relative(path: str, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return str(path)
