"""What looks wrong in a user's tables, each as one sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairpass.datasets.reading import Table
from fairpass.datasets.values import as_text, first_missing, listed

# Fewer nodes with a label than this, and it may be absent from a split or a group.
_RARE = 20
# From which AUC on one column alone is said to give a label, or a group, away.
_LEAKS_LABEL, _LEAKS_GROUP = 0.98, 0.95
# Rows and folds of these measurements: enough for an AUC to two digits.
_SAMPLE, _FOLDS = 5_000, 3


@dataclass(frozen=True)
class Problem:
    """Something to fix or to know before a model is trained."""

    sentence: str
    stops: bool = False
    """Whether no graph can be made before it is fixed."""


def id_problems(ids: "pd.Series[Any]") -> list[Problem]:
    """Return what is wrong with the ids of the nodes."""
    found = []
    if ids.isna().any():
        found.append(Problem(f"column {ids.name!r} must have an id for each node ({first_missing(ids)})", stops=True))
    repeated = ids[ids.duplicated() & ids.notna()].unique()
    if len(repeated):
        sentence = f"ids in column {ids.name!r} must be unique (more than once: {listed(repeated.tolist())})"
        found.append(Problem(sentence, stops=True))
    return found


def edge_problems(nodes: Table, edges: Table, id: str | None, source: str | None, target: str | None) -> list[Problem]:
    """Return what is wrong with the edges, or worth knowing."""
    if source is None or target is None:
        return [Problem("the table of edges must have two columns, one for each end", stops=True)]
    known = pd.Index(as_text(nodes[id]) if id is not None else [str(row) for row in range(len(nodes.frame))])
    ends = [as_text(edges[source]), as_text(edges[target])]
    found = []
    for end in ends:
        if end.isna().any():
            sentence = f"column {end.name!r} of the edges must have an id for each edge ({first_missing(end)})"
            found.append(Problem(sentence, stops=True))
        strangers = end[~end.isin(known) & end.notna()]
        if len(strangers):
            shown = listed(strangers.unique().tolist())
            sentence = f"edges whose {end.name!r} is no node: {len(strangers)} ({shown})"
            found.append(Problem(sentence, stops=True))
    loops = int((ends[0] == ends[1]).sum())
    if loops:
        found.append(Problem(f"edges that join a node with itself: {loops}; they are left out"))
    isolated = int((~known.isin(pd.concat(ends))).sum())
    if isolated:
        found.append(Problem(f"nodes without any edge: {isolated}; they are classified by their features alone"))
    return found


def label_problems(label: "pd.Series[Any]") -> list[Problem]:
    """Return what to know of the label: nodes without one, and values that few nodes have."""
    found = []
    if label.isna().any():
        count = int(label.isna().sum())
        sentence = f"nodes without a label ({label.name!r}): {count}; they stay in the graph, unlabelled"
        found.append(Problem(sentence))
    for value, count in label.value_counts().items():
        if count < _RARE:
            sentence = f"label {value!r} is rare ({count} nodes): what is measured for it is uncertain"
            found.append(Problem(sentence))
    return found


def column_problems(
    kinds: Mapping[str, str], gaps: Mapping[str, float], sensitive: str | None, label: str | None
) -> list[Problem]:
    """Return which columns cannot be features, and which have gaps."""
    reasons = {
        "text": "has too many different texts to be a category",
        "date": "holds dates or times",
        "mixed": "holds values of several types",
        "constant": "has one value only",
        "empty": "has no value in any row",
    }
    found = [
        Problem(f"column {name!r} {reasons[kind]}: it is left out") for name, kind in kinds.items() if kind in reasons
    ]
    for name, share in gaps.items():
        if name == sensitive:
            found.append(Problem(f"{100 * share:.1f} % of the nodes have no value in {name!r}: their group is unknown"))
        elif name != label and kinds.get(name) not in reasons:
            found.append(
                Problem(f"{100 * share:.1f} % of the nodes have no value in {name!r}: it is filled in, and marked")
            )
    return found


def leaks(nodes: Table, columns: Sequence[str], *, label: str | None, sensitive: str | None) -> list[Problem]:
    """Return which single columns tell the label almost surely, or the sensitive attribute."""
    found = []
    features = [name for name in columns if name not in {label, sensitive}]
    for name in features if label is not None else ():
        auc = told_by(nodes[name], nodes[str(label)])
        if auc >= _LEAKS_LABEL:
            found.append(
                Problem(
                    f"column {name!r} alone tells the label {label!r} (AUC {auc:.2f}): is it known before the "
                    f"decision? If not, leave it out ('drop')"
                )
            )
    for name in features if sensitive is not None and nodes[str(sensitive)].nunique() <= _RARE else ():
        auc = told_by(nodes[name], nodes[str(sensitive)])
        if auc >= _LEAKS_GROUP:
            found.append(Problem(f"column {name!r} is almost the same as {sensitive!r} (AUC {auc:.2f}): a proxy"))
    return found


def told_by(feature: "pd.Series[Any]", target: "pd.Series[Any]", seed: int = 0) -> float:
    """Return how well a shallow tree tells one column from another: its cross-validated AUC, 0.5 if at all unknown."""
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.tree import DecisionTreeClassifier

    both = pd.DataFrame({"x": _numbers(feature), "y": pd.factorize(target)[0]})[target.notna().to_numpy()]
    counts = both["y"].value_counts()
    both = both[both["y"].isin(counts.index[counts >= 2 * _FOLDS])]
    both = both.sample(min(len(both), _SAMPLE), random_state=seed)
    both = both[both["y"].map(both["y"].value_counts()) >= _FOLDS]
    if both["y"].nunique() < 2:
        return 0.5
    tree = DecisionTreeClassifier(max_depth=5, min_samples_leaf=3, random_state=seed)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    return float(cross_val_score(tree, both[["x"]], both["y"], cv=folds, scoring="roc_auc_ovr").mean())


def _numbers(column: "pd.Series[Any]") -> NDArray[np.float64]:
    """Return a column as numbers a tree can cut: categories by their index, gaps as a value of their own."""
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isfinite(values), values, np.nanmin(values, initial=0.0, where=np.isfinite(values)) - 1)
    return pd.factorize(column)[0].astype(np.float64)
