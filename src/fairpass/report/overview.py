"""The numbers of a report over all seeds, and its conclusions in a sentence or two."""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean, stdev
from typing import Any

from fairpass.methods import Logistic
from fairpass.metrics import Evaluation, Metric, catalog
from fairpass.metrics.catalog import SELECTION
from fairpass.report.evidence import Evidence
from fairpass.report.measures import mean_interval
from fairpass.report.text import percent, plural
from fairpass.runs import Row, RunRecord, summarise, tradeoff

_BACKBONES = ("gcn", "gin", "gat")


@dataclass(frozen=True)
class Overview:
    """A method over all its seeds; metrics in percent, None where undefined."""

    row: Row
    record: dict[str, Any]
    number: int
    """Of its colour and shape in charts; -1 for a constant."""

    @property
    def name(self) -> str:
        """Name of the method."""
        return self.row.method

    def each(self, metric: Metric) -> list[float | None]:
        """Return the metric of every seed; evidence of an older version may lack it."""
        values = [run["evaluation"].get(metric.key) for run in self.record["runs"]]
        return [None if value is None else 100 * value for value in values]

    def mean(self, metric: Metric) -> float | None:
        """Return the mean over the seeds."""
        known = self._defined(metric)
        return fmean(known) if known else None

    def deviation(self, metric: Metric) -> float | None:
        """Return the standard deviation over the seeds; None for one seed."""
        known = self._defined(metric)
        return stdev(known) if len(known) > 1 else None

    def _defined(self, metric: Metric) -> list[float]:
        values = self.each(metric)
        return [] if None in values else [value for value in values if value is not None]

    def interval(self, metric: Metric) -> tuple[float | None, float | None]:
        """Return the ends of the 95 % interval, each the mean of the seeds' ends."""
        low, high = mean_interval(self.record["runs"], metric.key)
        return (None, None) if low is None or high is None else (100 * low, 100 * high)

    @property
    def rank(self) -> float | None:
        """Mean rank; None for a constant, and if a metric is undefined."""
        return None if self.row.rank is None or math.isnan(self.row.rank) else self.row.rank

    @property
    def is_defined(self) -> bool:
        """Whether all metrics of the selection rule are defined."""
        return None not in {self.mean(metric) for metric in SELECTION}


@dataclass(frozen=True)
class Part:
    """One piece of evidence as the templates read it."""

    evidence: Evidence
    uid: str = "r1"

    @cached_property
    def rows(self) -> list[Overview]:
        """Every method over its seeds, in the order of the evidence."""
        methods = self.evidence.methods
        runs = [
            RunRecord(method["name"], run["seed"], 0.0, Evaluation.from_dict(run["evaluation"]))
            for method in methods
            for run in method["runs"]
        ]
        references = [method["name"] for method in methods if method["is_reference"]]
        rows = {row.method: row for row in summarise(runs, references)}
        numbers = {name: number for number, name in enumerate(name for name in rows if name not in references)}
        return [Overview(rows[m["name"]], m, numbers.get(m["name"], -1)) for m in methods]

    @cached_property
    def chosen(self) -> Overview:
        """The method that the report is about."""
        return next(row for row in self.rows if row.name == self.evidence.chosen)

    @cached_property
    def plain(self) -> Overview | None:
        """The method to compare the chosen one with: one without a fairness term, if there is one."""
        others = [row for row in self.rows if row.number >= 0 and row is not self.chosen]
        return next(iter([row for row in others if row.record["method"] in _BACKBONES] or others), None)

    @property
    def binary(self) -> bool:
        """Whether there are two labels."""
        return len(self.evidence.data["labels"]) == 2

    def sentences(self) -> list[str]:
        """Return how the chosen method does, and how it differs from plain ones."""
        chosen, runs = self.chosen, self.chosen.record["runs"]
        values = {m.label: percent(None if (mean := chosen.mean(m)) is None else mean / 100) for m in SELECTION}
        seeds = "" if len(runs) == 1 else f" (means of {len(runs)} seeds)"
        made = [
            f"{chosen.name} reaches ACC {values['ACC']} % and AUC {values['AUC']} % with ΔDP {values['DP']} and "
            f"ΔEO {values['EO']} points between groups, on {plural(runs[0]['evaluation']['n'], 'test node')}{seeds}."
        ]
        # A regression without a graph is often hard to beat, so it is always compared.
        logistic = [row for row in self.rows if row.record["method"] == Logistic.name]
        rivals = {row.name: row for row in (self.plain, *logistic) if row is not None and row is not chosen}
        if chosen.is_defined:
            made += [tradeoff(row.row, chosen.row) for row in rivals.values() if row.is_defined]
        return made

    def cost_of_choice(self) -> str:
        """Return what the chosen point of the front gives up against the most useful one; empty without points."""
        chosen = next((point for point in self.evidence.points if point["chosen"]), None)
        front = [point for point in self.evidence.points if point["front"]]
        if chosen is None or not front:
            return ""
        best = max(front, key=lambda point: point["utility"])
        lost, gained = best["utility"] - chosen["utility"], best["unfairness"] - chosen["unfairness"]
        utility, unfairness = percent(chosen["utility"]), percent(chosen["unfairness"])
        here = f"On validation the chosen configuration has a utility of {utility} and an unfairness of {unfairness}"
        if lost < 5e-4:
            return f"{here}; no other one that was tried is more useful."
        fairer = f"gains {percent(gained)} points of fairness" if gained >= 5e-4 else "is no fairer"
        return f"{here}: compared with the most useful one it gives up {percent(lost)} points, and {fairer}."

    @cached_property
    def interactive(self) -> dict[str, Any]:
        """Data of the page's script: counts by threshold, and the neighbourhoods."""
        return {
            "chosen": self.evidence.chosen,
            "labels": self.evidence.data["labels"],
            "groups": self.evidence.data["groups"],
            "symbols": {metric.key: metric.symbol for metric in catalog.METRICS},
            "thresholds": {row.name: row.record["thresholds"] for row in self.rows if row.record["thresholds"]},
            "neighbourhoods": self.evidence.neighbourhoods,
        }
