"""The runner makes what has no record, once, and keeps each run as soon as it is done. The runs are real."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from torch_geometric.data import Data

from fairpass.experiments import EXTRA_MEASURES
from fairpass.runs import Configuration, Progress, RunRecord, RunSpec, RunStore, executor_for, run, runner

SHORT = {"epochs": 3}
GCN, GMMD = Configuration("gcn", {}, SHORT), Configuration("gmmd", {}, SHORT)


def specs(*configurations: Configuration, seeds: int = 2, measures: tuple[str, ...] = ()) -> list[RunSpec]:
    return [RunSpec("german", each, seed, measures) for each in configurations for seed in range(seeds)]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Watch which runs are made."""
    keys: list[str] = []
    make = runner.make_records

    def watched(data: Data, batch: Sequence[RunSpec], **options: Any) -> list[RunRecord]:
        keys.extend(spec.key for spec in batch)
        return make(data, batch, **options)

    monkeypatch.setattr(runner, "make_records", watched)
    return keys


def test_a_record_has_all_there_is_to_know(tmp_path: Path) -> None:
    records = RunStore(tmp_path)
    (spec,) = specs(GMMD, seeds=1, measures=("curves", "theorems", "cases"))
    assert run([spec], records, measures=EXTRA_MEASURES) == 1
    found = records.get(spec)
    assert found is not None
    assert found["key"] == spec.key
    assert found["error"] is None
    assert found["epochs"] == 3
    assert found["training"]["epochs"] == 3
    assert found["environment"]["threads"] >= 1
    assert found["seconds"] > 0
    assert 0 <= found["test"]["AUC"] <= 100
    assert len(found["test"]["group_rates"]) == 2
    assert found["measured"]["curves"]["epoch"] == [0, 1, 2]
    assert found["measured"]["theorems"]["4.2"]["holds"]
    histogram = found["measured"]["cases"]["same label"]["histogram"]
    assert sum(histogram) == pytest.approx(1, abs=1e-2)


def test_what_has_a_record_is_not_made_again(tmp_path: Path, trained: list[str]) -> None:
    wanted = specs(GCN, GMMD)
    assert run(wanted[:1], RunStore(tmp_path)) == 1
    assert run([*wanted, *wanted], RunStore(tmp_path)) == 3
    assert run(wanted, RunStore(tmp_path)) == 0
    assert sorted(trained) == sorted(spec.key for spec in wanted)


def test_a_changed_configuration_is_all_that_is_made_again(tmp_path: Path, trained: list[str]) -> None:
    run(specs(GCN, GMMD), RunStore(tmp_path))
    trained.clear()
    changed = specs(GCN, GMMD.but(alpha=1.0))
    assert run(changed, RunStore(tmp_path)) == 2
    assert sorted(trained) == sorted(spec.key for spec in changed if spec.configuration.method == "gmmd")


def test_a_kill_loses_only_the_batch_in_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = runner.make_records

    def die_at_gmmd(data: Data, batch: Sequence[RunSpec], **options: Any) -> list[RunRecord]:
        if batch[0].configuration.method == "gmmd":
            raise KeyboardInterrupt
        return make(data, batch, **options)

    wanted = specs(GCN, GMMD)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "make_records", die_at_gmmd)
        with pytest.raises(KeyboardInterrupt):
            run(wanted, RunStore(tmp_path))
    assert {record["method"] for record in RunStore(tmp_path)} == {"gcn"}
    assert run(wanted, RunStore(tmp_path)) == 2


def test_the_same_run_gives_the_same_numbers_alone_and_together(tmp_path: Path) -> None:
    wanted = specs(GMMD)
    together, alone = RunStore(tmp_path / "together"), RunStore(tmp_path / "alone")
    run(wanted, together)
    run(wanted[1:], alone)
    pair = [records.get(wanted[1]) for records in (together, alone)]
    first, second = (record["test"] for record in pair if record is not None)
    assert {name: first[name] for name in ("AUC", "ACC")} == pytest.approx(
        {name: second[name] for name in ("AUC", "ACC")}
    )


def test_an_error_is_part_of_a_record(tmp_path: Path) -> None:
    records = RunStore(tmp_path)
    broken = specs(GCN.but(training={"learning_rate": 1e30}), seeds=1)
    assert run(broken, records) == 1
    found = RunStore(tmp_path).get(broken[0])
    assert found is not None
    assert "finite" in found["error"]
    assert "test" not in found
    assert records.missing(broken) == []


def test_progress_is_told_and_timed_runs_come_last(tmp_path: Path) -> None:
    seen: list[Progress] = []
    order: list[str] = []

    def watch(progress: Progress) -> None:
        seen.append(progress)
        order.append(progress.what)

    wanted = [*specs(GCN, seeds=1, measures=("timing",)), *specs(GMMD, seeds=1)]
    run(wanted, RunStore(tmp_path), progress=watch)
    assert order == ["german, gmmd", "german, gcn"]
    assert [progress.done for progress in seen] == [1, 2]
    assert all(progress.total == 2 for progress in seen)


@pytest.mark.usefixtures("forked_jobs")
def test_processes_share_the_work(tmp_path: Path) -> None:
    records = RunStore(tmp_path)
    wanted = specs(Configuration("constant"), GCN, seeds=1)
    assert run(wanted, records, executor=executor_for(2)) == 2
    found: list[Any] = [records.get(spec) for spec in wanted]
    assert [record["method"] for record in found] == ["constant", "gcn"]
