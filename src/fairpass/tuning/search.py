"""The search: configurations are proposed in batches, each is trained with several seeds, and none is lost."""

import hashlib
import os
import random
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from optuna.pruners import MedianPruner, NopPruner
from optuna.trial import TrialState
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.training import fingerprint
from fairpass.training.tensors import to_json
from fairpass.tuning.budget import Budget
from fairpass.tuning.result import Tuned
from fairpass.tuning.spaces import Configurations, Space, combinations, space_of
from fairpass.tuning.strategies import SeededSampler, Strategy, directions
from fairpass.tuning.study import open_study
from fairpass.tuning.worker import ProgressCallback, Worker

# The first trials are never stopped early, nor is any in the first quarter of its epochs.
_SPARED = 5


def tune(
    data: Data,
    method: str,
    *,
    budget: Budget | int | str,
    storage: str | os.PathLike[str] | None = None,
    seeds: int | Sequence[int] = 3,
    fixed: Mapping[str, Any] | None = None,
    space: Space | None = None,
    strategy: Strategy = "tpe",
    seed: int = 0,
    callback: ProgressCallback | None = None,
) -> Tuned:
    """Search for good configurations of a method on a graph.

    Epochs and configurations are judged on the validation nodes only. The metrics on the test nodes are computed and
    kept beside them for the reader; nothing is chosen by them.

    Args:
        budget: a number of configurations in all, a time for this call such as `"10m"`, or a :class:`Budget`.
        storage: where the study is kept: the path of an SQLite file, or any database URL that Optuna takes. The same
            call continues the study, also from several processes at once; another graph, space, value of `fixed` or
            of `seeds` begins a study of its own. None: nothing is kept.
        seeds: each configuration is trained with these, and judged by the means; a number `n` is 0 to `n - 1`.
        fixed: parameters and training settings that are not varied, by name.
        space: what to vary; by default :func:`space_of` the method, its grid if the strategy is `"grid"`.
        strategy: `"tpe"` maximises `AUC + F1 + ACC - DP - EO`; `"motpe"` (also TPE) and `"nsga2"` look for the whole
            front of utility and unfairness; `"random"`; `"grid"` tries every combination, in random order.
        seed: of the strategy's random numbers.
    """
    if strategy not in get_args(Strategy):
        raise ValueError(f"'strategy' must be one of {get_args(Strategy)} (got {strategy!r})")
    limit = Budget.of(budget)
    used = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not used or len(set(used)) < len(used):
        raise ValueError(f"'seeds' must be a number of at least 1, or different seeds (got {seeds})")
    if space is None:
        space = space_of(method, "grid" if strategy == "grid" else "recommended")
    configurations = Configurations.of(method, space, fixed or {})
    grid = None
    if strategy == "grid":
        grid = list(combinations(configurations.varied))
        random.Random(seed).shuffle(grid)  # so that any part of it is spread over all of it
    goals = directions(strategy)
    settings = {**configurations.describe(), "seeds": list(used), "directions": list(goals)}
    graph = fingerprint(data)
    digest = hashlib.sha256(to_json([settings, graph, __version__]).encode()).hexdigest()
    name = f"{method}-{digest[:12]}"
    sampler = SeededSampler(strategy, seed)
    epochs = configurations.classifier(configurations.first()).training.epochs
    pruner = MedianPruner(_SPARED, epochs // 4) if len(goals) == 1 else NopPruner()
    with open_study(name, storage, directions=list(goals), sampler=sampler, pruner=pruner) as (study, owner):
        worker = Worker(data, study, owner, configurations, sampler, grid, limit, used, callback)
        worker.run()
        return Tuned(
            method=method,
            points=tuple(worker.points()),
            varied=tuple(configurations.varied),
            study=name,
            settings={**settings, "strategy": strategy},
            graph=graph,
            provenance=data.get("provenance"),
            pruned=len(study.get_trials(deepcopy=False, states=(TrialState.PRUNED,))),
            failed=len(worker.errors()),
        )
