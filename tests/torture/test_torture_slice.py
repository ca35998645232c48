"""A few trials of every part of the harness with a fixed seed; and the harness notices what is planted."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.torture import damage, disk, extreme_numbers, hostile, interruptions, kills, planted, starts
from tests.torture.__main__ import Torture, repeat
from tests.torture.materials import differences, leftovers, results
from tests.torture.mutations import change_bytes
from tests.torture.reporting import Report, Setting
from tests.torture.stored import Kind
from tests.trial import Outcome, Trial

SEED = "slice"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shared")


@pytest.fixture
def setting(tmp_path: Path, shared: Path, request: pytest.FixtureRequest) -> Setting:
    folder = tmp_path / "trial" / "work"
    folder.mkdir(parents=True)
    return Setting(Random(f"{SEED} {request.node.name}"), folder, shared)


def clean(report: Report) -> None:
    assert not report.faults, report.describe()


def test_a_killed_training_ends_as_an_undisturbed_one(setting: Setting) -> None:
    report = kills.disturbed("train", setting, [signal.SIGKILL], most=2)
    clean(report)


def test_an_interrupted_partition_ends_as_an_undisturbed_one(setting: Setting) -> None:
    clean(interruptions.interrupted("partition", setting, most=1))


def test_concurrent_comparisons_lose_nothing(setting: Setting) -> None:
    report = starts.compare(setting)
    clean(report)
    assert report.counts["starts"] >= 2


@pytest.mark.parametrize("number", range(3))
def test_damaged_files_are_refused(setting: Setting, number: int) -> None:
    report = damage.trial(setting)
    clean(report)
    assert report.counts["files"] >= damage.FEW


@pytest.mark.parametrize("kind", [hostile.names, hostile.settings, hostile.shapes, hostile.tables])
def test_hostile_texts_do_nothing(setting: Setting, kind: Callable[[Setting], Report]) -> None:
    report = kind(setting)
    clean(report)
    assert not hostile.formulas(setting.folder)


@pytest.mark.parametrize("number", range(3))
def test_extreme_numbers_are_refused_or_used(setting: Setting, number: int) -> None:
    clean(extreme_numbers.trial(setting))


def test_a_full_disk_is_said_and_survived(setting: Setting) -> None:
    report = disk.on("partition", setting, 16 * 1024)
    if report.skipped:
        pytest.skip(report.skipped)
    clean(report)
    assert report.counts["full disks"] == 1


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (planted.fails, "Traceback"),
        (planted.hangs, "it hangs"),
        (planted.leaves_a_process, "it left a process behind: .*sleep 3600"),
        (planted.leaves_a_process_in_another_session, "it left a process behind: .*sleep 3600"),
        (planted.leaves_a_temporary_file, "it left a temporary file behind: forgotten-"),
        (planted.colours_the_terminal, "escape sequence"),
    ],
)
def test_the_harness_notices(function: Callable[[], None], fault: str, tmp_path: Path) -> None:
    outcome = Trial(
        [], tmp_path / "work", function, limit=1.0 if function is planted.hangs else 120.0, grace=1.0
    ).outcome()
    with pytest.raises(AssertionError, match=fault):
        clean(Report(outcome.faults()))


def test_the_harness_kills_and_knows_it(tmp_path: Path) -> None:
    trial = Trial([], tmp_path / "work", planted.hangs)
    trial.send(signal.SIGKILL)
    outcome = trial.outcome()
    assert (outcome.code, outcome.sent, outcome.faults(), kills.unexpected(outcome)) == (-9, 9, [], [])
    other = Outcome((), 1, "", "", 0.0, sent=signal.SIGTERM)
    assert kills.unexpected(other) == ["after SIGTERM it ends with 1"]


@pytest.mark.usefixtures("reachable")
def test_the_harness_interrupts_where_and_as_often_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[str] = []

    def interrupt(*_: object) -> None:
        passed.append("interrupted")
        raise TimeoutError

    def step(name: str) -> None:
        passed.append(name)

    def command() -> None:
        for name in ("tidy up", "a", "b", "c"):
            try:
                step(name)
            except TimeoutError:
                step("tidy up")

    code = step.__code__
    monkeypatch.setattr(interruptions, "command", command)
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        place = f"{code.co_filename} {code.co_qualname} call "
        with pytest.raises(TimeoutError):
            interruptions.interrupt(place, 3, signal.SIGUSR1, 1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert passed == ["tidy up", "a", "interrupted", "interrupted"]


def test_the_harness_notices_lost_and_foreign_and_double_results() -> None:
    expected = {("gcn", seed): {"method": "gcn", "seed": seed, "evaluation": 0.5} for seed in (0, 1)}
    whole = list(expected.values())
    assert starts.compared_runs({"gcn"}, whole, expected, "shown") == []
    assert "is lost" in starts.compared_runs({"gcn"}, whole[:1], expected, "shown")[0]
    assert "twice" in starts.compared_runs({"gcn"}, [*whole, whole[0]], expected, "shown")[0]
    foreign = [{**whole[0], "evaluation": 0.6}, whole[1]]
    assert "is foreign" in starts.compared_runs({"gcn"}, foreign, expected, "shown")[0]


def test_the_harness_notices_a_differing_result_and_a_temporary_file(tmp_path: Path) -> None:
    (tmp_path / "R.json").write_text(json.dumps({"auc": 0.5, "seconds": 1.0}))
    (tmp_path / "m.bin").write_bytes(b"model")
    before = results(tmp_path, ["*"])
    (tmp_path / "R.json").write_text(json.dumps({"auc": 0.5, "seconds": 2.0}))
    assert differences(before, results(tmp_path, ["*"])) == []
    (tmp_path / "m.bin").write_bytes(b"modem")
    assert differences(before, results(tmp_path, ["*"]))[0].startswith("/m.bin")
    planted.loses_everything(tmp_path)
    assert len(differences(before, results(tmp_path, ["*"]))) == 2
    (tmp_path / ".R.json.0.tmp").touch()
    assert leftovers(tmp_path) == [".R.json.0.tmp"]


def _damaged(path: Path, random: Random) -> str:
    path.write_bytes(change_bytes(path.read_bytes(), random))
    return "bytes"


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (lambda path: path.read_bytes(), "changed bytes were accepted"),
        (lambda path: json.loads("{"), "JSONDecodeError"),
    ],
)
def test_the_harness_notices_readers_that_accept_anything(read: Any, fault: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text('{"auc": 0.5}')
    kind = Kind(tmp_path / "file", _damaged, read)
    _, found = damage.damage(kind, Random(0), tmp_path / "copy", None)
    assert found is not None
    assert fault in found


def test_what_a_trial_does_follows_from_its_seed_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []

    def trial(setting: Setting) -> Report:
        drawn.append(setting.random.random())
        return Report()

    monkeypatch.setattr(kills, "trial", trial)
    for number, seed in ((0, SEED), (1, SEED), (0, "other"), (0, SEED)):
        repeat("kills", number, seed, tmp_path)
    assert drawn[3] == drawn[0]
    assert len(set(drawn)) == 3


def test_faults_are_counted_and_kept(tmp_path: Path) -> None:
    torture = Torture({"kills": 1.0}, 0, SEED, tmp_path)
    torture.note("kills", 0, Report(["lost"]))
    torture.note("kills", 1, Report())
    assert (torture.sums["kills"].fault, torture.sums["kills"].clean) == (1, 1)
    assert [each["trial"] for each in torture.to_dict()["faults"]] == [0]
    assert "kills" in torture.table()
