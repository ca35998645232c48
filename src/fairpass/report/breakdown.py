"""What the delivered model says of the people of each group, as counts: by each sensitive attribute, and by all.

Nothing here is about fewer than `min_group` people. A value of an attribute whose people are hidden in part, because
some of its intersections are small, leaves these people out if they are fewer: otherwise subtraction would show them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from fairpass.datasets.grouping import TIMES
from fairpass.files import finite
from fairpass.metrics.group_figures import calibration
from fairpass.report.measures import Predicted, confusions
from fairpass.report.schema import Breakdown, GroupScores

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Attribute:
    """A sensitive attribute: its values, and for each group of the graph the index of its value, negative for none."""

    name: str
    values: list[str]
    of_group: list[int]


def attributes(data: Data, groups: Sequence[str]) -> list[Attribute]:
    """Return the attribute that the groups are of; with several columns their intersection first, then each column."""
    provenance: Mapping[str, Any] = data.get("provenance") or {}
    grouping = (provenance.get("encoding") or {}).get("grouping") or {"columns": []}
    columns = [(each["column"], list(each["names"])) for each in grouping["columns"]]
    title = TIMES.join(name for name, _ in columns)
    if not columns and data.get("sens_column") is not None and data.get("feature_names"):
        title = str(data.feature_names[data.sens_column])
    found = [Attribute(title or "group", list(groups), list(range(len(groups))))]
    if len(columns) < 2:
        return found
    # The product of the values has the name of every group; a group of merged ones is none of them.
    places = list(product(*(range(len(names)) for _, names in columns)))
    named = {TIMES.join(columns[i][1][at] for i, at in enumerate(place)): place for place in places}
    for i, (name, values) in enumerate(columns):
        found.append(Attribute(name, values, [named[group][i] if group in named else -1 for group in groups]))
    return found


def breakdowns(data: Data, predicted: Predicted, groups: Sequence[str], min_group: int) -> list[Breakdown]:
    """Return the counts behind the figures of every attribute; `groups` are those of the graph."""
    nodes = predicted.nodes
    sens = nodes.task.sens[nodes.index].numpy()
    hidden = nodes.group >= nodes.known  # of a small or unknown group
    medians = np.median(predicted.columns, axis=0)
    made: list[Breakdown] = []
    for attribute in attributes(data, groups):
        value = np.append(attribute.of_group, -1)[sens]
        parts = [(value == place) & hidden for place in range(len(attribute.values))]
        partial = [place for place, part in enumerate(parts) if 0 < part.sum() < min_group]
        for place in partial:
            value[parts[place]] = -1
        sizes = np.bincount(value[value >= 0], minlength=len(attribute.values))
        told = [place for place, size in enumerate(sizes) if size >= min_group]
        codes = np.full(len(attribute.values) + 1, -1)
        codes[told] = range(len(told))
        value = codes[value]
        names = [attribute.values[place] for place in told]
        counts = confusions(nodes.y, predicted.labels, value, names, len(nodes.labels))
        scored = [_scores(predicted, value == place, medians, min_group) for place in range(len(names))]
        made.append(
            {
                "attribute": attribute.name,
                "groups": [{**count, "scores": each} for count, each in zip(counts, scored, strict=True)],
                "small": [attribute.values[place] for place in range(len(sizes)) if place not in told],
                "partial": [attribute.values[place] for place in partial if place in told],
                "unknown": nodes.unknown,
                "not_told": int((value < 0).sum()) + nodes.left_out,  # unknown, small or left out
            }
        )
    return made


def _scores(
    predicted: Predicted, inside: NDArray[np.bool_], medians: NDArray[Any], min_group: int
) -> list[GroupScores]:
    """Return for each label how many score above the median of all people, and how well scores are calibrated."""
    made: list[GroupScores] = []
    for place, label in enumerate(predicted.nodes.labels):
        values = predicted.columns[inside, place].clip(0, 1)  # rounding may leave the range
        found = calibration(values, predicted.nodes.y[inside] == place)
        made.append(
            {
                "label": label,
                "above_median": int((values > medians[place]).sum()),
                "mean_score": found.mean_score,
                "share": found.share,
                "in_the_large": finite(found.in_the_large),
                "bins": [finite(each._asdict()) for each in found.bins if each.people >= min_group],
            }
        )
    return made
