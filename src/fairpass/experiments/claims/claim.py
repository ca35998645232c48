"""A claim of the paper, and whether the records show it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from fairpass.experiments.ranks import LOWER_IS_BETTER, UTILITY

CLOSE = 1.0
"""Two averages that differ by at most this many percentage points are called comparable."""

Verdict = Literal["seen", "partly seen", "not seen", "not measured"]


@dataclass(frozen=True)
class Check:
    """Whether a claim holds somewhere.

    Attributes:
        where: a data set, a method, or both.
        holds: whether it does.
        numbers: what shows it.
    """

    where: str
    holds: bool
    numbers: str

    def __str__(self) -> str:
        return f"{self.where} ({self.numbers})"


@dataclass(frozen=True)
class Claim:
    """A claim and everything it was checked against.

    Attributes:
        text: what the paper says, in our words.
        checks: empty if nothing was measured.
    """

    text: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """Return whether the claim is seen: everywhere, somewhere or nowhere."""
        if not self.checks:
            return "not measured"
        held = sum(check.holds for check in self.checks)
        return "seen" if held == len(self.checks) else "partly seen" if held else "not seen"

    @property
    def sentence(self) -> str:
        """Return the verdict and the numbers it rests on."""
        if not self.checks:
            return "Not measured."
        held, failed = ([str(check) for check in self.checks if check.holds is holds] for holds in (True, False))
        if held and failed:
            return (
                f"Partly seen, in {len(held)} of {len(self.checks)}. Yes: {'; '.join(held)}. No: {'; '.join(failed)}."
            )
        return f"{self.verdict.capitalize()}: {'; '.join(held or failed)}."


def claim(text: str, checks: Iterable[Check | None]) -> Claim:
    """Return a claim with the checks that could be made."""
    return Claim(text, tuple(check for check in checks if check is not None))


def utility(row: Mapping[str, float]) -> float:
    """Return the mean of AUC, F1 and ACC."""
    return fmean(row[metric] for metric in UTILITY)


def bias(row: Mapping[str, float]) -> float:
    """Return the mean of ΔDP and ΔEO."""
    return fmean(row[metric] for metric in LOWER_IS_BETTER)


def balance(row: Mapping[str, float]) -> str:
    """Return both in words."""
    return f"utility {utility(row):.1f}, bias {bias(row):.1f}"
