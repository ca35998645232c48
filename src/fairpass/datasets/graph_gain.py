"""Do the edges help? Two logistic regressions, without and with the neighbours' features, tell before any training."""

import math
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from fairpass.datasets.similarity import undirected_edges
from fairpass.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data

Verdict = Literal["help", "harm", "no difference", "unknown", "not measured"]

# A gain below one point is not worth message passing, which is slower and can carry the group along.
_NEGLIGIBLE = 0.01

# More nodes would only make the answer slower: 5,000 tell the regressions apart, 20,000 measure to 0.5 points.
_TRAINING_NODES = 5_000
_VALIDATION_NODES = 20_000

# The penalty is chosen for each regression, since the one with the neighbours has three times as many columns.
_PENALTIES = (0.001, 0.01, 0.1, 1.0)
_FOLDS = 3
_MAX_ITERATIONS = 200

_RESAMPLES = 1_000
_LEVEL = 0.95

# Indices of drawn nodes that are held at once (32 MB).
_CHUNK = 2**22


@dataclass(frozen=True)
class LinearScores:
    """How a logistic regression does on the validation nodes, as fractions; `nan` where it is not defined.

    `auc` is averaged over the labels, one against the rest, if there are more than two. `dp` is the largest
    difference between two groups of the share for which a label is predicted.
    """

    acc: float
    auc: float
    dp: float


@dataclass(frozen=True)
class Gain:
    """What the edges add to a metric, as a fraction, and its 95 % bootstrap interval."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True)
class GraphGain:
    """What `graph_gain` found.

    Attributes:
        nodes: validation nodes that it was measured on.
        without: the regression on a node's own features.
        with_edges: the regression that also has the mean features of its neighbours, one and two hops away.
        acc: what the edges add to the accuracy.
        auc: what they add to the AUC.
        reason: why it could not be measured; then there is nothing but this.
    """

    nodes: int = 0
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
        if self.acc is None:
            return f"Whether the edges help was not measured: {self.reason}."
        verdict, name, gain = self._decision
        low, high = 100 * gain.low, 100 * gain.high
        nodes = f"{self.nodes:,} validation nodes"
        if verdict == "unknown":
            return (
                f"It cannot be told from {nodes} whether the edges help: with them {name} changes by "
                f"{low:.1f} to {high:.1f} points (95 % interval)."
            )
        start = "The edges help" if verdict == "help" else "The edges do not help"
        if verdict == "no difference":
            change = f"changes by {100 * gain.estimate:.1f} points (95 % interval {low:.1f} to {high:.1f})"
        elif verdict == "help":
            change = f"rises by {100 * gain.estimate:.1f} points (95 % interval {low:.1f} to {high:.1f})"
        else:
            change = f"falls by {-100 * gain.estimate:.1f} points (95 % interval {-high:.1f} to {-low:.1f})"
        return f"{start}: with them {name} on {nodes} {change}."

    def to_dict(self) -> dict[str, Any]:
        """Return the record with its verdict and sentence as plain dicts, ready for JSON (`nan` becomes `None`)."""
        made: dict[str, Any] = {"verdict": self.verdict, "sentence": self.sentence}
        for name, value in asdict(self).items():
            made[name] = {key: _known(each) for key, each in value.items()} if isinstance(value, dict) else value
        return made

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


def graph_gain(data: "Data", *, seed: int = 0) -> GraphGain:
    r"""Measure on the validation nodes what the edges add to the features.

    Two logistic regressions are fitted to the training nodes: one on the features :math:`X`, one on
    :math:`[X, PX, P^2X]`, where :math:`P` takes the mean over a node's neighbours (0, the overall mean, for a node
    without any). All columns are standardised over all nodes, the penalty of each regression is chosen by
    cross-validation on the training nodes, and training nodes are weighted so that labels have the shares they have
    among the validation nodes. The interval is from resampling validation nodes: it says what other validation nodes
    would change, and not what other training nodes would.

    A graph that does not allow it (no split, no labels, one label, no edges) gets an answer that says why.

    Args:
        data: needs `x` [N, d] and `edge_index` [2, ...]; `y` [N] (-1: unlabelled), `train_mask` and `val_mask` for an
            answer, and `sens` [N] (-1: unknown) for the differences between groups. Not modified.
        seed: for the folds and the resamples, and for the nodes of a very large graph.
    """
    if seed < 0:
        raise DataError(f"'seed' must not be negative (got {seed})")
    if reason := _obstacle(data):
        return GraphGain(reason=reason)
    y: NDArray[np.int64] = data.y.cpu().numpy().astype(np.int64)
    generator = np.random.default_rng(seed)
    train = _some(np.flatnonzero(data.train_mask.cpu().numpy() & (y >= 0)), _TRAINING_NODES, generator)
    val = _some(np.flatnonzero(data.val_mask.cpu().numpy() & (y >= 0)), _VALIDATION_NODES, generator)
    if len(val) == 0:
        return GraphGain(reason="no validation node has a label")
    # A label needs a training node in every fold.
    frequent = np.flatnonzero(np.bincount(y[train], minlength=1) >= _FOLDS)
    if len(frequent) < 2:
        return GraphGain(reason=f"fewer than two labels have {_FOLDS} training nodes")
    train = train[np.isin(y[train], frequent)]
    x = _standardised(data.x.cpu().double().numpy())
    near, far = _neighbour_means(x, data.edge_index.cpu().numpy())
    sens = None if data.get("sens") is None else data.sens.cpu().numpy()[val]
    own = _fit(x, y, train, val, seed)
    both = _fit(np.hstack([x, _standardised(near), _standardised(far)]), y, train, val, seed)
    shares = [_shares(y[val], scores, frequent) for scores in (own, both)]
    acc, auc = _gains(shares[1] - shares[0], generator)
    without, with_edges = (
        LinearScores(float(share[:, 0].mean()), float(share[:, 1].mean()), _dp(frequent[scores.argmax(axis=1)], sens))
        for share, scores in zip(shares, (own, both), strict=True)
    )
    return GraphGain(len(val), without, with_edges, acc, auc)


def _obstacle(data: "Data") -> str:
    """Return why nothing can be measured, if so."""
    for name, what in {"y": "no labels", "train_mask": "no training nodes", "val_mask": "no validation nodes"}.items():
        if data.get(name) is None:
            return f"the graph has {what}"
    if data.x.shape[1] == 0:
        return "the graph has no features"
    if not bool((data.edge_index[0] != data.edge_index[1]).any()):
        return "the graph has no edges"
    return "" if bool(data.x.isfinite().all()) else "some features are missing or infinite"


def _some(nodes: NDArray[np.int64], limit: int, generator: np.random.Generator) -> NDArray[np.int64]:
    return nodes if len(nodes) <= limit else np.sort(generator.choice(nodes, limit, replace=False))


def _standardised(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the columns with mean 0 and standard deviation 1; a constant one with zeros."""
    deviation = columns.std(axis=0)
    constant = deviation <= 1e-9 * np.abs(columns).max(axis=0, initial=0)
    return np.asarray((columns - columns.mean(axis=0)) * ~constant / np.where(constant, 1, deviation))


