"""The names of executors, as on the command line."""

import re

from fairpass.runs.executors.executor import Executor
from fairpass.runs.executors.processes import Processes
from fairpass.runs.executors.ray_cluster import RayCluster

PROCESSES, RAY, AUTO = "processes", "ray", "auto"
_ADDRESS = re.compile(r"ray://(auto|[^/\s]+:\d{1,5})")


def executor_for(jobs: int | None = None, executor: str = PROCESSES) -> Executor:
    """Return the executor that a text describes.

    Args:
        jobs: how many batches to compute at once; by default one, on Ray as many as there are processors.
        executor: `"processes"` on this machine; `"ray"`, started on this machine and stopped afterwards;
            `"ray://HOST:PORT"`, a cluster by the address of its Ray Client server; `"ray://auto"`, the cluster that
            this machine is part of.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"'jobs' must be at least 1 (got {jobs})")
    if executor == PROCESSES:
        return Executor() if jobs in (None, 1) else Processes(jobs or 1)
    if executor == RAY:
        return RayCluster(jobs)
    if (found := _ADDRESS.fullmatch(executor)) is None:
        raise ValueError(f"'executor' must be processes, ray, ray://HOST:PORT or ray://auto (got {executor!r})")
    return RayCluster(jobs, AUTO if found[1] == AUTO else executor)
