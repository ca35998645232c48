"""Every item is data: cells on all three data sets whose configurations can be built."""

import pytest

from fairpass.experiments import EXTRA_MEASURES, ITEMS, Item
from fairpass.experiments.settings import DATASETS, baseline
from fairpass.runs import TIMING

every_item = pytest.mark.parametrize("item", ITEMS.values(), ids=list(ITEMS))


@every_item
@pytest.mark.parametrize("quick", [False, True])
def test_every_item_has_cells_on_all_data_sets(item: Item, quick: bool) -> None:
    cells = item.cells(quick=quick)
    assert {cell.dataset for cell in cells} == set(DATASETS)
    assert all(cell.candidates and cell.seeds for cell in cells)


@every_item
def test_no_two_cells_of_an_item_are_in_the_same_place(item: Item) -> None:
    places = [(cell.dataset, cell.label, tuple(cell.at.items())) for cell in item.cells()]
    assert len(set(places)) == len(places)


@every_item
def test_every_run_can_be_built(item: Item) -> None:
    for cell in item.cells():
        for candidate in cell.candidates:
            spec = cell.runs(candidate)[0]
            assert spec.identity["training"]["seed"] == cell.seeds[0]
            assert set(cell.measures) <= {*EXTRA_MEASURES, TIMING}


@every_item
def test_quick_is_quick(item: Item) -> None:
    for cell in item.cells(quick=True):
        (candidate,) = cell.candidates
        assert len(cell.seeds) <= 2
        assert candidate.method == "constant" or candidate.training["epochs"] <= 30


def test_gmmd_is_in_the_main_table_twice() -> None:
    labels = [cell.label for cell in ITEMS["main"].cells() if cell.dataset == "bail"]
    assert labels[-5:] == ["GMMD (paper's)", "GMMD-S (paper's)", "smoothing (paper's)", "GMMD", "GMMD-S"]
    assert labels[:2] == ["constant", "GCN"]
    assert labels[-10:-5] == ["FairDrop", "FairGB", "FairSIN", "BeMap", "FairINV"]
    assert len(labels) == 18


def test_an_unknown_baseline_is_told() -> None:
    with pytest.raises(ValueError, match="'name' must be a baseline \\(got 'gmmd'\\)"):
        baseline("gmmd", "german")
