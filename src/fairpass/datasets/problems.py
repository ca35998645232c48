"""What looks wrong in a table of nodes: gaps, rare labels, leaks, proxies, repeated columns and rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fairpass.datasets.column_names import ID_WORDS, words_of
from fairpass.datasets.graph import Column, listed
from fairpass.datasets.predictability import Predictability
from fairpass.datasets.table_files import Table

# With fewer nodes, a label may be absent from a split or a group.
_RARE = 20
# The AUC from which on a single column, or several together, are said to tell the label; and one the group.
_LEAKS_LABEL, _LEAK_TOGETHER, _LEAKS_GROUP = 0.98, 0.99, 0.95
_TELL_GROUP_TOGETHER = 0.9
_CORRELATED = 0.999
_REPEATED_ROWS = 0.01
# Labelled nodes of a group that say something about it, and rows of a table in which a group may have more.
_COMPARABLE, _LARGE = 100, 1_000
_SHOWN = 10  # columns in one sentence
_MANY = 100  # in fewer rows, consecutive numbers may be chance


@dataclass(frozen=True)
class Problem:
    """Something to fix or to know before a model is trained; `stops` if no graph can be made before it is fixed."""

    sentence: str
    stops: bool = False


def label_problems(label: Column) -> Iterator[Problem]:
    if missing := int(label.isna().sum()):
        yield Problem(f"nodes without a label ({label.name!r}): {missing:,}; they stay in the graph, unlabelled")
    if label.nunique() < 2:
        got = listed(label.dropna().unique().tolist()) or "none"
        yield Problem(f"label {label.name!r} must have at least two values (got {got})", stops=True)
    for value, count in label.value_counts().items():
        if count < _RARE:
            yield Problem(f"label {value!r} is rare ({count} nodes): measurements for it are uncertain")


def small_groups(group: Column, labelled: Column) -> Iterator[Problem]:
    """Yield the groups that are small although the table is not; `labelled` says which rows have a label."""
    sizes = group[labelled].value_counts()
    if len(group) < _LARGE or (sizes >= _COMPARABLE).sum() < 2:
        return
    for name, size in sizes[sizes < _COMPARABLE].items():
        yield Problem(
            f"group {str(name)!r} of {group.name!r} has {size} labelled nodes, too few to show a small difference: "
            f"with min_group_size={_COMPARABLE} and small_groups='unknown' such groups are not compared"
        )


def leaks(tree: Predictability, features: Sequence[str], label: Column) -> Iterator[Problem]:
    """Yield which columns tell the label almost surely, alone or together."""
    alone = {name: auc for name in features if (auc := tree.auc([name], label)) >= _LEAKS_LABEL}
    for name, auc in alone.items():
        yield Problem(
            f"column {name!r} alone reveals the label {label.name!r} (AUC {auc:.2f}): is it known before the "
            f"decision? If not, leave it out ('drop')"
        )
    others = [name for name in features if name not in alone]
    if len(others) > 1 and (auc := tree.auc(others, label)) >= _LEAK_TOGETHER:
        few = tree.few_that_tell(others, label, _LEAK_TOGETHER)
        which = f"columns {listed(few)}" if len(few) < len(others) else "all columns"
        yield Problem(
            f"{which} together reveal the label {label.name!r} (AUC {auc:.3f}): are they all known before the "
            f"decision? If not, leave some out ('drop')"
        )


def proxies(tree: Predictability, features: Sequence[str], group: Column) -> dict[str, str]:
    """Return the columns that are almost the same as the sensitive attribute, each with the reason."""
    aucs = {name: tree.auc([name], group) for name in features}
    told = {name: auc for name, auc in aucs.items() if auc >= _LEAKS_GROUP}
    return {name: f"it is almost the same as {group.name!r} (AUC {auc:.2f}): a proxy" for name, auc in told.items()}


def told_together(tree: Predictability, features: Sequence[str], group: Column) -> Iterator[Problem]:
    if len(features) > 1 and (auc := tree.auc(features, group)) >= _TELL_GROUP_TOGETHER:
        yield Problem(
            f"the features together tell {group.name!r} (AUC {auc:.2f}): a model knows the group without being told"
        )


def can_be_told(group: Column) -> bool:
    """Return whether a sensitive attribute has so few values that it makes sense to predict them."""
    return 2 <= group.nunique() <= _RARE


def repeated_columns(tree: Predictability, nodes: Table, features: Sequence[str]) -> Iterator[Problem]:
    """Yield pairs of columns that say the same: up to the names of values, or up to scale and offset."""
    seen: dict[bytes, str] = {}
    same: set[str] = set()
    for name in features:
        codes = pd.factorize(nodes[name].iloc[tree.rows])[0]
        if 1 < codes.max() + 1 <= len(codes) / 2:  # columns without repeated values are all alike in this sense
            first = seen.setdefault(codes.tobytes(), name)
            if first != name:
                same.add(name)
                yield Problem(f"columns {first!r} and {name!r} say the same: one of them is enough ('drop')")
    numbers = [name for name in features if name not in same and tree.x[name].nunique() > 2]
    spread = [name for name in numbers if tree.x[name].std() > 0]
    related = np.abs(np.corrcoef(tree.x[spread].to_numpy(), rowvar=False)) if len(spread) > 1 else np.zeros((1, 1))
    for i, j in zip(*np.nonzero(np.triu(related, 1) > _CORRELATED), strict=True):
        pair = f"{spread[i]!r} and {spread[j]!r}"
        yield Problem(f"columns {pair} are almost the same (correlation {related[i, j]:.4f}): one is enough ('drop')")


def repeated_rows(nodes: Table, features: Sequence[str]) -> Iterator[Problem]:
    """Yield how many rows are like another in every feature, if they are more than chance would have."""
    if len(features) < 2:
        return
    codes = pd.DataFrame({name: pd.factorize(nodes[name])[0] for name in features})
    possible = float(np.prod([codes[name].max() + 2.0 for name in features]))
    share = float(codes.duplicated(keep=False).mean())
    if share >= _REPEATED_ROWS and possible > len(codes) ** 2:
        yield Problem(
            f"{100 * share:.1f} % of the rows are like another row in every feature: the same people twice, in "
            f"training and test?"
        )


def counting_columns(nodes: Table, features: Sequence[str]) -> dict[str, str]:
    """Return the columns that number the rows and are no features, each with the reason."""
    found = {}
    for name in features:
        column = nodes[name]
        if not pd.api.types.is_integer_dtype(column) or column.nunique() < len(column):
            continue
        consecutive = len(column) >= _MANY and int(column.max()) - int(column.min()) + 1 == len(column)
        if consecutive or not set(ID_WORDS).isdisjoint(words_of(name)):
            found[name] = "has a different whole number in every row, like an id"
    return found


def gaps(columns: Mapping[str, int], rows: int, sensitive: Sequence[str], features: Sequence[str]) -> Iterator[Problem]:
    """Yield the share of missing values by column; `columns` has their numbers."""
    share = {name: f"{name!r} ({100 * missing / rows:.1f} %)" for name, missing in columns.items() if missing}
    for name in sensitive:
        if name in share:
            yield Problem(f"nodes without a value in {share[name]}: their group is unknown")
    if filled := [share[name] for name in features if name in share]:
        shown = ", ".join(filled[:_SHOWN]) + (f" and {len(filled) - _SHOWN} more" if len(filled) > _SHOWN else "")
        these = "it is" if len(filled) == 1 else "they are"
        yield Problem(f"nodes without a value in {shown}: {these} filled in, and marked")
