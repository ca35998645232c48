"""A split that is written in a column of the table, and what every split must have."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from fairpass.datasets.splits import Split
from fairpass.datasets.values import MISSING, text_of
from fairpass.errors import DataError

# What a column may call the parts of a split -> their names here.
PARTS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


def split_by_column(column: "pd.Series[Any]", y: Tensor) -> Split:
    """Return the split that a column names ("train", "val", "test"); any other node is in no part."""
    part_of = {value: PARTS.get(text_of(value).strip().lower()) for value in column.dropna().unique().tolist()}
    parts = column.astype(object).map(part_of)
    labelled = y != MISSING
    masks = {part: labelled & torch.tensor((parts == part).to_numpy(dtype=bool)) for part in PARTS.values()}
    return Split(**masks)


def check_split(split: Split, codes: Tensor, what: str, names: Sequence[str]) -> None:
    """Refuse a split with a part that has no node of some label or group."""
    for part in fields(split):
        mask: Tensor = getattr(split, part.name)
        present = torch.bincount(codes[mask & (codes != MISSING)], minlength=len(names))
        if not present.all():
            absent = names[int(present.argmin())]
            how = " (small_groups='other')" if what == "group" else ""
            raise DataError(
                f"none of the {int(mask.sum())} labelled nodes in the {part.name} split "
                f"is of {what} {absent!r}: split otherwise, or merge rare {what}s{how}"
            )


def check_cells(split: Split, y: Tensor, sens: Tensor, label_names: Sequence[str], group_names: Sequence[str]) -> None:
    """Refuse a split in which equal opportunity cannot be measured: a group without a node of a label.

    Of two labels only the second counts, the positive one. Training nodes are not measured on.
    """
    labels = range(len(label_names)) if len(label_names) > 2 else [1]
    for part in ("val", "test"):
        mask: Tensor = getattr(split, part)
        for label in labels:
            for group, name in enumerate(group_names):
                if not (mask & (y == label) & (sens == group)).any():
                    everywhere = int(((y == label) & (sens == group)).sum())
                    raise DataError(
                        f"group {name!r} has no node of label {label_names[label]!r} in the {part} split "
                        f"({everywhere} in all): merge rare labels or groups, or split otherwise"
                    )
