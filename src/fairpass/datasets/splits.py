"""Training, validation and test nodes."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fairpass.errors import DataError

PUBLISHED_SEED = 20

SplitRule = Literal["balanced", "stratified"]


@dataclass(frozen=True)
class Split:
    """Three disjoint boolean masks over the nodes."""

    train: Tensor
    val: Tensor
    test: Tensor


def _masks(num_nodes: int, parts: tuple[list[int], list[int], list[int]]) -> Split:
    masks = []
    for part in parts:
        mask = torch.zeros(num_nodes, dtype=torch.bool)
        mask[torch.tensor(part, dtype=torch.long)] = True
        masks.append(mask)
    return Split(*masks)


def label_balanced_ids(
    y: Tensor, labels_for_training: int, seed: int = PUBLISHED_SEED
) -> tuple[list[int], list[int], list[int]]:
    """Return the training, validation and test ids of the benchmarks' published split, in its order.

    The ids of each label are shuffled by Python's `random` (label after label, as the published code does);
    training takes the first `min(half, labels_for_training / 2)` of each, validation the third quarter,
    test the last.
    """
    return _ids_by_label(y, [labels_for_training // 2] * 2, seed)


def label_balanced_split(y: Tensor, labels_for_training: int, seed: int = PUBLISHED_SEED) -> Split:
    """Split as the published benchmarks do: equally many training labels of both classes (see `label_balanced_ids`)."""
    return _masks(y.numel(), label_balanced_ids(y, labels_for_training, seed))


def label_stratified_split(y: Tensor, labels_for_training: int, seed: int = PUBLISHED_SEED) -> Split:
    """Split the labelled nodes (`y >= 0`) at random, with every label in its natural share in each part.

    The ids of each label are shuffled: the first half is for training, the third quarter for validation, the
    last for testing. Where the first halves hold more than `labels_for_training` nodes, each label gives its
    proportional share of that many (rounded by largest remainders), and the others are for testing, too: more test
    nodes tell more.
    """
    halves = y[y >= 0].bincount().numpy() // 2
    wanted = min(labels_for_training, int(halves.sum()))
    shares = wanted * halves / max(int(halves.sum()), 1)
    quotas = np.floor(shares).astype(int)
    largest_remainders = np.argsort(quotas - shares, kind="stable")[: wanted - int(quotas.sum())]
    quotas[largest_remainders] += 1
    split = _masks(y.numel(), _ids_by_label(y, quotas.tolist(), seed))
    return replace(split, test=(y >= 0) & ~split.train & ~split.val)


def benchmark_split(y: Tensor, sens: Tensor, rule: SplitRule, labels_for_training: int, seed: int) -> Split:
    """Split the nodes whose label and group are both known, by the rule of a benchmark graph."""
    known = torch.where(sens >= 0, y, -1)
    split = label_balanced_split if rule == "balanced" else label_stratified_split
    return split(known, labels_for_training, seed)


def _ids_by_label(y: Tensor, quotas: Sequence[int], seed: int) -> tuple[list[int], list[int], list[int]]:
    """Shuffle and split the ids of label 0, 1, ...; label k has at most `quotas[k]` training nodes."""
    generator = random.Random(seed)
    train: list[int] = []
    val: list[int] = []
    test: list[int] = []
    for label, quota in enumerate(quotas):
        ids = torch.nonzero(y == label).flatten().tolist()
        generator.shuffle(ids)
        half, three_quarters = int(0.5 * len(ids)), int(0.75 * len(ids))
        train += ids[: min(half, quota)]
        val += ids[half:three_quarters]
        test += ids[three_quarters:]
    return train, val, test


def stratified_split(
    y: Tensor, sens: Tensor, *, fractions: tuple[float, float, float] = (0.5, 0.25, 0.25), seed: int = 0
) -> Split:
    """Split the labelled nodes (`y >= 0`) at random so that every pair of label and group has its share in each part.

    Nodes of unknown group (`sens < 0`) are a stratum of their own. A stratum too small for three parts goes to
    training first, then test, then validation.
    """
    if len(fractions) != 3 or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-6:
        raise DataError(f"'fractions' must be three positive numbers that sum to 1 (got {fractions})")
    if seed < 0:
        raise DataError(f"'seed' must not be negative (got {seed})")
    generator = np.random.default_rng(seed)
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    stratum_of = (y * (sens.max() + 2) + sens.clamp(min=-1) + 1).numpy()
    for stratum in np.unique(stratum_of[(y >= 0).numpy()]):
        ids = generator.permutation(np.flatnonzero(stratum_of == stratum))
        n = len(ids)
        test = min(max(round(fractions[2] * n), 1), n - 1)
        val = min(max(round(fractions[1] * n), 1), n - 1 - test)
        bounds = np.cumsum([n - test - val, val])
        for part, chosen in zip(parts, np.split(ids, bounds), strict=True):
            part.extend(chosen.tolist())
    return _masks(y.numel(), parts)
