"""Records are whole or absent, and validation chooses among them."""

from pathlib import Path

import pytest
from tests.experiments.made_up import record

from fairpass.errors import DataError
from fairpass.experiments import Cell, Configuration, Records, Spec

GCN, GIN = Configuration("gcn"), Configuration("gin")
CELL = Cell("german", "plain", (GCN, GIN), seeds=(0, 1))


def fill(records: Records, configuration: Configuration, selections: list[float], **test: float) -> None:
    for run, selection in zip(CELL.runs(configuration), selections, strict=False):
        records.add(record(run, test, selection=selection))


def test_what_was_added_is_found_again(tmp_path: Path) -> None:
    records = Records(tmp_path)
    fill(records, GCN, [1.0, 2.0])
    found = Records(tmp_path)
    assert len(found) == 2
    assert all(run in found for run in CELL.runs(GCN))
    assert not any(run in found for run in CELL.runs(GIN))
    assert list(found) == list(records)


def test_a_missing_directory_has_no_records(tmp_path: Path) -> None:
    assert len(Records(tmp_path / "missing")) == 0


def test_packed_records_are_the_same(tmp_path: Path) -> None:
    records = Records(tmp_path / "loose")
    fill(records, GCN, [1.0, 2.0])
    keys = [run.key for run in CELL.specs()]  # those of GIN were not made
    assert records.pack(keys, tmp_path / "packed" / "german.jsonl") == 2
    packed = Records(tmp_path / "packed")
    assert sorted(packed, key=lambda r: str(r["key"])) == sorted(records, key=lambda r: str(r["key"]))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"words"', '{"method": "gcn"}'])
def test_a_damaged_record_is_a_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "german-gcn-0.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"german-gcn-0\.json' must hold a record of a run"):
        Records(tmp_path)


def test_the_line_of_a_damaged_packed_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "german.jsonl").write_text('{"key": "a"}\n{"key": \n')
    with pytest.raises(DataError, match=r"german\.jsonl, line 2' must hold a record"):
        Records(tmp_path)


def test_validation_chooses_by_the_mean_over_the_seeds(tmp_path: Path) -> None:
    records = Records(tmp_path)
    fill(records, GCN, [3.0, 0.0], ACC=90.0)
    fill(records, GIN, [2.0, 2.0], ACC=80.0)
    chosen = records.chosen(CELL)
    assert chosen is not None
    assert chosen.configuration == GIN
    assert chosen.values("ACC") == [80.0, 80.0]
    assert chosen.selection == 2.0


def test_a_candidate_counts_only_with_all_seeds_and_no_error(tmp_path: Path) -> None:
    records = Records(tmp_path)
    fill(records, GCN, [9.0])
    assert records.chosen(CELL) is None
    fill(records, GIN, [1.0, 1.0])
    chosen = records.chosen(CELL)
    assert chosen is not None
    assert chosen.configuration == GIN
    records.add({**record(CELL.runs(GIN)[0]), "error": "diverged"})
    assert records.chosen(CELL) is None


def test_forgotten_records_stay_on_disk(tmp_path: Path) -> None:
    records = Records(tmp_path)
    fill(records, GCN, [1.0, 2.0])
    records.forget(CELL.runs(GCN)[:1])
    assert len(records) == 1
    assert len(Records(tmp_path)) == 2


def test_near_constant_needs_most_runs(tmp_path: Path) -> None:
    records = Records(tmp_path)
    first, second = CELL.runs(GCN)
    records.add(record(first, near_constant=True))
    records.add(record(second))
    chosen = records.chosen(CELL)
    assert chosen is not None
    assert not chosen.is_near_constant
    records.add(record(second, near_constant=True))
    assert chosen.is_near_constant is False
    again = records.chosen(CELL)
    assert again is not None
    assert again.is_near_constant


def test_another_seed_is_another_record() -> None:
    assert record(Spec("german", GCN, 0))["key"] != record(Spec("german", GCN, 1))["key"]
