"""Start several commands at once on the same files: each must show its own result, and none may be lost."""

import json
import shutil
import signal
import sqlite3
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from tests.torture.kills import SCENARIOS, SIGNALS, finished, prepare, undisturbed, unexpected, whole
from tests.torture.materials import TABLES, differences, leftovers, steady, write_project
from tests.torture.reporting import Report, Setting
from tests.trial import Outcome, Trial, run

_METHODS = ("gcn", "logistic", "mlp", "fairdrop", "gmmd", "mmd")
_FAIRNESS = ("0", "0.5", "1")
_COMPARE = ("compare", *TABLES, "--seeds", "2", "--epochs", "6", "--out", "R.json", "--json", "--methods")
_SAME = ("tune", "run", "benchmark", "reproduce", "attribute", "train", "train gcn", "partition", "parts")
_KILLED = 0.3  # probability that one of them is killed
_lock = Lock()
_SHOWN = ("rows", "chosen", "reason", "reference", "cost", "tried")  # of a project's result


def trial(setting: Setting) -> Report:
    return setting.random.choice([compare, compare, same_comparison, project, grid, locked, same, same])(setting)


def together(commands: Sequence[Sequence[str]], setting: Setting, report: Report) -> list[Outcome]:
    """Start commands at almost the same moment, sometimes kill one, and wait for all."""
    random, folder = setting.random, setting.folder
    victim = random.randrange(len(commands)) if random.random() < _KILLED else None
    spread, delay, number = random.choice((0.0, 0.0, 0.2)), random.uniform(0.05, 2.0), random.choice(SIGNALS)
    trials = []
    for command in commands:
        trials.append(Trial(command, folder))
        time.sleep(spread * random.random())
    if victim is not None:
        trials[victim].ends_within(delay)
        trials[victim].send(number)
    report.counts["starts"] += len(commands)
    report.counts["kills"] += sum(each.sent is not None for each in trials)
    return [report.add(each.outcome()) for each in trials]


def compare(setting: Setting) -> Report:
    """Compare different methods into one file: at the end it has all of them, and each process showed its own."""
    report, random = Report(), setting.random
    reference = _reference("comparison", setting.shared, (*_COMPARE, ",".join(_METHODS)))
    write_project(setting.folder)
    size = random.randint(2, 6)
    asked = [random.sample(_METHODS, random.randint(1, 2)) for _ in range(size)]
    outcomes = together([(*_COMPARE, ",".join(each)) for each in asked], setting, report)
    return _compared(report, setting, asked, outcomes, reference)


def same_comparison(setting: Setting) -> Report:
    """Compare the same methods: they share the work, and all show all."""
    report, random = Report(), setting.random
    reference = _reference("comparison", setting.shared, (*_COMPARE, ",".join(_METHODS)))
    write_project(setting.folder)
    asked = [["gcn", "logistic", "mlp"]] * random.randint(2, 4)
    outcomes = together([(*_COMPARE, ",".join(each)) for each in asked], setting, report)
    return _compared(report, setting, asked, outcomes, reference)


def _compared(
    report: Report, setting: Setting, asked: Sequence[Sequence[str]], outcomes: Sequence[Outcome], reference: Any
) -> Report:
    expected = {(run["method"], run["seed"]): run for run in steady(reference)["runs"]}
    wanted = {"constant"}
    for names, outcome in zip(asked, outcomes, strict=True):
        report.faults += unexpected(outcome)
        if outcome.code == 0:
            wanted |= set(names)
            shown = steady(json.loads(outcome.stdout))["runs"]
            report.faults += compared_runs({"constant", *names}, shown, expected, "shown")
    stored = setting.folder / "R.json"
    if any(outcome.code == 0 for outcome in outcomes):
        report.faults += compared_runs(wanted, steady(json.loads(stored.read_text()))["runs"], expected, "in the file")
        report.faults += [f"a temporary file is left: {each}" for each in _left(setting.folder, outcomes)]
    return report


def compared_runs(names: set[str], found: list[Any], expected: dict[Any, Any], where: str) -> list[str]:
    keys = [(run["method"], run["seed"]) for run in found]
    faults = [f"a result is lost, not {where}: {name} {seed}" for name in sorted(names) for seed in (0, 1)
              if (name, seed) not in keys]  # fmt: skip
    faults += [f"a result is {where} twice: {key}" for key in set(keys) if keys.count(key) > 1]
    for key, record in zip(keys, found, strict=True):
        faults += [f"a result {where} is foreign: {each}" for each in differences(expected.get(key), record, str(key))]
    return faults


def _left(folder: Path, outcomes: Sequence[Outcome]) -> list[str]:
    """Return temporary files; after SIGKILL only those that the next writer would remove are there, and it will."""
    return [] if any(each.sent == signal.SIGKILL for each in outcomes) else leftovers(folder)