def _neighbour_means(
    x: NDArray[np.float64], edge_index: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `P x` and `P P x`: the mean features one and two hops away."""
    edges = undirected_edges(edge_index.T)
    ends = np.concatenate([edges, edges[:, ::-1]])
    share = 1 / np.bincount(ends[:, 0], minlength=len(x))[ends[:, 0]]
    mean = csr_array((share, (ends[:, 0], ends[:, 1])), shape=(len(x), len(x)))
    near = mean @ x
    return near, mean @ near


def _fit(
    columns: NDArray[np.float64], y: NDArray[np.int64], train: NDArray[np.int64], val: NDArray[np.int64], seed: int
) -> NDArray[np.float64]:
    """Return the probabilities of the labels `[validation nodes, frequent labels]`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    known, asked = columns[train], columns[val]
    if known.shape[1] > len(train):
        # The coefficients lie in the span of the training nodes, so a rotation into it changes nothing but the time.
        _, _, directions = np.linalg.svd(known, full_matrices=False)
        known, asked = known @ directions.T, asked @ directions.T
    labels, counts = np.unique(y[train], return_counts=True)
    # The benchmarks' training labels are balanced by design; one is added so that no label has weight 0.
    expected = np.array([np.count_nonzero(y[val] == label) + 1 for label in labels])
    weights = expected / expected.sum() / (counts / counts.sum())
    model = LogisticRegression(max_iter=_MAX_ITERATIONS, class_weight=dict(zip(labels, weights, strict=True)))
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(model, {"C": _PENALTIES}, scoring="neg_log_loss", cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # nearly converged is enough to compare
        search.fit(known, y[train])
    return np.asarray(search.predict_proba(asked), dtype=np.float64)


def _shares(y: NDArray[np.int64], scores: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each node's share in accuracy and AUC, `[nodes, 2]`: their means are the two metrics.

    For the accuracy it is 1 if the node is classified correctly, else 0. For the AUC it comes from the share of nodes
    of the other kind that the node is ranked right against (DeLong et al. 1988), so that resampling nodes is resampling
    a mean.
    """
    correct = labels[scores.argmax(axis=1)] == y
    kinds = [(scores[:, column], y == labels[column]) for column in range(len(labels))]
    kinds = kinds[1:] if len(labels) == 2 else kinds
    ranked = [_ranked(values, positive) for values, positive in kinds if 0 < positive.sum() < len(y)]
    return np.stack([correct.astype(float), np.mean(ranked, axis=0) if ranked else np.full(len(y), math.nan)], axis=1)


def _ranked(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return values whose mean is the AUC; a node's deviation from it says what the node adds (ties count half)."""
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    right = np.empty(len(scores))
    for kind in (positive, ~positive):
        below = (ranks[kind] - rankdata(scores[kind])) / np.count_nonzero(~kind)
        right[kind] = below if kind is positive else 1 - below
    auc = right[positive].mean()
    size = np.where(positive, positive.mean(), 1 - positive.mean())
    return np.asarray(auc + (right - auc) / size)


def _gains(differences: NDArray[np.float64], generator: np.random.Generator) -> tuple[Gain, Gain | None]:
    """Return the mean difference in accuracy and AUC with the percentiles of its resamples."""
    nodes = len(differences)
    rows = max(1, _CHUNK // nodes)
    means = []
    for done in range(0, _RESAMPLES, rows):
        drawn = generator.integers(nodes, size=(min(rows, _RESAMPLES - done), nodes))
        means.append(np.stack([column[drawn].mean(axis=1) for column in differences.T], axis=1))
    tails = [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]
    low, high = np.quantile(np.concatenate(means), tails, axis=0)
    made = [Gain(*map(float, each)) for each in zip(differences.mean(axis=0), low, high, strict=True)]
    return made[0], None if math.isnan(made[1].estimate) else made[1]


def _dp(predicted: NDArray[np.int64], sens: NDArray[np.int64] | None) -> float:
    """Return the largest difference between two groups of the share for which a label is predicted."""
    groups = [] if sens is None else [predicted[sens == group] for group in np.unique(sens[sens >= 0])]
    if len(groups) < 2:
        return math.nan
    shares = [[(group == label).mean() for label in np.unique(predicted)] for group in groups]
    return float(np.ptp(shares, axis=0).max())


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
