"""The paper's evidence and ours: what to run, and the tables, figures and claims made of the records.

from fairpass.experiments import EXTRA_MEASURES, ITEMS, ItemResults
from fairpass.runs import RunStore, run

store = RunStore("reproduction/records")
run([spec for cell in ITEMS["main"].cells() for spec in cell.specs()], store, measures=EXTRA_MEASURES)
ItemResults(ITEMS["main"], store).tables[0].to_markdown()
"""

from fairpass.experiments.cells import Cell, CellResult
from fairpass.experiments.extra_measures import EXTRA_MEASURES
from fairpass.experiments.item import Item, ItemResults
from fairpass.experiments.items import ITEMS
from fairpass.experiments.page import write_item, write_results_page

__all__ = ["EXTRA_MEASURES", "ITEMS", "Cell", "CellResult", "Item", "ItemResults", "write_item", "write_results_page"]
