"""What the records say: for every graph, row and split the setting that validation chose, and its test metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np
import pandas as pd

from fairpass.experiments.benchmark.protocol import Entry, Protocol
from fairpass.experiments.cells import METRICS
from fairpass.metrics.catalog import BY_LABEL
from fairpass.runs import Configuration, Executor, Progress, RunSpec, RunStore, StoredRecord, run
from fairpass.tuning.front import dominated_area, non_dominated

BIASES = ("DP", "EO")
# What validation looks at to choose a setting: everything, accuracy alone, or accuracy and one kind of bias.
RULES: Mapping[str, tuple[str, ...]] = {"all": METRICS, "ACC": ("ACC",), **{bias: ("ACC", bias) for bias in BIASES}}
SIGNS = {metric: 1 if BY_LABEL[metric].higher_is_better else -1 for metric in METRICS}


def run_benchmark(
    protocol: Protocol,
    store: RunStore,
    *,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
    controls: bool = True,
    again: bool = False,
) -> int:
    """Make the runs that the store lacks, one round of splits after the other; return how many were made.

    After the settings of a round come the controls of those that validation chose. With `again` all runs are made, also
    those that the store has.
    """
    made = 0

    def count_all(state: Progress) -> None:
        if progress is not None:
            progress(replace(state, done=made + state.done))

    for places in protocol.rounds():
        settings = [spec for place in places for spec in protocol.settings_on(*place)]
        made += run(settings, store, executor=executor, again=again, progress=count_all)
        if controls:
            found = BenchmarkResults(protocol, store)
            wanted = [spec for place in places for spec in found.control_specs(*place)]
            made += run(wanted, store, executor=executor, again=again, progress=count_all)
    return made


@dataclass(frozen=True)
class Chosen:
    """The setting that validation chose for a row on a split, with a record for each seed."""

    configuration: Configuration
    records: tuple[StoredRecord, ...]

    def test(self, metric: str) -> float:
        values = [record["test"][metric] for record in self.records]
        return np.nan if None in values else fmean(values)

    @property
    def is_near_constant(self) -> bool:
        return 2 * sum(bool(record["test"]["near_constant"]) for record in self.records) > len(self.records)

    @property
    def seconds(self) -> float:
        return fmean(record["seconds"] for record in self.records)


class BenchmarkResults:
    """The results of a protocol, as far as they are in a store."""

    def __init__(self, protocol: Protocol, store: RunStore) -> None:
        self.protocol, self.store = protocol, store
        # The key of a run is a hash of all its settings: finding a record takes longer than everything else.
        self._records: dict[tuple[str, int, int], list[StoredRecord | None]] = {}
        self._choices: dict[tuple[str, str, int, str], Chosen | None] = {}

    def _found(self, graph: str, setting: Configuration, split: int) -> list[StoredRecord | None]:
        key = graph, id(setting), split
        if key not in self._records:
            self._records[key] = [self.store.get(spec) for spec in self.protocol.specs_of(graph, setting, split)]
        return self._records[key]

    def _made(self, graph: str, setting: Configuration, split: int) -> tuple[StoredRecord, ...] | None:
        """Return the records of a setting on a split if all were made without error."""
        records = self._found(graph, setting, split)
        done = tuple(record for record in records if record is not None and record["error"] is None)
        return done if len(done) == len(records) else None

    @cached_property
    def _controls(self) -> dict[int, Configuration]:
        """The control of every setting of a fair method, by the setting's identity."""
        fair = [setting for entry in self.protocol.entries if entry.is_fair for setting in entry.settings]
        return {id(setting): setting.control() for setting in fair}

    def chosen(self, graph: str, entry: Entry, split: int, rule: str = "all") -> Chosen | None:
        """Return what validation chose among the settings that could be trained; None if there is none.

        A setting that predicts nearly the same for every validation node is chosen only if all do.
        """
        key = graph, entry.label, split, rule
        if key not in self._choices:
            self._choices[key] = self._choose(graph, entry, split, rule)
        return self._choices[key]

    def _choose(self, graph: str, entry: Entry, split: int, rule: str) -> Chosen | None:
        found = []
        for setting in entry.settings:
            records = self._made(graph, setting, split)
            if records is not None:
                found.append(Chosen(setting, records))
        useful = [each for each in found if not all(r["validation"].get("near_constant") for r in each.records)]
        return max(useful or found, key=lambda each: validation_score(each, rule), default=None)

    def control_specs(self, graph: str, split: int) -> list[RunSpec]:
        """Return the runs of the controls of the chosen settings."""
        specs = []
        for entry in self.protocol.entries:
            chosen = self.chosen(graph, entry, split) if entry.is_fair else None
            if chosen is not None:
                specs += self.protocol.specs_of(graph, self._controls[id(chosen.configuration)], split)
        return specs

    def frame(self, rule: str = "all") -> pd.DataFrame:
        """Return a row for each graph, entry and split: test metrics in percent, the choice, seconds."""
        return self._frames[rule]

    @cached_property
    def _frames(self) -> dict[str, pd.DataFrame]:
        return {rule: self._frame(rule) for rule in RULES}

    def _frame(self, rule: str) -> pd.DataFrame:
        rows = []
        for graph in self.protocol.graphs:
            for entry in self.protocol.entries:
                for split in range(self.protocol.splits[graph]):
                    chosen = self.chosen(graph, entry, split, rule)
                    if chosen is None:
                        continue
                    rows.append(
                        {
                            **{"graph": graph, "entry": entry.label, "split": split},
                            **{metric: chosen.test(metric) for metric in METRICS},
                            "criterion": sum(SIGNS[metric] * chosen.test(metric) for metric in METRICS),
                            "setting": entry.settings.index(chosen.configuration),
                            "near_constant": chosen.is_near_constant,
                            "seconds": chosen.seconds,
                        }
                    )
        columns = ["graph", "entry", "split", *METRICS, "criterion", "setting", "near_constant", "seconds"]
        return pd.DataFrame(rows, columns=columns)

    @cached_property
    def records(self) -> list[StoredRecord]:
        """The records of the protocol's runs and of the controls, as far as they were made."""
        places = [place for each in self.protocol.rounds() for place in each]
        specs = [*self.protocol.specs(), *(spec for place in places for spec in self.control_specs(*place))]
        found = {spec.key: self.store.get(spec) for spec in specs}
        return [record for record in found.values() if record is not None]

    @cached_property
    def failures(self) -> dict[tuple[str, str], list[str]]:
        """The reasons of runs that failed, by graph and entry."""
        found: dict[tuple[str, str], list[str]] = {}
        for graph in self.protocol.graphs:
            for entry in self.protocol.entries:
                for split in range(self.protocol.splits[graph]):
                    for record in (r for setting in entry.settings for r in self._found(graph, setting, split)):
                        if record is not None and record["error"] is not None:
                            found.setdefault((graph, entry.label), []).append(record["error"])
        return found

    def by_split(self, graph: str, rule: str = "all") -> dict[str, pd.DataFrame]:
        """Return the metrics of a graph's entries, each a table with a row for each split."""
        whole = self.frame(rule)
        whole = whole[whole["graph"] == graph]
        return {
            label: whole[whole["entry"] == label].set_index("split")
            for label in self.labels
            if label in {*whole["entry"]}
        }

    @property
    def labels(self) -> list[str]:
        return [entry.label for entry in self.protocol.entries]

    def effects(self, graph: str, entry: Entry) -> pd.DataFrame:
        """Return test metrics of the chosen setting minus those of its control, a row for each split."""
        rows = {}
        for split in range(self.protocol.splits[graph]):
            chosen = self.chosen(graph, entry, split)
            if chosen is None:
                continue
            setting = self._controls[id(chosen.configuration)]
            records = self._made(graph, setting, split)
            if records is not None:
                control = Chosen(setting, records)
                rows[split] = {metric: chosen.test(metric) - control.test(metric) for metric in METRICS}
        return pd.DataFrame.from_dict(rows, orient="index", columns=list(METRICS))

    def points(self, graph: str, entry: Entry, bias: str) -> list[tuple[float, float]] | None:
        """Return mean accuracy and bias over the splits of every setting of a row, near-constant ones left out.

        None if no setting could be trained.
        """
        if all(self.chosen(graph, entry, split) is None for split in range(self.protocol.splits[graph])):
            return None
        found = []
        for setting in entry.settings:
            per_split = [
                Chosen(setting, records)
                for split in range(self.protocol.splits[graph])
                if (records := self._made(graph, setting, split)) is not None
            ]
            if per_split and 2 * sum(each.is_near_constant for each in per_split) <= len(per_split):
                found.append((fmean(c.test("ACC") for c in per_split), fmean(c.test(bias) for c in per_split)))
        return found

    def hypervolumes(self, graph: str, bias: str) -> dict[str, float]:
        """Return the area that each row's settings dominate, in percent of the box that all rows span.

        The box reaches from the accuracy of the constant (of the worst setting, if there is no constant) and the
        largest bias to the best accuracy and no bias.
        """
        made = {entry.label: self.points(graph, entry, bias) for entry in self.protocol.entries}
        points = {label: found for label, found in made.items() if found is not None}
        pairs = [pair for found in points.values() for pair in found]
        if not pairs:
            return {}
        floor = self._floor(graph)
        reference = floor if floor is not None else min(a for a, _ in pairs), max(b for _, b in pairs)
        whole = (max(a for a, _ in pairs) - reference[0]) * reference[1]
        if whole <= 0:
            return {}
        return {label: 100 * dominated_area(found, reference=reference) / whole for label, found in points.items()}

    def _floor(self, graph: str) -> float | None:
        for entry in self.protocol.entries:
            if entry.method == "constant":
                values = [self.chosen(graph, entry, s) for s in range(self.protocol.splits[graph])]
                found = [each.test("ACC") for each in values if each is not None]
                return fmean(found) if found else None
        return None


def validation_score(chosen: Chosen, rule: str) -> float:
    """Return the sum of a rule's metrics on validation, each with its sign; an undefined one counts as the worst."""
    worst = {metric: 0.0 if sign > 0 else 100.0 for metric, sign in SIGNS.items()}
    scores = []
    for record in chosen.records:
        values = {m: worst[m] if record["validation"][m] is None else record["validation"][m] for m in RULES[rule]}
        scores.append(sum(SIGNS[m] * value for m, value in values.items()))
    return fmean(scores)


def front(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points that no other beats, from the least accurate to the most."""
    return sorted(points[i] for i in non_dominated(list(points)))
