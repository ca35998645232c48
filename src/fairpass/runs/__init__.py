"""Runs: what to run, where, and the records that come out.

A :class:`RunSpec` is a :class:`Configuration` (method and settings) on a graph with a seed. :func:`run` makes the runs
that a store lacks and keeps each as soon as it is done, so that the same call continues after an interruption::

    from fairpass.runs import Configuration, RunSpec, RunStore, executor_for, run

    gcn, gmmd = Configuration("gcn"), Configuration("gmmd", {"alpha": 0.3}, {"epochs": 300})
    store = RunStore("records")
    run([RunSpec("german", each, seed) for each in (gcn, gmmd) for seed in range(5)], store, executor=executor_for(2))
    store.frame().groupby("method")[["test.ACC", "test.DP"]].mean()

:class:`Comparison` is a store for several methods on one graph, in one file. `fit_all` fits classifiers in place.
"""

from fairpass.runs.comparison import Comparison
from fairpass.runs.executors import Executor, InProcess, Processes, executor_for
from fairpass.runs.population import fit_all
from fairpass.runs.runner import TIMING, Measure, Progress, run
from fairpass.runs.sentences import Rate, Wording, rates_in_words, tradeoff
from fairpass.runs.spec import Configuration, RunSpec
from fairpass.runs.store import RunRecord, RunStore, Store, StoredRecord
from fairpass.runs.summary import Row, ranks, summarise

__all__ = [
    "TIMING",
    "Comparison",
    "Configuration",
    "Executor",
    "InProcess",
    "Measure",
    "Processes",
    "Progress",
    "Rate",
    "Row",
    "RunRecord",
    "RunSpec",
    "RunStore",
    "Store",
    "StoredRecord",
    "Wording",
    "executor_for",
    "fit_all",
    "ranks",
    "rates_in_words",
    "run",
    "summarise",
    "tradeoff",
]
