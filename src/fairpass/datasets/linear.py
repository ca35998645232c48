"""Logistic regression for the audit: scikit-learn's objective, solver and folds, without its import time."""

from typing import Any

import numpy as np
import pandas as pd

from fairpass.datasets.graph import Bools, Floats, Ints


def fit_logistic(x: Floats, y: Ints, penalty: float, weights: Floats, max_iterations: int) -> Floats:
    """Return the coefficients of a multinomial logistic regression with an L2 penalty, the intercept last.

    `penalty` is C, the inverse of its strength; `weights` has the weight of each label. Of two labels, only the second
    has coefficients, as in binary logistic regression. Nearly converged is good enough here.
    """
    from scipy.optimize import minimize

    labels = len(weights)
    free = 1 if labels == 2 else labels  # columns of coefficients
    share = weights[y] / weights[y].sum()
    strength = 1 / (penalty * weights[y].sum())
    target = np.eye(labels)[y]
    with_one = np.column_stack([x, np.ones(len(x))])

    def loss_and_gradient(flat: Floats) -> tuple[float, Floats]:
        coefficients = flat.reshape(-1, free)
        logits = _logits(with_one, coefficients)
        logits -= logits.max(axis=1, keepdims=True)
        normalizer = np.log(np.exp(logits).sum(axis=1))
        loss = share @ (normalizer - logits[np.arange(len(y)), y])
        error = (np.exp(logits - normalizer[:, None]) - target)[:, labels - free :] * share[:, None]
        gradient = with_one.T @ error
        gradient[:-1] += strength * coefficients[:-1]
        return float(loss + strength / 2 * (coefficients[:-1] ** 2).sum()), gradient.ravel()

    options: Any = {"maxiter": max_iterations, "maxls": 50, "gtol": 1e-4, "ftol": 64 * np.finfo(float).eps}
    start = np.zeros(with_one.shape[1] * free)
    found = minimize(loss_and_gradient, start, method="L-BFGS-B", jac=True, options=options)
    return np.asarray(found.x.reshape(-1, free))


def probabilities(x: Floats, coefficients: Floats) -> Floats:
    """Return the probability of each label, shape [N, K]."""
    logits = _logits(np.column_stack([x, np.ones(len(x))]), coefficients)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _logits(with_one: Floats, coefficients: Floats) -> Floats:
    logits = with_one @ coefficients
    return np.pad(logits, ((0, 0), (1, 0))) if logits.shape[1] == 1 else logits


def standardised(columns: Floats, *others: Floats) -> list[Floats]:
    """Return the columns with mean 0 and standard deviation 1 (a constant one with zeros), and others scaled by it."""
    mean, deviation = columns.mean(axis=0), columns.std(axis=0)
    constant = deviation <= 1e-9 * np.abs(columns).max(axis=0, initial=0)
    return [np.asarray((each - mean) * ~constant / np.where(constant, 1, deviation)) for each in (columns, *others)]


def stratified_folds(y: Ints, folds: int, seed: int) -> list[Bools]:
    """Return the nodes in each fold, which has nearly the same share of each label (as `StratifiedKFold`)."""
    generator = np.random.RandomState(seed)
    _, first, codes = np.unique(y, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]  # labels in the order of their first node
    ordered = np.sort(codes)
    sizes = np.stack([np.bincount(ordered[fold::folds], minlength=len(first)) for fold in range(folds)])
    fold_of = np.empty(len(y), dtype=np.int64)
    for label in range(len(first)):
        own = np.repeat(np.arange(folds), sizes[:, label])
        generator.shuffle(own)
        fold_of[codes == label] = own
    return [fold_of == fold for fold in range(folds)]


def auc_contributions(probability: Floats, y: Ints) -> Floats:
    """Return a value per node whose mean is the AUC, of more than two labels the mean over one against the rest.

    It comes from the share of nodes of the other class that a node is ranked correctly against, ties counting half
    (DeLong et al. 1988), so that resampling nodes is resampling a mean. All are `nan` if every node has one label.
    """
    labels = [1] if probability.shape[1] == 2 else range(probability.shape[1])
    ranked = [_ranked(pd.Series(probability[:, label]), y == label) for label in labels if 0 < (y == label).mean() < 1]
    return np.mean(ranked, axis=0) if ranked else np.full(len(y), np.nan)


def _ranked(scores: "pd.Series[float]", positive: Bools) -> Floats:
    overall = scores.rank().to_numpy()
    right = np.empty(len(scores))
    for kind in (positive, ~positive):
        below = (overall[kind] - scores[kind].rank().to_numpy()) / np.count_nonzero(~kind)
        right[kind] = below if kind is positive else 1 - below
    auc = right[positive].mean()
    return np.asarray(auc + (right - auc) / np.where(positive, positive.mean(), 1 - positive.mean()))
