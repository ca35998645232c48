"""Every item is data: cells on all three data sets whose configurations can be built."""

import pytest

from fairpass.experiments import ITEMS, cells_of
from fairpass.experiments.measures import MEASURES
from fairpass.experiments.runner import TIMING
from fairpass.experiments.settings import DATASETS, baseline

every_item = pytest.mark.parametrize("item", ITEMS)


@every_item
@pytest.mark.parametrize("quick", [False, True])
def test_every_item_has_cells_on_all_data_sets(item: str, quick: bool) -> None:
    cells = cells_of(item, quick=quick)
    assert {cell.dataset for cell in cells} == set(DATASETS)
    assert all(cell.candidates and cell.seeds for cell in cells)


@every_item
def test_no_two_cells_of_an_item_are_in_the_same_place(item: str) -> None:
    places = [(cell.dataset, cell.label, tuple(cell.at.items())) for cell in cells_of(item)]
    assert len(set(places)) == len(places)


@every_item
def test_every_run_can_be_built(item: str) -> None:
    for cell in cells_of(item):
        for candidate in cell.candidates:
            spec = cell.runs(candidate)[0]
            assert spec.identity["training"]["seed"] == cell.seeds[0]
            assert set(cell.measures) <= {*MEASURES, TIMING}


@every_item
def test_quick_is_quick(item: str) -> None:
    for cell in cells_of(item, quick=True):
        (candidate,) = cell.candidates
        assert len(cell.seeds) <= 2
        assert candidate.method == "constant" or candidate.training["epochs"] <= 30


def test_gmmd_is_in_the_main_table_twice() -> None:
    labels = [cell.label for cell in cells_of("main") if cell.dataset == "bail"]
    assert labels[-5:] == ["GMMD (paper's)", "GMMD-S (paper's)", "smoothing (paper's)", "GMMD", "GMMD-S"]
    assert labels[:2] == ["constant", "GCN"]
    assert len(labels) == 13


def test_an_unknown_item_is_told() -> None:
    with pytest.raises(ValueError, match=r"'item' must be one of stats, main, .* \(got 'mane'\)"):
        cells_of("mane")


def test_an_unknown_baseline_is_told() -> None:
    with pytest.raises(ValueError, match="'name' must be a baseline \\(got 'gmmd'\\)"):
        baseline("gmmd", "german")
