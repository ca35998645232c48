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
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
EXPECTED = {signal.SIGKILL: (-9,), signal.SIGTERM: (-15, 143), signal.SIGINT: (130,)}
_AGAIN, _MOST = 0.85, 12  # probability of another kill, and their largest number in a row
_ENDING = 0.3  # share of the kills that are aimed at the end, where files are written
_lock = Lock()
_seconds: dict[str, float] = {}  # that a scenario takes from its beginning to its end, lately


@dataclass(frozen=True)
class Scenario:
    """A command that continues after an interruption, and the files that must be the same in the end."""

    arguments: tuple[str, ...]
    files: tuple[str, ...]
    weight: int = 1


_TRAINED = ("o/model.safetensors", "o/history.json", "o/evaluation.json")
_RUN = "runs/people"
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
    "partition": Scenario(
        ("partition", "people.csv", "friends.csv", *ROLES, "--parts", "2", "--out", "parts"), ("parts/**/*",), 5
    ),
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
        1,
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
    write_project(setting.folder)
    for number in range(most):
        if number and random.random() > _AGAIN:
            break
        outcome = Trial(scenario.arguments, setting.folder).kill_after(moment(random, seconds), random.choice(signals))
        report.add(outcome)
        report.faults += unexpected(outcome)
        report.counts["kills"] += outcome.killed
        if not outcome.killed or outcome.code == 0:
            if number == 0 and outcome.code == 0:
                _seconds[name] = outcome.seconds  # the machine may be faster now
            break
        seconds = max(seconds / 2, outcome.seconds)  # what is done is not done again
    return finished(name, report, setting, expected)


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
            write_project(folder)
            outcome = run(SCENARIOS[name].arguments, folder)
            if outcome.code != 0 or outcome.faults():
                raise RuntimeError(f"undisturbed, {name!r} fails:\n{outcome.describe()}")
            found = results(folder, SCENARIOS[name].files)
            kept.write_text(json.dumps({"files": found, "seconds": outcome.seconds}))
        stored = json.loads(kept.read_text())
    return stored["files"], _seconds.setdefault(name, stored["seconds"])
