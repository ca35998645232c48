"""Interrupt a command at a place in its code, drawn from all that it passes, and compare with an undisturbed run.

Kills by the clock hit what takes long. These also hit what takes no time, such as the start and the end of workers.
"""

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any

from tests.torture.kills import SCENARIOS, finished, prepare, undisturbed, unexpected, whole
from tests.torture.reporting import Report, Setting
from tests.trial import Trial, command

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_MOST = 4  # interruptions in a row
_FIRST, _AGAIN = 0.5, 0.2  # probability that the first passing is meant, and that the same signal comes once more
_SOON = 200  # calls between the two
_EVENTS = ("call", "c_return")  # after these Python runs the handlers of signals
_lock = Lock()


def trial(setting: Setting) -> Report:
    return interrupted(setting.random.choice(list(SCENARIOS)), setting)


def interrupted(name: str, setting: Setting, most: int = _MOST) -> Report:
    """Interrupt one scenario several times, and compare what it comes to."""
    random, report = setting.random, Report()
    expected, _ = undisturbed(name, setting.shared)
    passed = places(name, setting.shared)
    prepare(name, setting.folder)
    for _ in range(most):
        place, number = random.choice(sorted(passed)), random.choice(SIGNALS)
        passing = 1 if random.random() < _FIRST else random.randint(1, passed[place])
        again = random.randint(1, _SOON) if random.random() < _AGAIN else 0
        begun = Trial((place, passing, number, again, *SCENARIOS[name].arguments), setting.folder, interrupt)
        begun.sent = number
        outcome = report.add(begun.outcome())
        report.faults += unexpected(outcome)
        if outcome.code == 0:  # what is done is not done again: it may not have come there
            report.counts["not reached"] += 1
            break
        report.counts["kills"] += 1
    return finished(name, report, setting, expected)


def places(name: str, shared: Path) -> dict[str, int]:
    """Return the places that a run without interruptions passes, and how often; found once."""
    kept = shared / f"places {name}.json"
    with _lock:
        if not kept.exists():
            folder = shared / f"places {name}"
            prepare(name, folder)
            whole(Trial((str(kept), *SCENARIOS[name].arguments), folder, record).outcome())
    found: dict[str, int] = json.loads(kept.read_text())
    return found


def record(kept: str, *arguments: str) -> None:
    """Run a command, and write the places that its main thread passes to a file."""
    passed: Counter[tuple[Any, ...]] = Counter()

    def count(frame: FrameType, event: str, called: Any) -> None:
        if event in _EVENTS:
            passed[frame.f_code, event, getattr(called, "__name__", "")] += 1

    sys.setprofile(count)
    try:
        command(*arguments)
    finally:
        sys.setprofile(None)
        found: Counter[str] = Counter()
        for (code, event, called), times in passed.items():
            found[_place(code, event, called)] += times
        Path(kept).write_text(json.dumps(found))


def interrupt(place: str, passing: int, number: int, again: int, *arguments: str) -> None:
    """Run a command, and send a signal to this process when its main thread passes a place for the given time."""
    left, function = passing, place.rsplit(" ", 3)[1]

    def watch(frame: FrameType, event: str, called: Any) -> None:
        nonlocal left
        if event not in _EVENTS or frame.f_code.co_qualname != function:
            return
        if _place(frame.f_code, event, getattr(called, "__name__", "")) == place:
            left -= 1
            if left == 0:
                left = again
                sys.setprofile(None)
                sys.settrace(repeat if again else None)  # a function for profiles is gone as soon as it raises
                signal.raise_signal(number)

    def repeat(frame: FrameType, event: str, _: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            sys.settrace(None)
            signal.raise_signal(number)

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as before a command begins
    sys.setprofile(watch)
    try:
        command(*arguments)
    finally:
        sys.setprofile(None)
        sys.settrace(None)


def _place(code: Any, event: str, called: str) -> str:
    """Name a place: file, function and event; for the return from a function in C also its name."""
    return f"{code.co_filename} {code.co_qualname} {event} {called if event == 'c_return' else ''}"
