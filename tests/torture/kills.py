"""Kill a command at random moments, several times in a row, let it finish, and compare with an undisturbed run."""

import json
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

from tests.torture.materials import ROLES, TABLES, differences, leftovers, results, write_project
from tests.torture.reporting import Report, Setting
from tests.trial import Outcome, Trial, run

# SIGKILL leaves no time to tidy up; the others do, which is another thing to go wrong.
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
EXPECTED = {number: (-number, 128 + number) for number in SIGNALS}
_AGAIN, _MOST = 0.85, 12  # probability of another kill, and their largest number in a row
_ENDING = 0.3  # share of the kills that are aimed at the end, where files are written
_WORKER = 0.5  # share of the kills that hit a worker, where there are some
_GROUP = 0.3  # share of the signals that all processes of a command get
_lock = Lock()
_seconds: dict[str, float] = {}  # that a scenario takes from its beginning to its end, lately


@dataclass(frozen=True)
class Scenario:
    """A command that continues after an interruption, and the files that must be the same in the end."""

    arguments: tuple[str, ...]
    files: tuple[str, ...]
    weight: int = 1
    before: tuple[str, ...] = ()  # a command that makes what this one needs
    workers: bool = False  # whether it starts processes, which may be killed alone: it must get over that


_TRAINED = ("o/model.safetensors", "o/history.json", "o/evaluation.json")
_RUN = "runs/people"
_PARTITION = ("partition", "people.csv", "friends.csv", *ROLES, "--parts", "2", "--out", "parts")
_REPRODUCE = ("reproduce", "ablation", "--quick", "--datasets", "german", "--out", "r")
_REPRODUCED = ("r/records/*", "r/ablation/*.md")
SCENARIOS = {
    "train": Scenario(("train", *TABLES, "--epochs", "40", "--out", "o"), _TRAINED, 6),
    "train gcn": Scenario(("train", *TABLES, "--method", "gcn", "--epochs", "60", "--out", "o"), _TRAINED, 3),
    "train german": Scenario(("train", "german", "--epochs", "12", "--out", "o"), _TRAINED, 3),
    "compare": Scenario(
        ("compare", *TABLES, "--methods", "gcn,gmmd", "--seeds", "2", "--epochs", "15", "--out", "R.json"),
        ("R.json",),
        6,
    ),
    "tune": Scenario(
        ("tune", *TABLES, "--trials", "5", "--seeds", "1", "--epochs", "8", "--out", "t"), ("t/tuned.json",), 4
    ),
    "grid": Scenario(
        (
            *("tune", *TABLES, "--method", "gcn", "--strategy", "grid"),
            *("--trials", "6", "--seeds", "1", "--epochs", "8", "--out", "t"),
        ),
        ("t/tuned.json",),
        3,
    ),
    "partition": Scenario(_PARTITION, ("parts/**/*",), 5),
    "run": Scenario(
        ("run", "fairpass.toml"),
        (
            *(f"{_RUN}/*.safetensors", f"{_RUN}/models/*", f"{_RUN}/predictions.csv", f"{_RUN}/models.json"),
            *(f"{_RUN}/evaluation.json", f"{_RUN}/tuning-*.json", f"{_RUN}/data.json", f"{_RUN}/audit.json"),
        ),
        3,
    ),
    "jobs": Scenario(
        ("compare", *TABLES, "--methods", "gcn", "--seeds", "2", "--epochs", "20", "--jobs", "2", "--out", "R.json"),
        ("R.json",),
        workers=True,
    ),
    "parts": Scenario(
        ("train", "parts", "--workers", "2", "--epochs", "10", "--out", "o"), _TRAINED, before=_PARTITION, workers=True
    ),
    "benchmark": Scenario(
        (
            *("benchmark", "--graphs", "german", "--methods", "logistic,gcn", "--splits", "2", "--no-controls"),
            *("--out", "b"),
        ),
        ("b/records/*", "b/benchmark-differences-*", "b/benchmark-[hu]*.md"),
        2,
    ),
    "reproduce": Scenario(_REPRODUCE, _REPRODUCED, 2),
    "reproduce jobs": Scenario((*_REPRODUCE, "--jobs", "2"), _REPRODUCED, workers=True),
    "attribute": Scenario(
        ("attribute", "gmmd", *TABLES, "--splits", "2", "--seeds", "1", "--out", "a"), ("a/records/*",), 2
    ),
}


