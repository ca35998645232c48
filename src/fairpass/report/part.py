"""One piece of evidence as the page reads it: the delivered model's numbers, the other models, sentences."""

from dataclasses import dataclass
from functools import cached_property
from statistics import stdev
from typing import Any

from fairpass.methods import Logistic
from fairpass.metrics import Metric, catalog
from fairpass.report.consistency import people_in
from fairpass.report.evidence import Evidence
from fairpass.report.figures import FigureTable, figure_tables, of_all_groups, widest
from fairpass.report.headline import Statement, comparison_sentences, statements
from fairpass.report.measures import interval
from fairpass.report.schema import Method, Neighbourhoods, Run, ThresholdCell, ThresholdCounts, TriedPoint
from fairpass.report.text import ABSENT

_BACKBONES = ("gcn", "gin", "gat", "sage")


@dataclass(frozen=True)
class Overview:
    """A method; its numbers are those of its first seed, in percent, None where undefined."""

    record: Method
    number: int  # of its colour and shape in charts; -1 for a constant

    @property
    def name(self) -> str:
        return self.record["name"]

    @property
    def run(self) -> Run:
        return self.record["runs"][0]

    def value(self, metric: Metric) -> float | None:
        return self.each(metric)[0]

    def each(self, metric: Metric) -> list[float | None]:
        """Return the metric of every seed; evidence of an older version may lack it."""
        values = [run["evaluation"].get(metric.key) for run in self.record["runs"]]
        return [None if value is None else 100 * value for value in values]

    def deviation(self, metric: Metric) -> float | None:
        """Return the standard deviation over the seeds: how much another training changes."""
        values = [value for value in self.each(metric) if value is not None]
        return None if len(values) < len(self.record["runs"]) or len(values) == 1 else stdev(values)

    def interval(self, metric: Metric) -> tuple[float | None, float | None]:
        """Return the ends of the 95 % interval for the choice of test nodes."""
        low, high = interval(self.run, metric.key)
        return (None, None) if low is None or high is None else (100 * low, 100 * high)


@dataclass(frozen=True)
class Part:
    """One piece of evidence as the templates read it."""

    evidence: Evidence
    uid: str = "r1"
    include_people: bool = False

    @cached_property
    def rows(self) -> list[Overview]:
        methods = self.evidence.methods
        trained = [method["name"] for method in methods if not method["is_reference"]]
        numbers = {name: number for number, name in enumerate(trained)}
        return [Overview(method, numbers.get(method["name"], -1)) for method in methods]

    @cached_property
    def chosen(self) -> Overview:
        return next(row for row in self.rows if row.name == self.evidence.chosen)

    @cached_property
    def plain(self) -> Overview | None:
        """The method to compare the chosen one with: one without a fairness term, if there is one."""
        others = [row for row in self.rows if row.number >= 0 and row is not self.chosen]
        return next(iter([row for row in others if row.record["method"] in _BACKBONES] or others), None)

    @cached_property
    def points(self) -> list[TriedPoint]:
        """The configurations that were tried and could be measured."""
        return [p for p in self.evidence.points if p["utility"] is not None and p["unfairness"] is not None]

    @property
    def binary(self) -> bool:
        return len(self.evidence.data["labels"]) == 2

    @property
    def people(self) -> int:
        """How many test nodes all figures are about."""
        return int(self.chosen.run["evaluation"]["n"])

    @cached_property
    def tables(self) -> list[FigureTable]:
        return figure_tables(self.evidence)

    @cached_property
    def main_table(self) -> FigureTable | None:
        """The groups as the model was given them, with the label in which they differ most."""
        return widest(of_all_groups(self.evidence, self.tables))

    def may_be_zero(self, key: str) -> bool:
        """Whether a difference between groups may be 0 for all that these people can show.

        The interval of the metric itself, an absolute value, does not say so.
        """
        tables = of_all_groups(self.evidence, self.tables)
        gaps = {
            "delta_dp": [table.gap for table in tables],
            "delta_eo": [table.opportunity_gap for table in tables],
        }.get(key, [])
        known = [gap for gap in gaps if gap is not None]
        return bool(known) and all(gap.shown is None for gap in known)

    def by_attribute(self) -> list[list[FigureTable]]:
        """The tables of each attribute, the label with the widest difference first."""
        size = len(self.evidence.labels)
        parts = [self.tables[start : start + size] for start in range(0, len(self.tables), size)]
        return [sorted(part, key=lambda table: -(table.gap.difference.value if table.gap else 0)) for part in parts]

    def statements(self) -> list[Statement]:
        return statements(self.evidence, self.tables)

    def comparisons(self) -> list[str]:
        # A regression without a graph is often hard to beat, so it is always compared.
        rivals = {}
        for row in self.rows:
            if row is not self.chosen and row.record["method"] == Logistic.name:
                rivals[row.name] = " (logistic regression without the graph)"
            elif row is self.plain:
                rivals[row.name] = ", which has no fairness term" if row.record["method"] in _BACKBONES else ""
        return comparison_sentences(self.evidence, rivals)

    def interval_of(self, key: str) -> tuple[float | None, float | None]:
        """Return the ends of the interval of one of the delivered model's metrics, as fractions."""
        return interval(self.chosen.run, key)

    def others(self, metric: Metric) -> str:
        """Return the range of a metric over the other trainings of the chosen method, in percent."""
        known = [value for value in self.chosen.each(metric)[1:] if value is not None]
        ends = [f"{end:.1f}" for end in (min(known), max(known))] if known else [ABSENT]
        return " to ".join(dict.fromkeys(ends))

    def sentences(self) -> list[str]:
        """Return the first screen in words: rates, the difference and what it can show, and other models."""
        about_groups = [sentence for each in self.statements() for sentence in each if sentence]
        return [*about_groups, *self.comparisons()]

    @property
    def neighbourhoods(self) -> Neighbourhoods:
        """Some people and their neighbours; empty unless they are to be shown."""
        return self.evidence.neighbourhoods if self.include_people else {}

    @cached_property
    def hidden(self) -> set[str]:
        """Groups that are too small to be shown; only evidence of an older version has any."""
        sizes = {each["group"]: people_in(each["counts"]) for each in self.evidence.delivered["confusion"]}
        return {group for group, size in sizes.items() if size < self.evidence.min_group}

    def _without_hidden(self, counts: ThresholdCounts) -> ThresholdCounts:
        cells: list[ThresholdCell] = [
            {**cell, "group": None if cell["group"] in self.hidden else cell["group"]} for cell in counts["cells"]
        ]
        return {**counts, "cells": cells}

    @cached_property
    def interactive(self) -> dict[str, Any]:
        """Data of the page's script: counts by threshold, and the neighbourhoods."""
        thresholds = {row.name: counts for row in self.rows if (counts := row.record["thresholds"]) is not None}
        return {
            "chosen": self.evidence.chosen,
            "labels": self.evidence.data["labels"],
            "groups": self.evidence.data["groups"],
            "symbols": {metric.key: metric.symbol for metric in catalog.METRICS},
            "thresholds": {name: self._without_hidden(counts) for name, counts in thresholds.items()},
            "neighbourhoods": self.neighbourhoods,
        }
