from pathlib import Path

import pytest
from tests.experiments import made_up

from fairpass.experiments import ITEMS, Records, cells_of
from fairpass.experiments.findings import Findings


@pytest.fixture(scope="session")
def all_records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made-up records of everything in the quick variant, in one directory."""
    directory = tmp_path_factory.mktemp("records")
    made_up.write((spec for item in ITEMS for spec in made_up.specs_of(cells_of(item, quick=True))), directory)
    return directory


@pytest.fixture(scope="session")
def findings(all_records: Path) -> Findings:
    return Findings(Records(all_records), quick=True)


@pytest.fixture
def nothing(tmp_path: Path) -> Findings:
    """What there is before anything was run."""
    return Findings(Records(tmp_path / "nothing"), quick=True)


@pytest.fixture(scope="session")
def german_only(all_records: Path) -> Findings:
    return Findings(Records(all_records), quick=True, datasets=("german",))
