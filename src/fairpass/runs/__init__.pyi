"""The public names of the package and where each of them lives; see `lazy_loader.attach_stub`."""

from .comparison import Comparison as Comparison
from .executors import Executor as Executor
from .executors import Processes as Processes
from .executors import RayCluster as RayCluster
from .executors import executor_for as executor_for
from .in_words import Rate as Rate
from .in_words import rates_in_words as rates_in_words
from .in_words import tradeoff as tradeoff
from .population import fit_all as fit_all
from .runner import TIMING as TIMING
from .runner import Measure as Measure
from .runner import Progress as Progress
from .runner import run as run
from .spec import Configuration as Configuration
from .spec import RunSpec as RunSpec
from .store import RunRecord as RunRecord
from .store import RunStore as RunStore
from .store import StoredRecord as StoredRecord
from .summary import Row as Row
from .summary import ranks as ranks
from .summary import summarise as summarise
