"""Several methods on one graph, side by side: means, deviations, ranks, and what to beware of."""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from scipy.stats import rankdata
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.methods.base import NodeClassifier
from fairpass.methods.constant import Constant
from fairpass.methods.runs import Run, Trial
from fairpass.metrics.quick import NAMES as METRICS
from fairpass.training import fingerprint
from fairpass.training.tensors import to_json

_KIND = "fairpass comparison"
_LOWER_IS_BETTER = ("DP", "EO")


@dataclass(frozen=True)
class Row:
    """What the runs of one method come to; AUC, F1, ACC, DP and EO in percent."""

    method: str
    seeds: tuple[int, ...]
    """Of the runs that were made, with or without success."""
    failed: int
    """How many of them ended with an error."""
    mean: Mapping[str, float]
    """Over the runs without error, by metric; empty if there is none."""
    std: Mapping[str, float]
    """Standard deviation (of a sample: n - 1) of the same; nan for a single run."""
    ranks: Mapping[str, float]
    """The place of each mean among the methods, 1 the best; equal ones share theirs. The constant classifier
    has none: it is what to compare with, and takes no part."""
    seconds: float
    """Mean time of a run."""
    flags: tuple[str, ...]
    """What to know before trusting the numbers, in words."""

    @property
    def rank(self) -> float | None:
        """Return the average of the ranks; None if there are none."""
        return fmean(self.ranks.values()) if self.ranks else None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold (nan becomes None)."""
        std = {name: None if math.isnan(value) else value for name, value in self.std.items()}
        return {**asdict(self), "std": std, "rank": self.rank}


@dataclass(frozen=True)
class Comparison:
    """Methods, a graph, and the runs made so far. It is never changed: `plus` returns a new one.

    Attributes:
        graph: fingerprint of the graph.
        provenance: where the graph is from.
        methods: by name, what tells one classifier from another (class, parameters, training settings).
        runs: one for each method and seed at most.
    """

    graph: str
    provenance: Mapping[str, Any] | None
    methods: Mapping[str, Mapping[str, Any]]
    runs: tuple[Run, ...] = ()
    version: str = __version__

    @classmethod
    def of(cls, methods: Mapping[str, NodeClassifier], data: Data) -> "Comparison":
        """Return a comparison in which nothing has been run yet."""
        descriptions = {name: _description(classifier) for name, classifier in methods.items()}
        return cls(fingerprint(data), data.get("provenance"), descriptions)

    def has(self, trial: Trial) -> bool:
        """Return whether a trial has been run with success."""
        return any(
            (run.method, run.seed) == (trial.method, trial.seed) and run.error is None for run in self.runs
        )

    def plus(self, run: Run) -> "Comparison":
        """Return the comparison with one more run, in the place of an earlier one of the same trial."""
        kept = [other for other in self.runs if (other.method, other.seed) != (run.method, run.seed)]
        return replace(self, runs=(*kept, run))

    def join(self, earlier: "Comparison") -> "Comparison":
        """Return this comparison with all that an earlier one of the same graph and settings has."""
        if earlier.graph != self.graph:
            raise DataError(
                "the earlier comparison must be of this very graph, split and features (it is not)"
            )
        if earlier.version != self.version:
            raise DataError(
                f"the earlier comparison must be of version {self.version} (got {earlier.version})"
            )
        for name in earlier.methods.keys() & self.methods.keys():
            if earlier.methods[name] != self.methods[name]:
                raise DataError(
                    f"the earlier comparison must have {name!r} with the same settings (it has not)"
                )
        return replace(self, methods={**earlier.methods, **self.methods}, runs=(*earlier.runs, *self.runs))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Return one row for each method, in the order of `methods`."""
        runs = {name: [run for run in self.runs if run.method == name] for name in self.methods}
        means = {name: _means(of_method) for name, of_method in runs.items()}
        references = [name for name, about in self.methods.items() if about["method"] == Constant.name]
        ranks = _ranks({name: mean for name, mean in means.items() if mean and name not in references})
        floor = next((means[name]["ACC"] for name in references if means[name]), None)
        return tuple(
            _row(name, made, means[name], ranks.get(name, {}), _flags(made, name in references, floor))
            for name, made in runs.items()
            if made
        )

    def row(self, method: str) -> Row:
        """Return the row of one method."""
        for row in self.rows:
            if row.method == method:
                return row
        raise ValueError(
            f"'method' must be one of {', '.join(self.methods)}, and have been run (got {method!r})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold, with the rows for whoever wants no more than these."""
        return {
            "kind": _KIND,
            "version": self.version,
            "graph": self.graph,
            "provenance": self.provenance,
            "methods": self.methods,
            "rows": [row.to_dict() for row in self.rows],
            "runs": [run.to_dict() for run in self.runs],
        }

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the comparison to a JSON file."""
        return write_text(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Comparison":
        """Read what `save` wrote, or raise `DataError`."""
        try:
            stored = json.loads(Path(path).read_text())
            if stored["kind"] != _KIND:
                raise ValueError(f"it is a {stored['kind']!r}")
            runs = tuple(Run.from_dict(run) for run in stored["runs"])
            return cls(stored["graph"], stored["provenance"], stored["methods"], runs, stored["version"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"'{path}' must be a {_KIND} (damaged or not one: {error})") from None


def _description(classifier: NodeClassifier) -> dict[str, Any]:
    parameters = {name: value for name, value in classifier.get_params().items() if name != "training"}
    training = {name: value for name, value in classifier.training.to_dict().items() if name != "seed"}
    description = {"method": classifier.name, "parameters": parameters, "training": training}
    # As it will be when it is read again: tuples are lists in JSON.
    plain: dict[str, Any] = json.loads(to_json(description))
    return plain


def _values(runs: Iterable[Run], metric: str) -> list[float]:
    return [run.evaluation.percent()[metric] for run in runs if run.evaluation is not None]


def _means(runs: Sequence[Run]) -> dict[str, float]:
    if all(run.evaluation is None for run in runs):
        return {}
    return {metric: fmean(_values(runs, metric)) for metric in METRICS}


def _ranks(means: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    ranks: dict[str, dict[str, float]] = {name: {} for name in means}
    for metric in METRICS:
        # Rounded, so that sums of the same numbers in another order are still a tie.
        values = [round(mean[metric], 9) for mean in means.values()]
        places = rankdata(values if metric in _LOWER_IS_BETTER else [-value for value in values])
        for name, place in zip(means, places, strict=True):
            ranks[name][metric] = float(place)
    return ranks


def _flags(runs: Sequence[Run], is_reference: bool, floor: float | None) -> tuple[str, ...]:
    """Say what to know of the runs; `floor` is the constant classifier's accuracy, if it is known."""
    failures = [run.error for run in runs if run.error is not None]
    near_constant = [run for run in runs if run.evaluation is not None and run.evaluation.near_constant]
    flags = []
    if failures:
        reasons = "; ".join(dict.fromkeys(failures))
        flags.append(f"failed in {len(failures)} of {len(runs)} runs: {reasons}")
    if is_reference:  # near constant by its nature
        flags.append("predicts the same for every node: fair, but of no use")
    elif near_constant:
        flags.append(f"near constant in {len(near_constant)} of {len(runs)} runs")
    mean = _means(runs)
    if mean and floor is not None and not is_reference and mean["ACC"] <= floor:
        flags.append(f"not more accurate than the constant ({floor:.1f})")
    return tuple(flags)


def _row(
    name: str,
    runs: Sequence[Run],
    mean: Mapping[str, float],
    ranks: Mapping[str, float],
    flags: tuple[str, ...],
) -> Row:
    done = sum(run.evaluation is not None for run in runs)
    return Row(
        method=name,
        seeds=tuple(sorted(run.seed for run in runs)),
        failed=len(runs) - done,
        mean=mean,
        std={metric: stdev(_values(runs, metric)) if done > 1 else math.nan for metric in mean},
        ranks=ranks,
        seconds=fmean(run.seconds for run in runs),
        flags=flags,
    )
