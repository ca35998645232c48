"""Training, validation and test nodes."""

import random
from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpass.datasets.column_encoding import text_of
from fairpass.datasets.graph import MISSING, SPLITS, Bools, Column, Graph, Ints, array_of, listed
from fairpass.datasets.options import check_fractions
from fairpass.datasets.registry import PUBLISHED_SEED, SplitRule
from fairpass.errors import DataError

# What a column may call the parts of a split -> their names here.
PARTS: dict[str, str] = {**{part: part for part in SPLITS}, "valid": "val", "validation": "val"}

_Ids = tuple[list[int], list[int], list[int]]


class Split(NamedTuple):
    """Disjoint boolean masks over the nodes."""

    train: Bools
    val: Bools
    test: Bools
    safety: Bools | None = None  # nodes that only check whether a limit holds

    @classmethod
    def from_ids(cls, num_nodes: int, parts: _Ids) -> "Split":
        masks = np.zeros((3, num_nodes), dtype=bool)
        for mask, part in zip(masks, parts, strict=True):
            mask[part] = True
        return cls(*masks)

    def masks(self) -> dict[str, Any]:
        """Return the masks by their names in a graph."""
        return {f"{part}_mask": mask for part, mask in self._asdict().items()}


def benchmark_split(
    y: ArrayLike, sens: ArrayLike, rule: SplitRule, labels_for_training: int, seed: int = PUBLISHED_SEED
) -> Split:
    """Split the nodes whose label and group are both known, by the rule of a benchmark graph.

    "balanced" is the published split: equally many training labels of both classes (see `label_balanced_ids`).
    "stratified" shuffles the ids of each label: the first half is for training, the third quarter for validation, the
    last for testing. If the first halves have more than `labels_for_training` nodes, each label contributes its
    proportional share (rounded by largest remainders), and the remaining nodes are added to the test nodes.
    """
    y = np.where(np.asarray(sens) >= 0, y, MISSING)
    if rule == "balanced":
        return Split.from_ids(y.size, label_balanced_ids(y, labels_for_training, seed))
    halves = np.bincount(y[y >= 0]) // 2
    quotas = apportion(min(labels_for_training, int(halves.sum())), halves)
    split = Split.from_ids(y.size, _ids_by_label(y, quotas.tolist(), seed))
    return split._replace(test=(y >= 0) & ~split.train & ~split.val)


