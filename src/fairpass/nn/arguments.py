"""Checks of the arguments of layers."""

from typing import Any, get_args


def check_at_least(name: str, value: float, least: float) -> None:
    """Raise `ValueError` unless a number is at least so much."""
    if not value >= least:
        raise ValueError(f"'{name}' must be at least {least} (got {value})")


def check_choice(name: str, value: str, choices: Any) -> None:
    """Raise `ValueError` unless a value is one of those of a `Literal` type."""
    if value not in get_args(choices):
        raise ValueError(f"'{name}' must be one of {get_args(choices)} (got {value!r})")
