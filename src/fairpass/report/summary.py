"""The numbers of a report over all seeds, and what they come to in a sentence or two."""

import math
from dataclasses import dataclass
from typing import Any

from fairpass.methods import Logistic
from fairpass.metrics import Evaluation
from fairpass.report.evidence import Evidence
from fairpass.report.flags import mean_interval
from fairpass.report.words import percent, plural
from fairpass.runs import Row, RunRecord, summarise, tradeoff

# As in tables, and the names of the same in an `Evaluation`.
METRICS = {"AUC": "auc", "F1": "f1", "ACC": "acc", "DP": "delta_dp", "EO": "delta_eo"}
SHOWN = {"AUC": "AUC", "F1": "F1", "ACC": "ACC", "DP": "ΔDP", "EO": "ΔEO"}
LOWER_IS_BETTER = ("DP", "EO")

_BACKBONES = ("gcn", "gin", "gat")


@dataclass(frozen=True)
class Overview:
    """A method over all its seeds, in percent: what `summarise` makes of them, and its intervals."""

    row: Row
    record: dict[str, Any]
    number: int
    """Of its colour and shape in charts; -1 for a constant."""

    @property
    def name(self) -> str:
        """Return the method's name."""
        return self.row.method

    def mean(self, metric: str) -> float | None:
        """Return a metric's mean over the seeds."""
        return _known(self.row.mean[metric])

    def deviation(self, metric: str) -> float | None:
        """Return its standard deviation; None for one seed."""
        return _known(self.row.std[metric])

    def each(self, metric: str) -> list[float | None]:
        """Return the metric of every seed."""
        values = [run["evaluation"][METRICS[metric]] for run in self.record["runs"]]
        return [None if value is None else 100 * value for value in values]

    def interval(self, metric: str) -> tuple[float | None, float | None]:
        """Return the ends of the 95 % interval, each the mean of the seeds' ends."""
        low, high = mean_interval(self.record["runs"], METRICS[metric])
        return (None, None) if low is None or high is None else (100 * low, 100 * high)


def overviews(evidence: Evidence) -> list[Overview]:
    """Return every method over its seeds, in the order of the evidence."""
    runs = [
        RunRecord(method["name"], run["seed"], 0.0, Evaluation.from_dict(run["evaluation"]))
        for method in evidence.methods
        for run in method["runs"]
    ]
    references = [method["name"] for method in evidence.methods if method["is_reference"]]
    rows = {row.method: row for row in summarise(runs, references)}
    made, number = [], 0
    for method in evidence.methods:
        made.append(Overview(rows[method["name"]], method, -1 if method["is_reference"] else number))
        number += not method["is_reference"]
    return made


def plain_method(evidence: Evidence) -> str | None:
    """Return the method to compare the chosen one with: one that knows nothing of fairness, if there is one."""
    others = [m for m in evidence.methods if not m["is_reference"] and m["name"] != evidence.chosen]
    plain = [method["name"] for method in others if method["method"] in _BACKBONES]
    return next(iter(plain or [method["name"] for method in others]), None)


def sentences(evidence: Evidence) -> list[str]:
    """Return what the report comes to: how the chosen method does, and how it differs from plain ones."""
    rows = {overview.name: overview for overview in overviews(evidence)}
    chosen = rows[evidence.chosen]
    values = {metric: percent(_fraction(chosen.mean(metric))) for metric in METRICS}
    seeds, nodes = len(chosen.record["runs"]), chosen.record["runs"][0]["evaluation"]["n"]
    made = [
        f"{chosen.name} reaches ACC {values['ACC']} % and AUC {values['AUC']} % with ΔDP {values['DP']} and "
        f"ΔEO {values['EO']} points between groups, on {plural(nodes, 'test node')}"
        f"{'' if seeds == 1 else f' (means of {seeds} seeds)'}."
    ]
    plain = plain_method(evidence)
    # A regression without a graph is often hard to beat: whether the method does is said as well.
    logistic = [method["name"] for method in evidence.methods if method["method"] == Logistic.name]
    rivals = dict.fromkeys([*([] if plain is None else [plain]), *logistic])
    for name in rivals:
        if name != chosen.name and _is_whole(rows[name]) and _is_whole(chosen):
            made.append(tradeoff(rows[name].row, chosen.row))
    return made


def cost_of_choice(evidence: Evidence) -> str:
    """Return what the chosen point of the front gives up against the most useful one; empty without points."""
    chosen = next((point for point in evidence.points if point["chosen"]), None)
    front = [point for point in evidence.points if point["front"]]
    if chosen is None or not front:
        return ""
    best = max(front, key=lambda point: point["utility"])
    lost, gained = best["utility"] - chosen["utility"], best["unfairness"] - chosen["unfairness"]
    here = (
        f"On validation the chosen configuration has a utility of {percent(chosen['utility'])} and an unfairness of "
        f"{percent(chosen['unfairness'])}"
    )
    if lost < 5e-4:
        return f"{here}; none that was tried is more useful."
    fairer = f"gains {percent(gained)} points of fairness" if gained >= 5e-4 else "is no fairer"
    return f"{here}: against the most useful one that was tried it gives up {percent(lost)} points, and {fairer}."


def _is_whole(overview: Overview) -> bool:
    return None not in {overview.mean(metric) for metric in METRICS}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _fraction(value: float | None) -> float | None:
    return None if value is None else value / 100
