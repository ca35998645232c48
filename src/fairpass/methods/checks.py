"""What methods ask of their arguments and of the data; each is an error before any work is done."""

from collections.abc import Sequence
from math import inf

from fairpass.errors import DataError
from fairpass.training import Task


def check_at_least(least: float, **values: float | None) -> None:
    """Raise `ValueError` for the first value below `least`; None means 'not given'."""
    for name, value in values.items():
        if value is not None and not value >= least:
            raise ValueError(f"'{name}' must be at least {least} (got {value})")


def check_positive(**values: float) -> None:
    """Raise `ValueError` for the first value that is not positive and finite."""
    for name, value in values.items():
        if not 0 < value < inf:
            raise ValueError(f"'{name}' must be positive and finite (got {value})")


def check_fraction(**values: float) -> None:
    """Raise `ValueError` for the first value outside [0, 1]."""
    for name, value in values.items():
        if not 0 <= value <= 1:
            raise ValueError(f"'{name}' must be between 0 and 1 (got {value})")


def check_dropout(dropout: float) -> None:
    """Raise `ValueError` unless some units are left: with `dropout=1` nothing would be learnt."""
    if not 0 <= dropout < 1:
        raise ValueError(f"'dropout' must be at least 0 and below 1 (got {dropout})")


def check_choice(choices: Sequence[str], **values: str) -> None:
    """Raise `ValueError` for the first value that is none of the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ValueError(f"'{name}' must be one of {tuple(choices)} (got {value!r})")


def check_two_labels(method: str, task: Task) -> None:
    """Raise `DataError` if there are more labels than a binary method can tell apart."""
    if task.num_classes != 2:
        raise DataError(f"'data.y' must have 2 labels for {method} (got {task.num_classes})")


def check_two_groups(method: str, task: Task) -> None:
    """Raise `DataError` if there are more groups than a binary method can treat."""
    if task.num_groups != 2:
        raise DataError(f"'data.sens' must have 2 groups for {method} (got {task.num_groups})")
