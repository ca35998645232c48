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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
