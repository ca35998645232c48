"""The cells of tables and figures; configurations and runs are in `fairpass.runs`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairpass.runs import Configuration
from fairpass.runs import RunSpec as Spec

__all__ = ["Cell", "Configuration", "Spec"]


@dataclass(frozen=True)
class Cell:
    """One entry of a table or one point of a figure: what validation prefers among some configurations.

    Attributes:
        dataset: its name.
        label: what readers see, e.g. "FairGNN".
        candidates: configurations to choose from, on validation, by the mean over the seeds.
        seeds: of the runs.
        at: where the point lies, e.g. `{"K": 3}`.
        measures: what is measured in addition to the evaluation.
        resplit: whether each seed is also that of a split of its own; else all have the published one.
    """

    dataset: str
    label: str
    candidates: tuple[Configuration, ...]
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    at: Mapping[str, Any] = field(default_factory=dict)
    measures: tuple[str, ...] = ()
    resplit: bool = False

    def runs(self, candidate: Configuration) -> list[Spec]:
        """Return the runs of one candidate, seed by seed."""
        return [
            Spec(self.dataset, candidate, seed, self.measures, seed if self.resplit else None) for seed in self.seeds
        ]

    def specs(self) -> Iterator[Spec]:
        """Return all runs."""
        for candidate in self.candidates:
            yield from self.runs(candidate)
