"""The public names of the package and where each of them lives; see `lazy_loader.attach_stub`."""

from .executor import KILLED as KILLED
from .executor import Executor as Executor
from .processes import Processes as Processes
from .ray_cluster import RayCluster as RayCluster
from .spelling import executor_for as executor_for
