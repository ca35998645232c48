"""Training, validation and test nodes."""

import random
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairpass.errors import DataError

PUBLISHED_SEED = 20


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
    generator = random.Random(seed)
    train: list[int] = []
    val: list[int] = []
    test: list[int] = []
    for label in (0, 1):
        ids = torch.nonzero(y == label).flatten().tolist()
        generator.shuffle(ids)
        half, three_quarters = int(0.5 * len(ids)), int(0.75 * len(ids))
        train += ids[: min(half, labels_for_training // 2)]
        val += ids[half:three_quarters]
        test += ids[three_quarters:]
    return train, val, test


def label_balanced_split(y: Tensor, labels_for_training: int, seed: int = PUBLISHED_SEED) -> Split:
    """Split as the benchmarks do: equally many training labels of both classes (see `label_balanced_ids`)."""
    return _masks(y.numel(), label_balanced_ids(y, labels_for_training, seed))


def stratified_split(
    y: Tensor,
    sens: Tensor,
    *,
    fractions: tuple[float, float, float] = (0.5, 0.25, 0.25),
    seed: int = 0,
) -> Split:
    """Split the labelled nodes (`y >= 0`) at random so that every pair of label and group has its share in each part.

    Nodes of unknown group (`sens < 0`) are a stratum of their own. A stratum too small for three parts goes to
    training first, then test, then validation.
    """
    if len(fractions) != 3 or min(fractions) <= 0 or abs(sum(fractions) - 1) > 1e-6:
        raise DataError(f"'fractions' must be three positive numbers that sum to 1 (got {fractions})")
    generator = np.random.default_rng(seed)
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    strata = torch.stack([y, sens.clamp(min=-1)], dim=1)
    for stratum in torch.unique(strata[y >= 0], dim=0):
        ids = generator.permutation(torch.nonzero((strata == stratum).all(dim=1)).flatten().numpy())
        n = len(ids)
        test = max(round(fractions[2] * n), int(n >= 2))
        val = max(round(fractions[1] * n), int(n >= 3))
        train = n - test - val
        parts[0].extend(ids[:train].tolist())
        parts[1].extend(ids[train : train + val].tolist())
        parts[2].extend(ids[train + val :].tolist())
    return _masks(y.numel(), parts)
