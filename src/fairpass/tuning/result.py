"""The result of a search, as a file and as a picture."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpass import __version__
from fairpass.documents import STRICT, Count, Values, read_document, validate, write_document
from fairpass.files import atomic_path
from fairpass.tuning.front import Point, choose, hypervolume, pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND = "fairpass tuning"
# Okabe and Ito's colours, which the colour-blind can tell apart; the shapes differ, too.
_GREY, _BLUE, _ORANGE, _GREEN = "#999999", "#0072B2", "#D55E00", "#009E73"


@dataclass(frozen=True)
class Tuned:
    """The configurations that a search has tried."""

    __pydantic_config__ = STRICT

    method: str
    points: tuple[Point, ...]  # those that were trained to the end
    varied: tuple[str, ...]  # names of the settings in which they differ
    study: str
    settings: Mapping[str, Any]  # what was searched and how, as plain values
    graph: str  # its fingerprint
    provenance: Mapping[str, Any] | None = None
    pruned: Count = 0  # configurations that were stopped early
    failed: Count = 0  # configurations that could not be trained
    version: str = __version__

    @cached_property
    def front(self) -> list[Point]:
        """The points that no other point beats on validation, from the most useful to the fairest."""
        return pareto_front(self.points)

    @cached_property
    def best(self) -> Point:
        """The point with the largest `AUC + F1 + ACC - DP - EO` on validation."""
        return choose(self.points)

    def values(self, point: Point) -> dict[str, Any]:
        """Return the settings of a point in which it may differ from others."""
        return {name: {**point.training, **point.parameters}[name] for name in self.varied}

    def to_dict(self) -> dict[str, Any]:
        derived = {"kind": _KIND, "best": self.best.to_dict(), "hypervolume": hypervolume(self.points)}
        lists = {name: [point.to_dict() for point in getattr(self, name)] for name in ("front", "points")}
        kept = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**derived, **kept, **lists, "varied": list(self.varied)}

    @classmethod
    def from_dict(cls, values: Values) -> "Tuned":
        """Rebuild a result from `to_dict`; raise `ValueError` if it is something else."""
        found = validate({each.name: values[each.name] for each in fields(cls) if each.name in values}, cls)
        if not found.points or any({*found.varied} - {*point.training, *point.parameters} for point in found.points):
            raise ValueError("it must have points, each with all settings that were varied")
        return found

    def save(self, path: str | os.PathLike[str]) -> Path:
        return write_document(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tuned":
        return read_document(path, _KIND, cls.from_dict)


def draw_front(tuned: Tuned, path: str | os.PathLike[str], *, title: str = "") -> Path:
    """Plot utility against unfairness, with the front, to a file; its extension determines the format."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # The salt, and no date, so that the same result is the same file.
    kind = Path(path).suffix.removeprefix(".")
    with rc_context({"font.size": 9, "svg.hashsalt": "fairpass"}):
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        _draw(figure.add_subplot(title=title), tuned)
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return Path(path)


def _draw(axes: "Axes", tuned: Tuned) -> None:
    others = [point for point in tuned.points if point not in tuned.front]
    tested = [Point(p.method, validation=p.test) for p in tuned.front if p.test is not None]
    # Between a point and the next fairer one nothing better was found, so the front has steps and no slopes.
    axes.plot(*_percents(tuned.front), color=_BLUE, drawstyle="steps-pre", linewidth=1)
    for points, label, color, marker, size in (
        ([p for p in others if not p.near_constant], "configuration", _GREY, "o", 18),
        ([p for p in others if p.near_constant], "near constant", _GREY, "x", 22),
        (tuned.front, "front on validation", _BLUE, "o", 28),
        (tested, "the same on the test nodes", _GREEN, "^", 26),
    ):
        if points:
            axes.scatter(*_percents(points), label=label, zorder=3, color=color, marker=marker, s=size)
    best = _percents([tuned.best])
    axes.scatter(*best, label="best by the sum", zorder=3, color=_ORANGE, marker="*", s=190, edgecolor="white")
    axes.set_xlabel("unfairness: mean of ΔDP and ΔEO, in percentage points")
    axes.set_ylabel("utility: mean of AUC, F1 and ACC, in %")
    axes.set_xlim(left=0)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.figure.legend(frameon=False, loc="outside lower center", ncols=3)


def _percents(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [100 * point.unfairness for point in points], [100 * point.utility for point in points]
