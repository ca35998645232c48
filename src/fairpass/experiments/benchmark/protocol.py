"""The protocol: which methods with which settings, on which graphs, over how many splits.

Every method has the same budget of settings, among which validation chooses for each split. The numbers are in
`benchmark.toml`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairpass.datasets.registry import graph_spec
from fairpass.datasets.registry import names as graph_names
from fairpass.errors import DataError
from fairpass.experiments.texts import read_toml
from fairpass.methods import method
from fairpass.methods.registry import OWN
from fairpass.parameters import MOST_SEEDS, check_count
from fairpass.runs import Configuration, RunSpec

_TOML = read_toml("benchmark.toml")

BUDGET: int = _TOML["budget"]
RECIPES: Mapping[str, Mapping[str, Any]] = _TOML["recipes"]
COMMON: Mapping[str, Any] = _TOML["common"]
SPLITS: int = _TOML["splits"]
LARGE: int = _TOML["large"]
GRAPHS: tuple[str, ...] = tuple(_TOML["graphs"])


@dataclass(frozen=True)
class Entry:
    """A row of the benchmark: a method and the settings among which validation chooses, for each split."""

    label: str
    settings: tuple[Configuration, ...]

    @property
    def method(self) -> str:
        return self.settings[0].method

    @property
    def is_fair(self) -> bool:
        return bool(method(self.method).switched_off)


def _entry(label: str, description: Mapping[str, Any]) -> Entry:
    name = description.get("method", label)
    found, fixed = method(name), description.get("fixed", {})
    settings = []
    for values in description["settings"]:
        changes = {**fixed, **values}
        recipe = {**RECIPES[changes.pop("recipe", "usual")], **description.get("training", {})}
        if not found.learns_by_epochs:
            recipe = {}
        # TOML has no None.
        parameters = {k: None if v == "none" else v for k, v in changes.items() if k in found.declared}
        training = {k: v for k, v in changes.items() if k not in found.declared}
        # A recipe may also set parameters of the network, such as dropout, for the methods that have them.
        network = {k: recipe.pop(k) for k in [*recipe] if k not in _TRAINING}
        parameters = {**{k: v for k, v in network.items() if k in found.declared}, **parameters}
        settings.append(Configuration(name, parameters, {**COMMON, **recipe, **training}, "standard"))
    return Entry(label, tuple(settings))


_TRAINING = ("epochs", "patience", "learning_rate", "weight_decay")


def entries(labels: Iterable[str] | None = None) -> tuple[Entry, ...]:
    """Return the rows of the benchmark, by default all.

    A label is one of `benchmark.toml`, or the name of any other method, which then has its defaults as only setting.
    """
    described = _TOML["entries"]
    wanted = (
        [*described, *(name for name in OWN if name not in _covered())] if labels is None else [*dict.fromkeys(labels)]
    )
    return tuple(
        _entry(label, described[label])
        if label in described
        else Entry(label, (Configuration(method(label, "methods").name, {}, COMMON, "standard"),))
        for label in wanted
    )


def _covered() -> set[str]:
    return {about.get("method", label) for label, about in _TOML["entries"].items()}


@dataclass(frozen=True)
class Protocol:
    """Graphs, rows, and how many splits and seeds each has."""

    graphs: Sequence[str]
    entries: Sequence[Entry]
    splits: Mapping[str, int]  # by graph
    seeds: int = 1

    @classmethod
    def of(
        cls,
        graphs: Iterable[str] | None = None,
        methods: Iterable[str] | None = None,
        *,
        splits: int = SPLITS,
        seeds: int = 1,
    ) -> "Protocol":
        """Return the default protocol, or a part of it; a small graph has twice as many splits as a large one."""
        for name, value, least in (("splits", splits, 0), ("seeds", seeds, 1)):
            check_count(name, value, least, MOST_SEEDS)
        chosen = list(dict.fromkeys(GRAPHS if graphs is None else graphs))
        for name in chosen:
            if name not in graph_names():
                raise DataError(f"'graphs' must be among {', '.join(graph_names())} (got {name!r})")
        numbers = {name: splits * (1 if is_large(name) else 2) for name in chosen}
        return cls(chosen, entries(methods), numbers, seeds)

    def specs_of(self, graph: str, configuration: Configuration, split: int) -> list[RunSpec]:
        return [RunSpec(graph, configuration, seed, split=split) for seed in range(self.seeds)]

    def rounds(self) -> list[list[tuple[str, int]]]:
        """Return all pairs of graph and split in rounds, so that what an early end leaves is balanced.

        If small graphs have twice as many splits as large ones, each round has two of theirs.
        """
        number = min(self.splits.values(), default=0)
        return [
            [
                (graph, split)
                for graph, count in self.splits.items()
                for split in range(count * i // number, count * (i + 1) // number)
            ]
            for i in range(number)
        ]

    def settings_on(self, graph: str, split: int) -> list[RunSpec]:
        each = [setting for entry in self.entries for setting in entry.settings]
        return [spec for setting in each for spec in self.specs_of(graph, setting, split)]

    def specs(self) -> list[RunSpec]:
        """Return all runs apart from the controls, which depend on the choice of settings."""
        return [spec for places in self.rounds() for place in places for spec in self.settings_on(*place)]


def is_large(graph: str) -> bool:
    nodes = graph_spec(graph).statistics.nodes
    return nodes is None or nodes >= LARGE
