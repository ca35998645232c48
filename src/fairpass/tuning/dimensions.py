"""What a search may vary: one small frozen record for each kind of value."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Plain = str | int | float | bool | None

# Enough to tell two configurations apart, and few enough to be read.
_DIGITS = 4


@dataclass(frozen=True, init=False)
class Choice:
    """One of some values; with only one, the parameter is fixed.

    Args:
        values: numbers, text or None.
    """

    values: tuple[Plain, ...]

    def __init__(self, *values: Plain) -> None:
        if not values:
            raise ValueError("'values' must hold at least one value (got none)")
        if len({(type(value), value) for value in values}) < len(values):
            raise ValueError(f"'values' must be different from each other (got {values})")
        object.__setattr__(self, "values", values)

    def ends(self) -> tuple[Plain, ...]:
        """Return the values that are enough to see whether a parameter takes all of them."""
        return self.values

    def contains(self, value: Any) -> bool:
        """Return whether a value can be found."""
        return value in self.values

    def read(self, value: Any) -> Any:
        """Return what a classifier gets for a value that was found."""
        return value

    def distribution(self) -> "BaseDistribution":
        """Return what Optuna calls it."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(self.values)


@dataclass(frozen=True)
class _Interval:
    low: float
    high: float

    def __post_init__(self) -> None:
        if not -inf < self.low < self.high < inf:
            raise ValueError(f"'low' must be less than 'high', both finite (got {self.low} and {self.high})")

    def ends(self) -> tuple[Plain, ...]:
        """Return the values that are enough to see whether a parameter takes all of them."""
        return (self.low, self.high)

    def contains(self, value: Any) -> bool:
        """Return whether a value can be found."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def read(self, value: Any) -> Any:
        """Return what a classifier gets for a value that was found: a number that can be read."""
        return float(f"{value:.{_DIGITS}g}")


class Uniform(_Interval):
    """A number between two others, all equally likely."""

    def distribution(self) -> "BaseDistribution":
        """Return what Optuna calls it."""
        from optuna.distributions import FloatDistribution

        return FloatDistribution(self.low, self.high)


class LogUniform(_Interval):
    """A positive number between two others, all orders of magnitude equally likely."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low > 0:
            raise ValueError(f"'low' must be positive (got {self.low})")

    def distribution(self) -> "BaseDistribution":
        """Return what Optuna calls it."""
        from optuna.distributions import FloatDistribution

        return FloatDistribution(self.low, self.high, log=True)


class Integers(_Interval):
    """A whole number between two others, both included."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.low, int) and isinstance(self.high, int)):
            raise ValueError(f"'low' and 'high' must be whole numbers (got {self.low} and {self.high})")

    def contains(self, value: Any) -> bool:
        """Return whether a value can be found."""
        return isinstance(value, int) and super().contains(value)

    def read(self, value: Any) -> Any:
        """Return what a classifier gets for a value that was found."""
        return int(value)

    def distribution(self) -> "BaseDistribution":
        """Return what Optuna calls it."""
        from optuna.distributions import IntDistribution

        return IntDistribution(int(self.low), int(self.high))


Dimension = Choice | Uniform | LogUniform | Integers
