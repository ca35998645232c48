"""Do the edges help? Two logistic regressions, without and with the neighbours' features, answer before training."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from fairpass.datasets.graph import Floats, Graph, Ints, array_of, simple_graph
from fairpass.datasets.linear import auc_contributions, fit_logistic, probabilities, standardised, stratified_folds
from fairpass.datasets.statistics import audit_texts
from fairpass.documents import STRICT, Count, Fraction, Nan, validate
from fairpass.errors import DataError
from fairpass.files import finite

Verdict = Literal["help", "harm", "no difference", "unknown", "not measured"]

# A gain below one point is not worth message passing, which is slower and can propagate the group.
_NEGLIGIBLE = 0.01

# More nodes would only take longer: 5,000 distinguish the regressions, 20,000 measure to 0.5 points.
_TRAINING_NODES, _VALIDATION_NODES = 5_000, 20_000

# The penalty is chosen for each regression, since the one with the neighbours has three times as many columns.
_PENALTIES = (0.001, 0.01, 0.1, 1.0)
_FOLDS, _MAX_ITERATIONS = 3, 200

_RESAMPLES = 1_000
_TAILS = ((1 - 0.95) / 2, (1 + 0.95) / 2)
_CHUNK = 2**22  # indices of drawn nodes that are held at once (32 MB)


@dataclass(frozen=True)
class LinearScores:
    """The scores of a logistic regression on the validation nodes, as fractions; `nan` where not defined."""

    __pydantic_config__ = STRICT

    acc: Fraction
    auc: Fraction  # of more than two labels: the mean over one against the rest
    dp: Fraction  # the largest difference between two groups in the share of nodes with the same predicted label


@dataclass(frozen=True)
class Gain:
    """What the edges add to a metric, as a fraction, and its 95 % bootstrap interval."""

    __pydantic_config__ = STRICT

    estimate: Nan
    low: Nan
    high: Nan


@dataclass(frozen=True)
class GraphGain:
    """The result of `graph_gain`.

    Attributes:
        nodes: Number of validation nodes.
        without: The regression on a node's own features.
        with_edges: The regression that also has the mean features of its neighbours, one and two hops away.
        acc: What the edges add to the accuracy.
        auc: What they add to the AUC.
        reason: Why nothing could be measured; the other attributes are then empty.
    """

    __pydantic_config__ = STRICT

    nodes: Count = 0
    without: LinearScores | None = None
    with_edges: LinearScores | None = None
    acc: Gain | None = None
    auc: Gain | None = None
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the edges help.

        Accuracy decides if its interval does not contain 0. If it does, an AUC that is more than a point better or
        worse decides: where one label is rare, accuracy hardly moves. Less than a point is no difference.
        """
        return self._decision[0]

    @property
    def sentence(self) -> str:
        """The answer in plain English, with the number that decides and its interval in percentage points."""
        verdict, name, gain = self._decision
        points = -100 if verdict == "harm" else 100
        low, high = sorted((points * gain.low, points * gain.high))
        fields = {"metric": name, "estimate": points * gain.estimate, "low": low, "high": high}
        return str(audit_texts()["graph_gain"][verdict]).format(**fields, nodes=self.nodes, reason=self.reason)

    def to_dict(self) -> dict[str, Any]:
        """Return the result with its verdict and sentence as plain dicts, ready for JSON (`nan` becomes `None`)."""
        return {"verdict": self.verdict, "sentence": self.sentence, **finite(asdict(self))}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "GraphGain":
        """Read what `to_dict` returned; raise `ValueError` if it is something else."""
        found = validate({name: value for name, value in values.items() if name not in ("verdict", "sentence")}, cls)
        if len({each is None for each in (found.without, found.with_edges, found.acc)}) > 1:
            raise ValueError("it must have both regressions and what the edges add to the accuracy, or neither")
        return found

    @property
    def _decision(self) -> tuple[Verdict, str, Gain]:
        """The verdict, the metric that it rests on, and what the edges add to that."""
        if self.acc is None:
            return "not measured", "", Gain(math.nan, math.nan, math.nan)
        if self.acc.low > 0 or self.acc.high < 0:
            return ("help" if self.acc.low > 0 else "harm"), "accuracy", self.acc
        if self.auc is not None and (self.auc.low > _NEGLIGIBLE or self.auc.high < -_NEGLIGIBLE):
            return ("help" if self.auc.low > 0 else "harm"), "AUC", self.auc
        return ("no difference" if self.acc.high < _NEGLIGIBLE else "unknown"), "accuracy", self.acc


