"""Records are whole or absent, and found by the key of their spec."""

from pathlib import Path

import pytest
from tests.experiments.made_up import record

from fairpass.errors import DataError
from fairpass.runs import Configuration, RunRecord, RunSpec, RunStore

GCN, GIN = Configuration("gcn"), Configuration("gin")
SPECS = {each.method: [RunSpec("german", each, seed) for seed in (0, 1)] for each in (GCN, GIN)}


def fill(records: RunStore, configuration: Configuration, selections: list[float]) -> None:
    for run, selection in zip(SPECS[configuration.method], selections, strict=True):
        records.add(record(run, selection=selection))


def test_what_was_added_is_found_again(tmp_path: Path) -> None:
    records = RunStore(tmp_path)
    fill(records, GCN, [1.0, 2.0])
    found = RunStore(tmp_path)
    assert len(found) == 2
    assert all(found.get(run) == records.get(run) is not None for run in SPECS[GCN.method])
    assert all(found.get(run) is None for run in SPECS[GIN.method])
    assert list(found) == list(records)


def test_a_missing_directory_has_no_records(tmp_path: Path) -> None:
    assert len(RunStore(tmp_path / "missing")) == 0


def test_packed_records_are_the_same(tmp_path: Path) -> None:
    records = RunStore(tmp_path / "loose")
    fill(records, GCN, [1.0, 2.0])
    keys = [run.key for runs in SPECS.values() for run in runs]  # those of GIN were not made
    assert records.pack(keys, tmp_path / "packed" / "german.jsonl") == 2
    packed = RunStore(tmp_path / "packed")
    assert sorted(packed, key=lambda r: str(r["key"])) == sorted(records, key=lambda r: str(r["key"]))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"words"', '{"method": "gcn"}'])
def test_a_damaged_record_is_a_clear_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "german-gcn-0.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"german-gcn-0\.json' must hold a record of a run"):
        RunStore(tmp_path)


def test_the_line_of_a_damaged_packed_record_is_told(tmp_path: Path) -> None:
    (tmp_path / "german.jsonl").write_text('{"key": "a"}\n{"key": \n')
    with pytest.raises(DataError, match=r"german\.jsonl, line 2' must hold a record"):
        RunStore(tmp_path)


def test_forgotten_records_stay_on_disk(tmp_path: Path) -> None:
    records = RunStore(tmp_path)
    fill(records, GCN, [1.0, 2.0])
    records.forget(SPECS[GCN.method][:1])
    assert len(records) == 1
    assert len(RunStore(tmp_path)) == 2


def test_another_seed_is_another_record() -> None:
    assert record(RunSpec("german", GCN, 0))["key"] != record(RunSpec("german", GCN, 1))["key"]


def test_without_a_directory_records_are_in_memory() -> None:
    records = RunStore()
    fill(records, GCN, [1.0, 2.0])
    assert records.missing([*SPECS["gcn"], *SPECS["gin"], *SPECS["gin"]]) == SPECS["gin"]


def test_failures_are_kept_and_accidents_made_again() -> None:
    records, (diverged, killed) = RunStore(), SPECS["gcn"]
    records.keep(diverged, RunRecord("gcn", 0, 1.0, None, "not finite"))
    records.keep(killed, RunRecord("gcn", 1, 1.0, None, "killed", {"retry": True}))
    assert [found["error"] for found in records] == ["not finite", "killed"]
    assert records.missing([diverged, killed]) == [killed]


def test_records_are_one_table() -> None:
    records = RunStore()
    fill(records, GCN, [1.0, 2.0])
    fill(records, GIN, [3.0, 4.0])
    frame = records.frame()
    assert list(frame["method"]) == ["gcn", "gcn", "gin", "gin"]
    assert list(frame["validation.selection"]) == [1.0, 2.0, 3.0, 4.0]
    assert frame["training.epochs"].eq(500).all()
    assert frame["key"].is_unique
