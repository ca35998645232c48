"""The paper's evidence and ours: what to run as data, one runner, records on disk, tables and figures of them."""

from fairpass.experiments.items import ITEMS, cells_of
from fairpass.experiments.records import Chosen, Records
from fairpass.experiments.runner import Progress, run_specs
from fairpass.experiments.spec import Cell, Configuration, Spec

__all__ = ["ITEMS", "Cell", "Chosen", "Configuration", "Progress", "Records", "Spec", "cells_of", "run_specs"]