def trial(setting: Setting) -> Report:
    weights = [each.weight for each in SCENARIOS.values()]
    name = setting.random.choices(list(SCENARIOS), weights)[0]
    return disturbed(name, setting)


def disturbed(name: str, setting: Setting, signals: Sequence[int] = SIGNALS, most: int = _MOST) -> Report:
    """Kill one scenario again and again, and compare what it comes to."""
    scenario, random, report = SCENARIOS[name], setting.random, Report()
    expected, seconds = undisturbed(name, setting.shared)
    prepare(name, setting.folder)
    for number in range(most):
        if number and random.random() > _AGAIN:
            break
        begun = Trial(scenario.arguments, setting.folder)
        begun.ends_within(moment(random, seconds))
        if scenario.workers and random.random() < _WORKER:
            report.counts["kills"] += begun.kill_worker(random)
        else:
            begun.send(random.choice(signals), to_group=random.random() < _GROUP)
        outcome = report.add(begun.outcome())
        report.faults += unexpected(outcome)
        report.counts["kills"] += outcome.killed
        if not outcome.killed or outcome.code == 0:
            if number == 0 and outcome.code == 0:
                _seconds[name] = outcome.seconds  # the machine may be faster now
            break
        seconds = max(seconds / 2, outcome.seconds)  # what is done is not done again
    return finished(name, report, setting, expected)


def prepare(name: str, folder: Path) -> None:
    """Write what a scenario needs."""
    write_project(folder)
    if before := SCENARIOS[name].before:
        whole(run(before, folder))


def finished(name: str, report: Report, setting: Setting, expected: dict[str, Any]) -> Report:
    """Run a command to its end, and compare."""
    final = report.add(run(SCENARIOS[name].arguments, setting.folder))
    if final.code != 0:
        report.faults.append(f"after the interruptions it ends with {final.code}")
    try:
        found = results(setting.folder, SCENARIOS[name].files)
        report.faults += [f"a result differs: {each}" for each in differences(expected, found)]
    except (OSError, json.JSONDecodeError) as error:
        report.faults.append(f"a result cannot be read: {error}")
    report.faults += [f"a temporary file is left: {each}" for each in leftovers(setting.folder)]
    return report


def moment(random: Random, seconds: float) -> float:
    """Return when to kill a command that takes some time: at any moment, or near its end."""
    low, high = (0.8, 1.1) if random.random() < _ENDING else (0.0, 1.0)
    return 0.005 + seconds * random.uniform(low, high)


def unexpected(outcome: Outcome) -> list[str]:
    """Return a fault if a command did not end as its signal says."""
    if outcome.sent is None:
        return [] if outcome.code == 0 else [f"undisturbed, it ends with {outcome.code}"]
    allowed = (0, *EXPECTED[signal.Signals(outcome.sent)])
    return [] if outcome.code in allowed else [f"after {signal.Signals(outcome.sent).name} it ends with {outcome.code}"]


def undisturbed(name: str, shared: Path) -> tuple[dict[str, Any], float]:
    """Return the files of a run without interruptions, and its seconds; made once."""
    folder = shared / f"undisturbed {name}"
    kept = folder.with_suffix(".json")
    with _lock:
        if not kept.exists():
            shutil.rmtree(folder, ignore_errors=True)
            prepare(name, folder)
            outcome = whole(run(SCENARIOS[name].arguments, folder))
            found = results(folder, SCENARIOS[name].files)
            kept.write_text(json.dumps({"files": found, "seconds": outcome.seconds}))
        stored = json.loads(kept.read_text())
    return stored["files"], _seconds.setdefault(name, stored["seconds"])


def whole(outcome: Outcome) -> Outcome:
    """Return the outcome of a command that nothing disturbed, which must be a success."""
    if outcome.code != 0 or outcome.faults():
        raise RuntimeError(f"undisturbed, it fails:\n{outcome.describe()}")
    return outcome
