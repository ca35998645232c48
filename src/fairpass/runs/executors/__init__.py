"""Where batches of runs are computed: in this process, in several, or on a Ray cluster."""

from fairpass.runs.executors.executor import KILLED, Executor
from fairpass.runs.executors.processes import Processes
from fairpass.runs.executors.ray_cluster import RayCluster
from fairpass.runs.executors.spelling import executor_for

__all__ = ["KILLED", "Executor", "Processes", "RayCluster", "executor_for"]
