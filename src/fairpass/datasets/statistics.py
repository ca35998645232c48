"""What a graph looks like before any training, and where bias can come from."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from fairpass.datasets.feature_graphs import undirected_edges
from fairpass.datasets.graph import Graph, Ints, array_of
from fairpass.datasets.linear import auc_contributions, fit_logistic, probabilities, standardised, stratified_folds
from fairpass.documents import STRICT, Count, Fraction, Nan
from fairpass.errors import DataError
from fairpass.files import finite

_AUC_NODES, _AUC_FOLDS = 5_000, 5


@dataclass(frozen=True)
class Mixing:
    """How the edges mix the values of a node attribute, over the edges with two known ends.

    `homophily` is the share of edges that join equal values. With `a_v` the share of edge ends with value `v`,
    `expected = sum_v a_v^2` is the homophily of the same ends paired at random, and
    `assortativity = (homophily - expected) / (1 - expected)` is Newman's coefficient
    (https://arxiv.org/abs/cond-mat/0209450): 0 for random mixing, 1 if no edge crosses.
    """

    __pydantic_config__ = STRICT

    edges: Count
    homophily: Fraction
    expected: Fraction
    assortativity: Nan

    def __str__(self) -> str:
        return f"{self.homophily:.3f} (at random {self.expected:.3f}, assortativity {self.assortativity:.3f})"


@dataclass(frozen=True)
class GroupStatistics:
    """One group: its size, its label rates `P(y = label | group)` among the labelled, and its degrees."""

    __pydantic_config__ = STRICT

    name: str
    size: Count
    labelled: Count
    label_rates: dict[str, Fraction]
    degree_mean: Nan
    degree_median: Nan
    degree_max: Count

    def __str__(self) -> str:
        rates = list(self.label_rates.items())
        shown = rates[1:] if len(rates) == 2 else rates  # the second of two labels is enough
        label_text = ", ".join(f"P(y = {label}) = {rate:.3f}" for label, rate in shown)
        degree_text = f"mean {self.degree_mean:.1f}, median {self.degree_median:g}, max {self.degree_max:,}"
        return f"{self.size:,} nodes, {label_text}, degree {degree_text}"


@dataclass(frozen=True)
class Leakage:
    """What the features reveal about the group.

    `correlations` are the largest absolute correlations of a feature with a group (one against the rest), largest
    first. `auc` is the cross-validated AUC of a logistic regression that predicts the group (the mean of one against
    the rest for more than two), `None` unless requested. Both leave out the sensitive attribute itself.
    """

    __pydantic_config__ = STRICT

    sensitive_feature: str | None  # the name of the feature that is the sensitive attribute itself
    correlations: dict[str, Fraction]
    auc: float | None

    def __str__(self) -> str:
        own = [] if self.sensitive_feature is None else [f"{self.sensitive_feature} is itself a feature"]
        strongest = [f"{name} {correlation:.2f}" for name, correlation in self.correlations.items()]
        auc = [] if self.auc is None else [f"linear AUC {self.auc:.3f}"]
        return ", ".join([*own, *strongest, *auc]) or "no features"


@dataclass(frozen=True, repr=False)
class GraphStatistics:
    """The result of `describe`; a number that is not defined (no labelled node, only one group) is `nan`."""

    __pydantic_config__ = STRICT

    nodes: Count
    edges: Count
    features: Count
    label_counts: dict[str, Count]
    unlabelled: Count
    unknown_group: Count
    groups: tuple[GroupStatistics, ...]
    label_mixing: Mixing
    sensitive_mixing: Mixing
    isolated: Count
    components: Count
    largest_component: Count
    leakage: Leakage

    @property
    def label_homophily(self) -> float:
        """H, the share of edges that join equal labels."""
        return self.label_mixing.homophily

    @property
    def sensitive_homophily(self) -> float:
        """H_f, the share of edges that join nodes of one group."""
        return self.sensitive_mixing.homophily

    @property
    def base_rate_gap(self) -> float:
        """The largest difference of `P(y = label | group)` between two groups, over all labels."""
        known = [list(group.label_rates.values()) for group in self.groups if group.labelled]
        return float(np.ptp(known, axis=0).max()) if len(known) > 1 else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics as plain dicts and lists, ready for JSON (`nan` becomes `None`)."""
        return dict(finite(asdict(self)))

    def __repr__(self) -> str:
        lines = [
            ("nodes", f"{self.nodes:,}, {self.unlabelled:,} unlabelled, {self.unknown_group:,} of unknown group"),
            ("edges", f"{self.edges:,} undirected, {self.isolated:,} isolated nodes"),
            ("components", f"{self.components:,}, the largest with {self.largest_component:,} nodes"),
            ("features", f"{self.features:,}"),
            ("labels", ", ".join(f"{name}: {count:,}" for name, count in self.label_counts.items())),
            ("H (labels)", self.label_mixing),
            ("H_f (groups)", self.sensitive_mixing),
            *((f"group {group.name}", group) for group in self.groups),
            ("leakage", self.leakage),
        ]
        width = max(len(key) for key, _ in lines)
        return "\n".join([type(self).__name__, *(f"  {key:<{width}}  {text}" for key, text in lines)])


@cache
def audit_texts() -> dict[str, dict[str, Any]]:
    return tomllib.loads((resources.files("fairpass.datasets") / "audit_texts.toml").read_text(encoding="utf-8"))


def describe(data: Graph, *, leakage_auc: bool = False, top: int = 5, seed: int = 0) -> GraphStatistics:
    """Describe a graph with labels and a sensitive attribute.

    Args:
        data: Needs `x` [N, d], `edge_index` [2, ...], `y` [N] (-1: unlabelled) and `sens` [N] (-1: unknown);
            `feature_names`, `label_names`, `group_names` and `sens_column` are used where present.
        leakage_auc: Also measure how well the features predict the group (on at most 5,000 nodes).
        top: How many features to name in `Leakage.correlations`.
        seed: For the nodes and folds of `leakage_auc`.
    """
    if top < 0:
        raise DataError(f"'top' must not be negative (got {top})")
    x, edges, y, sens = _arrays(data)
    labels = _names(data, "label_names", int(y.max()) + 1)
    groups = _names(data, "group_names", int(sens.max()) + 1)
    degrees = np.bincount(edges.ravel(), minlength=len(x))
    adjacency = coo_array((np.ones(len(edges), dtype=np.int8), tuple(edges.T)), shape=(len(x), len(x)))
    component_sizes = np.bincount(connected_components(adjacency, directed=False)[1])
    return GraphStatistics(
        nodes=len(x),
        edges=len(edges),
        features=x.shape[1],
        label_counts=dict(zip(labels, np.bincount(y[y >= 0], minlength=len(labels)).tolist(), strict=True)),
        unlabelled=int((y < 0).sum()),
        unknown_group=int((sens < 0).sum()),
        groups=tuple(_group(name, y[sens == code], degrees[sens == code], labels) for code, name in enumerate(groups)),
        label_mixing=_mixing(y[edges]),
        sensitive_mixing=_mixing(sens[edges]),
        isolated=int((degrees == 0).sum()),
        components=len(component_sizes),
        largest_component=int(component_sizes.max()),
        leakage=_leakage(data, x, sens, leakage_auc, top, seed),
    )


def _arrays(data: Graph) -> tuple[NDArray[Any], Ints, Ints, Ints]:
    """Return the features, the undirected edges, the labels and the groups, after checking them."""
    found = {name: array_of(data, name) for name in ("x", "edge_index", "y", "sens")}
    if missing := [name for name, values in found.items() if values is None]:
        raise DataError(f"'data' must have {', '.join(found)} (missing: {', '.join(missing)})")
    x, edge_index, y, sens = found.values()
    if x.ndim != 2 or len(x) == 0 or not np.isfinite(x).all():
        raise DataError(f"'x' must be a finite matrix with a row per node (got shape {x.shape})")
    for name, values in (("y", y), ("sens", sens)):
        if values.shape != (len(x),) or values.dtype.kind not in "iub":
            got = f"(got {values.dtype} of shape {values.shape})"
            raise DataError(f"'{name}' must have one integer per node, {len(x)} in all {got}")
    if edge_index.ndim != 2 or len(edge_index) != 2:
        raise DataError(f"'edge_index' must have shape [2, edges] (got {list(edge_index.shape)})")
    if edge_index.min(initial=0) < 0 or edge_index.max(initial=0) >= len(x):
        got = f"(got {edge_index.min()} to {edge_index.max()})"
        raise DataError(f"'edge_index' must have node numbers from 0 to {len(x) - 1} {got}")
    return x, undirected_edges(edge_index.T), y.astype(np.int64), sens.astype(np.int64)


def _names(data: Graph, attribute: str, count: int) -> list[str]:
    """Return the given names; values beyond them are named by their number."""
    given: Sequence[str] = getattr(data, attribute, None) or []
    return [*map(str, given), *map(str, range(len(given), count))]


def _mixing(ends: Ints) -> Mixing:
    ends = ends[(ends >= 0).all(axis=1)]
    if len(ends) == 0:
        return Mixing(0, math.nan, math.nan, math.nan)
    homophily = float((ends[:, 0] == ends[:, 1]).mean())
    expected = float(((np.bincount(ends.ravel()) / ends.size) ** 2).sum())
    assortativity = (homophily - expected) / (1 - expected) if expected < 1 else math.nan
    return Mixing(len(ends), homophily, expected, assortativity)


def _group(name: str, y: Ints, degrees: Ints, labels: Sequence[str]) -> GroupStatistics:
    counts = np.bincount(y[y >= 0], minlength=len(labels)).tolist()
    labelled = sum(counts)
    rates = {label: count / labelled if labelled else math.nan for label, count in zip(labels, counts, strict=True)}
    mean, median = (float(degrees.mean()), float(np.median(degrees))) if len(y) else (math.nan, math.nan)
    return GroupStatistics(name, len(y), labelled, rates, mean, median, int(degrees.max(initial=0)))


def _leakage(data: Graph, x: NDArray[Any], sens: Ints, with_auc: bool, top: int, seed: int) -> Leakage:
    names = _names(data, "feature_names", x.shape[1])
    if len(names) != x.shape[1]:
        raise DataError(f"'feature_names' must name {x.shape[1]} features (got {len(names)} names)")
    own = getattr(data, "sens_column", None)
    if own is not None and not 0 <= own < x.shape[1]:
        raise DataError(f"'sens_column' must be None or one of the {x.shape[1]} columns of 'x' (got {own})")
    others = np.array([column for column in range(x.shape[1]) if column != own], dtype=np.int64)
    known = np.flatnonzero(sens >= 0)
    features, groups = x[np.ix_(known, others)], sens[known]
    correlations = np.zeros(len(others))  # max_g |corr(feature, 1[group = g])|
    if len(known):
        (columns,), (members,) = standardised(features.astype(float)), standardised(np.eye(groups.max() + 1)[groups])
        correlations = np.abs(columns.T @ members).max(axis=1) / len(known)
    strongest = np.argsort(-correlations, kind="stable")[:top]
    return Leakage(
        sensitive_feature=None if own is None else names[own],
        correlations={names[others[index]]: float(correlations[index]) for index in strongest},
        auc=_linear_auc(features, groups, seed) if with_auc else None,
    )


def _linear_auc(features: NDArray[Any], groups: Ints, seed: int) -> float:
    sample = np.random.default_rng(seed).permutation(len(groups))[:_AUC_NODES]
    # A group needs a node to learn from and one to be tested on.
    sample = sample[np.bincount(groups[sample])[groups[sample]] >= 2]
    present, y = np.unique(groups[sample], return_inverse=True)
    if len(present) < 2 or features.shape[1] == 0:
        return math.nan
    x = features[sample].astype(np.float64)
    scores = []
    for test in stratified_folds(y, min(_AUC_FOLDS, int(np.bincount(y).min())), seed):
        known, asked = standardised(x[~test], x[test])
        coefficients = fit_logistic(known, y[~test], 1.0, np.ones(len(present)), max_iterations=1_000)
        scores.append(auc_contributions(probabilities(asked, coefficients), y[test]).mean())
    return float(np.mean(scores))
