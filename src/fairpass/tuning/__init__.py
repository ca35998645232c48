"""Search for configurations: spaces as data, strategies from Optuna, and the front between utility and fairness."""

from fairpass.parameters import Choice, Integers, LogUniform, Uniform
from fairpass.tuning.budget import Budget
from fairpass.tuning.choice import Decision, choose, decide
from fairpass.tuning.front import Point, hypervolume, pareto_front
from fairpass.tuning.result import Tuned, draw_front
from fairpass.tuning.search import tune
from fairpass.tuning.spaces import GRIDS, RECOMMENDED, space_of
from fairpass.tuning.worker import Progress

__all__ = [
    "GRIDS",
    "RECOMMENDED",
    "Budget",
    "Choice",
    "Decision",
    "Integers",
    "LogUniform",
    "Point",
    "Progress",
    "Tuned",
    "Uniform",
    "choose",
    "decide",
    "draw_front",
    "hypervolume",
    "pareto_front",
    "space_of",
    "tune",
]