def graph_gain(data: Graph, *, seed: int = 0) -> GraphGain:
    r"""Measure on the validation nodes what the edges add to the features.

    Two logistic regressions are fitted to the training nodes: one on the features :math:`X`, one on
    :math:`[X, PX, P^2X]`, where :math:`P` takes the mean over a node's neighbours, weighted if the graph has
    `edge_weight` (0, the overall mean, for a node without any). All columns are standardised over all nodes, the
    penalty of each regression is chosen by cross-validation on the training nodes, and training nodes are weighted so
    that the labels have the same shares as among the validation nodes. The interval comes from resampling validation
    nodes: it covers the choice of validation nodes, not the choice of training nodes.

    If nothing can be measured (no split, no labels, one label, no edges), the result has the `reason`.

    Args:
        data: Needs `x` [N, d] and `edge_index` [2, ...]; `y` [N] (-1: unlabelled), `train_mask` and `val_mask` for an
            answer, and `sens` [N] (-1: unknown) for the differences between groups. Not modified.
        seed: For the folds and the resamples, and for the nodes of a very large graph.
    """
    if seed < 0:
        raise DataError(f"'seed' must not be negative (got {seed})")
    if reason := _obstacle(data):
        return GraphGain(reason=reason)
    names = ("x", "edge_index", "edge_weight", "y", "sens")
    x, edge_index, edge_weight, y, sens = (array_of(data, name) for name in names)
    y = y.astype(np.int64)
    generator = np.random.default_rng(seed)
    train = _some(np.flatnonzero(array_of(data, "train_mask") & (y >= 0)), _TRAINING_NODES, generator)
    val = _some(np.flatnonzero(array_of(data, "val_mask") & (y >= 0)), _VALIDATION_NODES, generator)
    if len(val) == 0:
        return GraphGain(reason="no validation node has a label")
    # A label needs a training node in every fold.
    frequent = np.flatnonzero(np.bincount(y[train], minlength=1) >= _FOLDS)
    if len(frequent) < 2:
        return GraphGain(reason=f"fewer than two labels have {_FOLDS} training nodes")
    train = train[np.isin(y[train], frequent)]
    (own,) = standardised(x.astype(np.float64))
    columns = np.hstack([own, *(standardised(means)[0] for means in _neighbour_means(own, edge_index, edge_weight))])
    # The codes of the labels among the frequent ones; any other label is never predicted.
    codes = np.where(np.isin(y[val], frequent), np.searchsorted(frequent, y[val]), len(frequent))
    scores, shares = [], []
    for each in (own, columns):
        chances = _fit(each, y, train, val, seed)
        predicted = chances.argmax(axis=1)
        share = np.stack([predicted == codes, auc_contributions(chances, codes)], axis=1)
        acc, auc = share.mean(axis=0).tolist()
        scores.append(LinearScores(acc, auc, math.nan if sens is None else _dp(frequent[predicted], sens[val])))
        shares.append(share)
    gains = _gains(shares[1] - shares[0], generator)
    return GraphGain(len(val), scores[0], scores[1], *gains)


