"""What does fairness change? A method against its own control, and what else moves the numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
from torch_geometric.data import Data

from fairpass.errors import DataError
from fairpass.experiments.cells import METRICS
from fairpass.experiments.inference import Floats, Interval, bootstrap_interval, variance_components
from fairpass.experiments.tables import Row, Table, number, table
from fairpass.files import finite
from fairpass.methods import method
from fairpass.metrics.catalog import BY_LABEL
from fairpass.parameters import MOST_SEEDS, check_count
from fairpass.runs import Configuration, Executor, Progress, RunSpec, RunStore, run

ARMS = ("method", "control")
# Which parameter of a method chooses the network, and what it is varied over by default.
ENCODERS: Mapping[str, tuple[str, ...]] = {
    "encoder": ("mlp", "gcn"),
    "backbone": ("gcn", "sage"),
    "base": ("logistic", "gcn"),
}


def encoder_parameter(configuration: Configuration) -> str | None:
    declared = (configuration.kind or method(configuration.method)).declared
    return next((name for name in ENCODERS if name in declared), None)


def _with_encoder(configuration: Configuration, encoder: str) -> Configuration:
    changes: dict[str, Any] = {str(encoder_parameter(configuration)): encoder}
    return configuration.but(**changes)


@dataclass(frozen=True)
class Attribution:
    """The effect of fairness: a configuration against its control over splits, seeds and encoders.

    Attributes:
        graph: name of a benchmark, or of graphs that are given to `run` for each split (see `name_of_split`).
        encoders: the networks over which the variance is measured, the configuration's own first; only its own if the
            method has no such choice.
    """

    graph: str
    configuration: Configuration
    store: RunStore
    splits: int = 6
    seeds: int = 2
    encoders: tuple[str, ...] = ()
    is_own: bool = False  # whether the graph is one of the user's

    @classmethod
    def of(
        cls,
        graph: str,
        configuration: Configuration,
        store: RunStore | None = None,
        *,
        splits: int = 6,
        seeds: int = 2,
        encoders: Sequence[str] | None = None,
        is_own: bool = False,
    ) -> "Attribution":
        """Check the request before any work: the method must have fairness to switch off, and enough splits."""
        configuration.control()  # raises for plain methods
        if splits < 2:
            raise ValueError(f"'splits' must be at least 2, for an interval (got {splits})")
        check_count("splits", splits, most=MOST_SEEDS)
        check_count("seeds", seeds, most=MOST_SEEDS)
        name = encoder_parameter(configuration)
        if encoders and name is None:
            raise ValueError(f"'encoders' must not be given: {configuration.method} has no choice of network")
        if name is None:
            chosen: tuple[str, ...] = ()
        else:
            own = str(configuration.classifier().hyperparameters[name])
            chosen = tuple(dict.fromkeys([own, *(ENCODERS[name] if encoders is None else encoders)]))
            for encoder in chosen:
                try:
                    _with_encoder(configuration, encoder).classifier()
                except ValueError as error:  # an unknown one
                    raise ValueError(str(error).replace(f"'{name}'", "'encoders'", 1)) from None
        kept = RunStore() if store is None else store  # an empty store is false
        return cls(graph, configuration, kept, splits, seeds, chosen, is_own)

    def name_of_split(self, split: int) -> str:
        return f"{self.graph}, split {split}" if self.is_own else self.graph

    def spec(self, arm: str, split: int, seed: int, encoder: str | None = None) -> RunSpec:
        chosen = self.configuration
        if encoder is not None:
            chosen = _with_encoder(chosen, encoder)
        chosen = chosen if arm == "method" else chosen.control()
        return RunSpec(self.name_of_split(split), chosen, seed, split=None if self.is_own else split)

    def specs(self) -> list[RunSpec]:
        """Return all runs, those of the configuration's own encoder first."""
        cells = product(self.encoders or (None,), range(self.splits), ARMS, range(self.seeds))
        return [self.spec(arm, split, seed, encoder) for encoder, split, arm, seed in cells]

    def run(
        self,
        *,
        graphs: Callable[[int], Data] | None = None,
        executor: Executor | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> int:
        """Make the runs that the store lacks; `graphs` gives the user's own graph for each split."""
        given = {self.name_of_split(s): graphs(s) for s in range(self.splits)} if graphs is not None else None
        return run(self.specs(), self.store, graphs=given, executor=executor, progress=progress)

    def values(self, metric: str, encoder: str | None = None) -> Floats:
        """Return a test metric in percent, `(arms, splits, seeds)`; nan for runs that failed."""
        found = np.full((len(ARMS), self.splits, self.seeds), np.nan)
        for place in product(range(len(ARMS)), range(self.splits), range(self.seeds)):
            record = self.store.get(self.spec(ARMS[place[0]], place[1], place[2], encoder))
            if record is not None and record["error"] is None and record["test"][metric] is not None:
                found[place] = record["test"][metric]
        return found

    @cached_property
    def own(self) -> str | None:
        return self.encoders[0] if self.encoders else None

    def effect(self, metric: str) -> Interval:
        """Return method minus control with its interval: a paired bootstrap over the splits, seeds averaged."""
        values = self.values(metric, self.own)
        differences = values[0] - values[1]
        if np.isnan(differences).all():
            name = self.configuration.method
            raise DataError(f"no split has both a run of {name} and one of its control ({self._first_error()})")
        kept = differences[~np.isnan(differences).all(axis=1)]
        return bootstrap_interval(np.nanmean(kept, axis=1))

    def _first_error(self) -> str:
        errors = [record["error"] for spec in self.specs() if (record := self.store.get(spec)) and record["error"]]
        return str(errors[0]) if errors else "they were not made"

    def level(self, metric: str, arm: str) -> float:
        """Return the mean of an arm over the runs that have a counterpart in the other."""
        values = self.values(metric, self.own)
        both = ~np.isnan(values).any(axis=0)
        return float(values[ARMS.index(arm)][both].mean())

    def components(self, metric: str) -> dict[str, float]:
        """Return the standard deviations that encoder, split and seed contribute, and the rest.

        Both arms count, each around its own mean, so that the effect of fairness is not part of it.
        """
        values = np.stack([self.values(metric, encoder) for encoder in (self.encoders or (None,))])
        if np.isnan(values).any():
            return dict.fromkeys(("encoder", "split", "seed", "interaction"), np.nan)
        by_arm = [variance_components(values[:, arm], ("encoder", "split")) for arm in range(len(ARMS))]
        return {name: math.sqrt(fmean(each[name] ** 2 for each in by_arm)) for name in by_arm[0]}

    @property
    def failures(self) -> dict[str, int]:
        """The reasons of failed runs, with how many there were."""
        found: dict[str, int] = {}
        for spec in self.specs():
            record = self.store.get(spec)
            if record is not None and record["error"] is not None:
                found[record["error"]] = found.get(record["error"], 0) + 1
        return found

    def tables(self) -> list[Table]:
        label = f"{self.configuration.method} on {self.graph}"
        effects: list[Row] = []
        others: list[Row] = []
        for metric in METRICS:
            interval, symbol = self.effect(metric), BY_LABEL[metric].symbol
            effects.append(
                {
                    "metric": symbol,
                    "control": number(self.level(metric, "control"), 1),
                    "method": number(self.level(metric, "method"), 1),
                    "effect": number(interval.estimate),
                    "95 % interval": f"{interval.low:+.2f} to {interval.high:+.2f}",
                    "resolved": "yes" if interval.is_resolved else "no",
                }
            )
            components = self.components(metric)
            others.append(
                {
                    "metric": symbol,
                    "|effect|": number(abs(interval.estimate)),
                    **{name: number(value) for name, value in components.items()},
                }
            )
        return [
            table("attribution", effects, dataset=label, splits=self.splits, seeds=self.seeds),
            table("attribution-variance", others, dataset=label),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        metrics = {}
        for metric in METRICS:
            interval = self.effect(metric)
            components = self.components(metric)
            metrics[metric] = {
                **interval._asdict(),
                "resolved": interval.is_resolved,
                "method": self.level(metric, "method"),
                "control": self.level(metric, "control"),
                "components": components,
            }
        document: dict[str, Any] = {
            "method": self.configuration.to_dict(),
            "control": self.configuration.control().to_dict(),
            "graph": self.graph,
            "splits": self.splits,
            "seeds": self.seeds,
            "encoders": list(self.encoders),
            "metrics": metrics,
            "failures": self.failures,
        }
        return {name: finite(value) for name, value in document.items()}

    @property
    def sentence(self) -> str:
        """The result in words."""
        resolved = [m for m in METRICS if self.effect(m).is_resolved]
        if not resolved:
            return (
                f"Over {self.splits} splits, {self.configuration.method} cannot be told from its control in any of the "
                f"{len(METRICS)} metrics."
            )
        parts = [f"{BY_LABEL[m].symbol} by {self.effect(m).estimate:+.1f}" for m in resolved]
        return f"Over {self.splits} splits, fairness in {self.configuration.method} changes {', '.join(parts)} points."
