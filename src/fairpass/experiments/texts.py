"""The texts of tables, figures and the results page (in `texts.toml`), and numbers in words."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any


def read_toml(name: str) -> dict[str, Any]:
    """Read a file that is beside this module."""
    return tomllib.loads((resources.files("fairpass.experiments") / name).read_text(encoding="utf-8"))


TEXTS = read_toml("texts.toml")
TITLES: Mapping[str, str] = TEXTS["datasets"]


def span(values: Iterable[int]) -> str:
    """Return "5", or "2 to 5" if the values differ."""
    found = set(values)
    return " to ".join(f"{value:,}" for value in sorted({min(found), max(found)}))


def listed(words: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