def project(setting: Setting) -> Report:
    """Run one project with different wishes: each process shows what it was asked for."""
    report, random = Report(), setting.random
    reference = {wish: _run_with(wish, setting.shared) for wish in _FAIRNESS}
    shutil.copytree(setting.shared / "project", setting.folder, dirs_exist_ok=True)
    wishes = [random.choice(_FAIRNESS) for _ in range(random.randint(2, 4))]
    commands = [("run", "fairpass.toml", "--fairness", wish, "--json") for wish in wishes]
    for wish, outcome in zip(wishes, together(commands, setting, report), strict=True):
        report.faults += unexpected(outcome)
        if outcome.code == 0:
            shown = _shown(json.loads(outcome.stdout))
            report.faults += [f"a foreign result is shown: {each}" for each in differences(reference[wish], shown)]
    return report


def _shown(document: dict[str, Any]) -> Any:
    return steady({name: document[name] for name in _SHOWN if name in document})


def _run_with(wish: str, shared: Path) -> Any:
    """Return what a project shows with one wish, undisturbed; the searches are made once."""
    folder, kept = shared / "project", shared / f"project {wish}.json"
    with _lock:
        if not kept.exists():
            if not folder.exists():
                made = shared / "project in work"
                write_project(made)
                whole(run(("run", "fairpass.toml"), made))
                made.rename(folder)
            work = Path(shutil.copytree(folder, shared / f"project with {wish}", dirs_exist_ok=True))
            outcome = whole(run(("run", "fairpass.toml", "--fairness", wish, "--json"), work))
            kept.write_text(json.dumps(_shown(json.loads(outcome.stdout))))
        return json.loads(kept.read_text())


def grid(setting: Setting) -> Report:
    """Share the trials of one grid: none is made twice, and there are as many as asked for."""
    report, random = Report(), setting.random
    write_project(setting.folder)
    command = SCENARIOS["grid"].arguments
    outcomes = together([command] * random.randint(2, 4), setting, report)
    for outcome in outcomes:
        report.faults += unexpected(outcome)
    if all(each.killed for each in outcomes):
        return report
    final = report.add(run(command, setting.folder))  # also if one was killed, all is there now
    if final.code:
        report.faults.append(f"when all is done it ends with {final.code}")
        return report
    tuned = json.loads((setting.folder / "t/tuned.json").read_text())
    points = [
        json.dumps([each[name] for name in sorted(each) if name in ("parameters", "training")])
        for each in tuned["points"]
    ]
    number = int(command[command.index("--trials") + 1])
    if len(points) + tuned["pruned"] + tuned["failed"] != number:
        report.faults.append(f"{number} trials were asked for, and {len(points)} made")
    report.faults += [f"a setting was tried twice: {each}" for each in set(points) if points.count(each) > 1]
    return report


def locked(setting: Setting) -> Report:
    """Another program locks the study of a search for a while: the search waits for it, but not if it is to end."""
    report, random, database = Report(), setting.random, setting.folder / "t" / "study.db"
    expected, seconds = undisturbed("tune", setting.shared)
    write_project(setting.folder)
    search = Trial(SCENARIOS["tune"].arguments, setting.folder)
    report.counts["starts"] += 1
    search.ends_within(random.uniform(0, seconds))
    with ExitStack() as held:
        if database.exists():
            other = held.enter_context(closing(sqlite3.connect(database, isolation_level=None)))
            with suppress(sqlite3.OperationalError):  # the search is writing
                other.execute(f"BEGIN {random.choice(('EXCLUSIVE', 'IMMEDIATE'))}")
                report.counts["locks"] += 1
        search.ends_within(random.uniform(0, 8))
        if random.random() < 0.5:
            search.send(random.choice(SIGNALS))
            search.ends_within(search.limit)  # although the study is locked
    outcome = report.add(search.outcome())
    report.counts["kills"] += outcome.killed
    report.faults += unexpected(outcome)
    return finished("tune", report, setting, expected)


def same(setting: Setting) -> Report:
    """Start one command several times: they share the work or take turns, and all succeed with the same files."""
    report, random = Report(), setting.random
    name = random.choice(_SAME)
    expected, _ = undisturbed(name, setting.shared)
    prepare(name, setting.folder)
    for outcome in together([SCENARIOS[name].arguments] * random.randint(2, 4), setting, report):
        report.faults += unexpected(outcome)
    return finished(name, report, setting, expected)


def _reference(name: str, shared: Path, command: Sequence[str]) -> Any:
    """Return the JSON that a command prints undisturbed; made once."""
    kept = shared / f"{name}.json"
    with _lock:
        if not kept.exists():
            folder = shared / name
            write_project(folder)
            kept.write_text(whole(run(command, folder)).stdout)
    return json.loads(kept.read_text())