def _obstacle(data: Graph) -> str:
    """Return why nothing can be measured, if so."""
    for name, what in {"y": "labels", "train_mask": "training nodes", "val_mask": "validation nodes"}.items():
        if getattr(data, name, None) is None:
            return f"the graph has no {what}"
    if data.x.shape[1] == 0:
        return "the graph has no features"
    if not bool((data.edge_index[0] != data.edge_index[1]).any()):
        return "the graph has no edges"
    return "" if np.isfinite(array_of(data, "x")).all() else "some features are missing or infinite"


def _some(nodes: Ints, limit: int, generator: np.random.Generator) -> Ints:
    return nodes if len(nodes) <= limit else np.sort(generator.choice(nodes, limit, replace=False))


def _neighbour_means(x: Floats, edge_index: Ints, edge_weight: Floats | None) -> tuple[Floats, Floats]:
    """Return `P x` and `P P x`: the mean features one and two hops away, weighted if the edges have weights."""
    graph = simple_graph(edge_index[0], edge_index[1], len(x), edge_weight, mirrored=True)
    first, second = graph.edge_index
    weight = np.ones(len(first)) if graph.edge_weight is None else graph.edge_weight
    share = weight / np.bincount(first, weight, minlength=len(x))[first]
    mean = csr_array((share, (first, second)), shape=(len(x), len(x)))
    near = mean @ x
    return near, mean @ near


def _fit(columns: Floats, y: Ints, train: Ints, val: Ints, seed: int) -> Floats:
    """Return the probabilities of the labels `[validation nodes, frequent labels]`."""
    known, asked = columns[train], columns[val]
    if known.shape[1] > len(train):
        # The coefficients lie in the span of the training nodes: a rotation into it changes only the time.
        _, _, directions = np.linalg.svd(known, full_matrices=False)
        known, asked = known @ directions.T, asked @ directions.T
    labels, codes, counts = np.unique(y[train], return_inverse=True, return_counts=True)
    # The benchmarks' training labels are balanced by design; one is added so that no label has weight 0.
    expected = np.array([np.count_nonzero(y[val] == label) + 1 for label in labels])
    weights = expected / expected.sum() / (counts / counts.sum())
    losses = dict.fromkeys(_PENALTIES, 0.0)
    folds = stratified_folds(codes, _FOLDS, seed)
    for penalty in losses:
        for fold in folds:
            coefficients = fit_logistic(known[~fold], codes[~fold], penalty, weights, _MAX_ITERATIONS)
            chance = probabilities(known[fold], coefficients)[np.arange(fold.sum()), codes[fold]]
            losses[penalty] -= np.log(np.maximum(chance, np.finfo(float).eps)).mean()
    best = min(losses, key=losses.__getitem__)
    return probabilities(asked, fit_logistic(known, codes, best, weights, _MAX_ITERATIONS))


def _gains(differences: Floats, generator: np.random.Generator) -> tuple[Gain, Gain | None]:
    """Return the mean difference in accuracy and AUC with the percentiles of its resamples."""
    nodes = len(differences)
    rows = max(1, _CHUNK // nodes)
    means = []
    for done in range(0, _RESAMPLES, rows):
        drawn = generator.integers(nodes, size=(min(rows, _RESAMPLES - done), nodes))
        means.append(np.stack([column[drawn].mean(axis=1) for column in differences.T], axis=1))
    low, high = np.quantile(np.concatenate(means), _TAILS, axis=0)
    acc, auc = (Gain(*map(float, each)) for each in zip(differences.mean(axis=0), low, high, strict=True))
    return acc, None if math.isnan(auc.estimate) else auc


def _dp(predicted: Ints, sens: Ints) -> float:
    """Return the largest difference between two groups in the share of nodes with the same predicted label."""
    groups = [predicted[sens == group] for group in np.unique(sens[sens >= 0])]
    if len(groups) < 2:
        return math.nan
    shares = [[(group == label).mean() for label in np.unique(predicted)] for group in groups]
    return float(np.ptp(shares, axis=0).max())
