from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.experiments import made_up

from fairpass.experiments import ITEMS, ItemResults
from fairpass.experiments.settings import DATASETS
from fairpass.runs import RunStore

AllResults = dict[str, ItemResults]


def results_of(directory: Path, datasets: Sequence[str] = DATASETS) -> AllResults:
    store = RunStore(directory)
    return {name: ItemResults(item, store, quick=True, datasets=datasets) for name, item in ITEMS.items()}


@pytest.fixture(scope="session")
def all_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up records of everything in the quick variant, in one directory."""
    directory = tmp_path_factory.mktemp("records")
    made_up.write((spec for item in ITEMS.values() for spec in made_up.specs_of(item.cells(quick=True))), directory)
    return directory


@pytest.fixture(scope="session")
def results(all_records: Path) -> AllResults:
    return results_of(all_records)


@pytest.fixture
def nothing(tmp_path: Path) -> AllResults:
    """What there is before anything was run."""
    return results_of(tmp_path / "nothing")


@pytest.fixture(scope="session")
def german_only(all_records: Path) -> AllResults:
    return results_of(all_records, datasets=("german",))
