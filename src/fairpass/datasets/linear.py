"""Logistic regression for the audit: scikit-learn's objective, solver and folds, without its import time."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def fit_logistic(
    x: NDArray[np.float64], y: NDArray[np.int64], penalty: float, weights: NDArray[np.float64], max_iterations: int
) -> NDArray[np.float64]:
    """Return the coefficients of a multinomial logistic regression with an L2 penalty, the intercept last.

    Of two labels, the first has the coefficients 0, as in binary logistic regression.

    Args:
        x: The features, shape [N, d].
        y: The labels 0, 1, ..., K - 1.
        penalty: C, the inverse of the penalty's strength.
        weights: The weight of each label, shape [K].
        max_iterations: The solver's limit; nearly converged is good enough here.
    """
    from scipy.optimize import minimize

    labels = len(weights)
    free = 1 if labels == 2 else labels  # columns of coefficients
    share = weights[y] / weights[y].sum()
    strength = 1 / (penalty * weights[y].sum())
    target = np.eye(labels)[y]
    with_one = np.column_stack([x, np.ones(len(x))])

    def loss_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        coefficients = flat.reshape(-1, free)
        logits = _logits(with_one, coefficients, labels)
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


def probabilities(x: NDArray[np.float64], coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probability of each label, shape [N, K]."""
    labels = 2 if coefficients.shape[1] == 1 else coefficients.shape[1]
    logits = _logits(np.column_stack([x, np.ones(len(x))]), coefficients, labels)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _logits(with_one: NDArray[np.float64], coefficients: NDArray[np.float64], labels: int) -> NDArray[np.float64]:
    logits = np.zeros((len(with_one), labels))
    logits[:, labels - coefficients.shape[1] :] = with_one @ coefficients
    return logits


def standardised(columns: NDArray[np.float64], *others: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the columns with mean 0 and standard deviation 1 (a constant one with zeros), and others scaled by it."""
    mean, deviation = columns.mean(axis=0), columns.std(axis=0)
    constant = deviation <= 1e-9 * np.abs(columns).max(axis=0, initial=0)
    return [np.asarray((each - mean) * ~constant / np.where(constant, 1, deviation)) for each in (columns, *others)]


def stratified_folds(y: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each node: every fold has nearly the same share of each label (as `StratifiedKFold`)."""
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
    return fold_of


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each value, from 1; equal values share their mean rank."""
    return np.asarray(pd.Series(values).rank(), dtype=np.float64)


def auc_contributions(probability: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a value per node whose mean is the AUC, of more than two labels the mean over one against the rest.

    It comes from the share of nodes of the other class that a node is ranked correctly against, ties counting half
    (DeLong et al. 1988), so that resampling nodes is resampling a mean. All are `nan` if every node has one label.
    """
    one_sided = [(column, y == label) for label, column in enumerate(probability.T)]
    ranked = [
        _ranked(scores, positive)
        for scores, positive in (one_sided[1:] if probability.shape[1] == 2 else one_sided)
        if 0 < positive.sum() < len(y)
    ]
    return np.mean(ranked, axis=0) if ranked else np.full(len(y), np.nan)


def _ranked(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    overall = ranks(scores)
    right = np.empty(len(scores))
    for kind in (positive, ~positive):
        below = (overall[kind] - ranks(scores[kind])) / np.count_nonzero(~kind)
        right[kind] = below if kind is positive else 1 - below
    auc = right[positive].mean()
    size = np.where(positive, positive.mean(), 1 - positive.mean())
    return np.asarray(auc + (right - auc) / size)
