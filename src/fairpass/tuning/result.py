"""What a search found, as a record that can be stored."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.tuning.choice import choose
from fairpass.tuning.front import Point, hypervolume, pareto_front

_KIND = "fairpass tuning"


@dataclass(frozen=True)
class Tuned:
    """The configurations that a search has tried.

    Attributes:
        method: name of the method.
        points: one for each configuration that was trained to the end.
        varied: names of what differs among them.
        study: name of the Optuna study.
        settings: what was searched and how, as plain values.
        graph: fingerprint of the graph.
        provenance: where the graph is from.
        pruned: how many were given up early.
        failed: how many could not be trained.
        version: of the library.
    """

    method: str
    points: tuple[Point, ...]
    varied: tuple[str, ...]
    study: str
    settings: Mapping[str, Any]
    graph: str
    provenance: Mapping[str, Any] | None = None
    pruned: int = 0
    failed: int = 0
    version: str = __version__

    @cached_property
    def front(self) -> list[Point]:
        """Return the points that no other one beats on validation, from the most useful to the fairest."""
        return pareto_front(self.points)

    @cached_property
    def best(self) -> Point:
        """Return the point with the largest `AUC + F1 + ACC - DP - EO` on validation."""
        return choose(self.points)

    def values(self, point: Point) -> dict[str, Any]:
        """Return what sets a point apart from the others."""
        all_values = {**point.training, **point.parameters}
        return {name: all_values[name] for name in self.varied}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; `from_dict` is the inverse."""
        return {
            "kind": _KIND,
            "version": self.version,
            "method": self.method,
            "best": self.best.to_dict(),
            "front": [point.to_dict() for point in self.front],
            "hypervolume": hypervolume(self.points),
            "points": [point.to_dict() for point in self.points],
            "varied": list(self.varied),
            "study": self.study,
            "settings": self.settings,
            "graph": self.graph,
            "provenance": self.provenance,
            "pruned": self.pruned,
            "failed": self.failed,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Tuned":
        """Rebuild a record from `to_dict`."""
        derived = {"kind", "best", "front", "hypervolume"}
        kept = {name: value for name, value in values.items() if name not in derived}
        kept["points"] = tuple(Point.from_dict(point) for point in values["points"])
        return cls(**{**kept, "varied": tuple(values["varied"])})

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the record to a JSON file."""
        return write_text(path, json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tuned":
        """Read what `save` wrote, or raise `DataError`."""
        try:
            stored = json.loads(Path(path).read_text(encoding="utf-8"))
            if stored["kind"] != _KIND:
                raise ValueError(f"it is a {stored['kind']}")
            return cls.from_dict(stored)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"'{path}' must be a {_KIND} (damaged or not one: {error})") from None
