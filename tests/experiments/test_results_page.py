"""The files of an item, and the page of results."""

import re
from pathlib import Path

import pytest
from tests.experiments import made_up
from tests.experiments.conftest import AllResults

from fairpass.experiments import ITEMS, write_item, write_results_page
from fairpass.experiments.cells import QUICK_EPOCHS
from fairpass.runs import RunStore


def test_an_item_is_written_in_all_forms(tmp_path: Path, german_only: AllResults) -> None:
    written = write_item(german_only["hyper"], tmp_path)
    assert sorted(path.name for path in written) == sorted(
        ["hyper-german.md", "hyper-german.tex", "hyper-german.csv", "hyper.png", "hyper.svg"]
    )
    assert all(path.stat().st_size > 500 for path in written)


def test_an_item_that_was_not_run_has_no_files(tmp_path: Path, nothing: AllResults) -> None:
    assert write_item(nothing["main"], tmp_path / "main") == []
    assert not (tmp_path / "main").exists()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page when only German was run."""
    directory = tmp_path_factory.mktemp("docs")
    cells = (cell for item in ITEMS.values() for cell in item.cells(quick=True) if cell.dataset == "german")
    made_up.write(made_up.specs_of(cells), directory / "records")
    return write_results_page(RunStore(directory / "records"), directory, quick=True)


def test_the_page_has_every_item_with_its_command(page: Path) -> None:
    text = page.read_text()
    assert page.name == "results.md"
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert titles == [item.title for item in ITEMS.values()]
    assert re.findall(r"^fairpass reproduce (\w+)$", text, re.MULTILINE) == list(ITEMS)
    assert f"German: 2 seeds, {QUICK_EPOCHS} epochs." in text
    assert "of its cells were not run." in text
    assert "Not measured" not in text.partition("## The theorems")[2].partition("## Width")[0]


def test_the_page_shows_figures_that_exist(page: Path) -> None:
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text())
    assert len(shown) == 9
    assert all((page.parent / path).stat().st_size > 1000 for path in shown)


def test_the_page_of_nothing_says_so(tmp_path: Path) -> None:
    text = write_results_page(RunStore(tmp_path / "nothing"), tmp_path).read_text()
    assert text.count("Not measured.") > 20
    assert "of its cells were not run" in text
