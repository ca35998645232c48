"""What a trial of any part says, and the sums over all of them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.trial import Outcome

COUNTED = ("kills", "starts", "files")  # the counts that are asked for


@dataclass
class Report:
    """What a trial tried, and what was wrong: nothing, if it is clean."""

    faults: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    outcomes: list[Outcome] = field(default_factory=list)
    skipped: str | None = None

    def add(self, outcome: Outcome) -> Outcome:
        """Keep an outcome, and what is wrong with it whatever was asked for."""
        self.outcomes.append(outcome)
        self.faults += outcome.faults()
        return outcome

    def describe(self) -> str:
        return "\n".join([*(f"FAULT {fault}" for fault in self.faults), *(each.describe() for each in self.outcomes)])


@dataclass(frozen=True)
class Setting:
    """What a trial is given: its own random numbers and folder, and a folder that all trials share."""

    random: Random
    folder: Path
    shared: Path


Part = Callable[[Setting], Report]


@dataclass
class Sum:
    """Trials of a part."""

    tried: int = 0
    clean: int = 0
    fault: int = 0
    skipped: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, report: Report) -> None:
        self.tried += 1
        self.skipped += report.skipped is not None
        self.fault += bool(report.faults)
        self.clean += not report.faults and report.skipped is None
        self.counts += report.counts
