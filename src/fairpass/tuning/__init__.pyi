"""The public names of the package and where each of them lives; see `lazy_loader.attach_stub`."""

from .budget import Budget as Budget
from .front import Decision as Decision
from .front import Point as Point
from .front import candidates as candidates
from .front import choose as choose
from .front import decide as decide
from .front import hypervolume as hypervolume
from .front import pareto_front as pareto_front
from .result import Tuned as Tuned
from .result import draw_front as draw_front
from .search import Progress as Progress
from .search import tune as tune
from .spaces import GRIDS as GRIDS
from .spaces import RECOMMENDED as RECOMMENDED
from .spaces import Choice as Choice
from .spaces import Integers as Integers
from .spaces import LogUniform as LogUniform
from .spaces import Uniform as Uniform
from .spaces import space_of as space_of
