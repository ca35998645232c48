"""How long to search: a number of trials, a time, or both."""

import re
from dataclasses import dataclass
from math import inf

from fairpass.parameters import check_count

_TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")

_LONGEST = 10 * 366 * 24 * 3600  # seconds: ten years
_SHOWN = 20  # characters of a time that is longer


@dataclass(frozen=True)
class Budget:
    """The limits of a search, which ends with the first that is reached; None: no limit.

    `trials` counts the configurations of the whole study, those of earlier calls and of other processes included;
    `seconds` are of this call. The first trial is finished in any case.
    """

    trials: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.trials is None and self.seconds is None:
            raise ValueError("'budget' must limit the trials or the time (got neither)")
        if self.trials is not None:
            check_count("trials", self.trials)
        if self.seconds is not None and not 0 < self.seconds < inf:
            raise ValueError(f"'seconds' must be positive and finite (got {self.seconds})")
        if self.seconds is not None and self.seconds > _LONGEST:
            raise ValueError(f"'seconds' must be at most {_LONGEST:,} (got {self.seconds:,.4g})")

    @classmethod
    def of(cls, budget: "Budget | int | str") -> "Budget":
        """Return a budget from a number of trials, or from a time such as "10m"."""
        if isinstance(budget, Budget):
            return budget
        if isinstance(budget, str):
            return cls(seconds=parse_time(budget))
        if isinstance(budget, bool) or not isinstance(budget, int):
            raise ValueError(f"'budget' must be a number of trials or a time such as '10m' (got {budget!r})")
        check_count("budget", budget)
        return cls(trials=budget)


def parse_time(text: str) -> float:
    """Return the seconds of a time such as "90s", "10m", "2h" or "1h30m"."""
    found = _TIME.fullmatch(text.strip().lower())
    hours, minutes, seconds = (float(part or 0) for part in found.groups()) if found else (0.0, 0.0, 0.0)
    total = 3600 * hours + 60 * minutes + seconds
    if not total:
        raise ValueError(f"'budget' must be a time such as '90s', '10m' or '1h30m' (got {text!r})")
    if total > _LONGEST:
        got = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise ValueError(f"'budget' must be at most {_LONGEST // 3600:,}h (got {got!r})")
    return total
