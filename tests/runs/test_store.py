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


@pytest.mark.parametrize("letter", ["x", "字"])
def test_names_of_graphs_may_be_long(tmp_path: Path, letter: str) -> None:
    specs = [RunSpec(letter * 240, Configuration("gcn"), seed) for seed in (0, 1)]
    store = RunStore(tmp_path)
    for spec in specs:
        store.keep(spec, RunRecord("gcn", spec.seed, 0.0, None, "failed", {"environment": {}}))
    assert not RunStore(tmp_path).missing(specs)


def test_a_missing_directory_has_no_records(tmp_path: Path) -> None:
    assert len(RunStore(tmp_path / "missing")) == 0


def test_packed_records_are_the_same(tmp_path: Path) -> None:
    records = RunStore(tmp_path / "loose")
    fill(records, GCN, [1.0, 2.0])
    keys = [run.key for runs in SPECS.values() for run in runs]  # those of GIN were not made
    assert records.pack(keys, tmp_path / "packed" / "german.jsonl") == 2
    packed = RunStore(tmp_path / "packed")
    assert sorted(packed, key=lambda r: str(r["key"])) == sorted(records, key=lambda r: str(r["key"]))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"words"', '{"method": "gcn"}', '{"key": "a", "error": null}'])
def test_a_half_written_record_is_made_again(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    records = RunStore(tmp_path)
    fill(records, GCN, [1.0, 2.0])
    spec = SPECS["gcn"][0]
    whole = (tmp_path / f"{spec.key}.json").read_text()
    (tmp_path / f"{spec.key}.json").write_text(text)
    damaged = RunStore(tmp_path)
    assert damaged.missing(SPECS["gcn"]) == [spec]
    assert f"{spec.key}.json' is a damaged record" in caplog.text
    damaged.add(record(spec, selection=1.0))
    assert (tmp_path / f"{spec.key}.json").read_text() == whole
    assert not RunStore(tmp_path).missing(SPECS["gcn"])


def test_a_line_of_a_packed_file_that_was_cut_off_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = RunStore(tmp_path / "loose")
    fill(records, GCN, [1.0, 2.0])
    path = tmp_path / "packed" / "german.jsonl"
    records.pack([spec.key for spec in SPECS["gcn"]], path)
    path.write_text(path.read_text()[:-40])
    assert len(RunStore(path.parent)) == 1
    assert "german.jsonl, line 2' is a damaged record" in caplog.text


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


@pytest.mark.parametrize("name", ["packed.jsonl", "single.json"])
def test_a_directory_in_the_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match=f"{name}' must be a file with records"):
        RunStore(tmp_path)