def label_balanced_ids(y: ArrayLike, labels_for_training: int, seed: int = PUBLISHED_SEED) -> _Ids:
    """Return the training, validation and test ids of the benchmarks' published split, in its order.

    Training takes the first `min(half, labels_for_training / 2)` ids of each label, validation the third quarter, test
    the last.
    """
    return _ids_by_label(np.asarray(y), [labels_for_training // 2] * 2, seed)


def _ids_by_label(y: Ints, quotas: Sequence[int], seed: int) -> _Ids:
    """Shuffle and split the ids of label 0, 1, ...; label k has at most `quotas[k]` training nodes."""
    generator = random.Random(seed)  # as in the published code
    parts: _Ids = ([], [], [])
    for label, quota in enumerate(quotas):
        ids = np.flatnonzero(y == label).tolist()
        generator.shuffle(ids)
        half, three_quarters = int(0.5 * len(ids)), int(0.75 * len(ids))
        chosen = ids[: min(half, quota)], ids[half:three_quarters], ids[three_quarters:]
        for part, more in zip(parts, chosen, strict=True):
            part.extend(more)
    return parts


def apportion(total: int, weights: NDArray[Any]) -> Ints:
    """Return whole numbers that sum to `total`, proportional to `weights` (by largest remainders)."""
    exact = total * (weights / (weights.sum() or 1))
    parts: Ints = np.floor(exact).astype(np.int64)
    parts[np.argsort(parts - exact, kind="stable")[: total - parts.sum()]] += 1
    return parts


def stratified_split(
    y: ArrayLike, sens: ArrayLike, *, fractions: Sequence[float] = (0.5, 0.25, 0.25), seed: int = 0
) -> Split:
    """Split the labelled nodes (`y >= 0`) at random so that every pair of label and group has its share in each part.

    Nodes of unknown group (`sens < 0`) are a stratum of their own. A stratum too small for three parts goes to
    training first, then test, then validation. Safety nodes, the share of a fourth fraction, are drawn first: a simple
    random sample of each group, as the tests of limits assume.
    """
    check_fractions(fractions)
    y, sens = np.asarray(y), np.asarray(sens)
    generator = np.random.default_rng(seed)
    safety = None
    if len(fractions) == 4:
        safety = np.zeros(y.size, dtype=bool)
        for group in np.unique(sens[y >= 0].clip(min=-1)):
            ids = generator.permutation(np.flatnonzero((y >= 0) & (sens.clip(min=-1) == group)))
            safety[ids[: round(fractions[3] * len(ids))]] = True
        y, fractions = np.where(safety, MISSING, y), [part / sum(fractions[:3]) for part in fractions[:3]]
    masks = np.zeros((3, y.size), dtype=bool)
    stratum_of = y * (sens.max() + 2) + sens.clip(min=-1) + 1
    for stratum in np.unique(stratum_of[y >= 0]):
        ids = generator.permutation(np.flatnonzero(stratum_of == stratum))
        n = len(ids)
        test = min(max(round(fractions[2] * n), 1), n - 1)
        val = min(max(round(fractions[1] * n), 1), n - 1 - test)
        for mask, chosen in zip(masks, np.split(ids, np.cumsum([n - test - val, val])), strict=True):
            mask[chosen] = True
    return Split(masks[0], masks[1], masks[2], safety)


def split_by_column(column: Column, y: Ints) -> Split:
    """Return the split that a column names ("train", "val", "test", "safety"); a node without a value is in none."""
    part_of = {value: PARTS.get(text_of(value).strip().lower()) for value in column.dropna().unique().tolist()}
    if unknown := [value for value, part in part_of.items() if part is None]:
        expected = f"{', '.join(PARTS)}, or nothing"
        raise DataError(f"column {column.name!r} must say for each node one of {expected} (got {listed(unknown)})")
    parts = column.astype(object).map(part_of)
    masks = {part: (y != MISSING) & (parts == part).to_numpy(dtype=bool) for part in PARTS.values()}
    return Split(**masks)._replace(safety=masks["safety"] if masks["safety"].any() else None)


def check_split(split: Split, codes: Ints, what: Literal["label", "group"], names: Sequence[str]) -> None:
    """Refuse a split whose training, validation or test part has no node of some label or group."""
    for part, mask in zip(Split._fields, split[:3], strict=False):
        present = np.bincount(codes[mask & (codes != MISSING)], minlength=len(names))
        if not present.all():
            how = " (small_groups='other')" if what == "group" else ""
            raise DataError(
                f"none of the {int(mask.sum())} labelled nodes in the {part} split "
                f"has {what} {names[int(present.argmin())]!r}: use another split, or merge rare {what}s{how}"
            )


def check_cells(graph: Graph) -> None:
    """Refuse a graph on which equal opportunity cannot be measured: a group without a node of a (positive) label."""
    y, sens = array_of(graph, "y"), array_of(graph, "sens")
    labels = range(len(graph.label_names)) if len(graph.label_names) > 2 else [1]
    for part, label, (group, name) in product(("val", "test"), labels, enumerate(graph.group_names)):
        cell = (y == label) & (sens == group)
        if not (array_of(graph, f"{part}_mask") & cell).any():
            raise DataError(
                f"group {name!r} has no node of label {graph.label_names[label]!r} in the {part} split "
                f"({int(cell.sum())} in all): merge rare labels or groups, or use another split"
            )
