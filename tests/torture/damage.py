"""Damage stored files and read them: one error that names the file, or exactly what was written; nothing else."""

import hashlib
import json
import resource
import shutil
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

import psutil
from tests.torture.reporting import Report, Setting
from tests.torture.stored import EVERY, Kind, kinds, quiet, write_all
from tests.trial import Trial

from fairpass.errors import FairpassError

EACH, FEW = 40, 10  # mutations of a trial; of files that take long to read
READ = 60  # seconds to read a file
LONGEST = 3000  # characters of an error
MEMORY = 4 * 2**30  # bytes more than before
_lock = Lock()


class TooLongError(BaseException):
    """A file took too long to read: no `Exception`, which readers may catch."""


def trial(setting: Setting) -> Report:
    stored = setting.shared / "stored"
    with _lock:
        whole = setting.shared / "stored is whole"
        if not whole.exists():  # written where it stays: some files know their places
            shutil.rmtree(stored, ignore_errors=True)
            outcome = Trial([stored], setting.folder, write_all).outcome()
            if outcome.code:
                raise RuntimeError(outcome.describe())
            whole.touch()
    name = setting.random.choice(EVERY)
    report = Report()
    out = setting.folder / "found.json"
    outcome = report.add(Trial([stored, name, setting.random.random(), out], setting.folder, damage_many).outcome())
    if not out.exists():
        report.faults.append(f"reading {name} ended the process with {outcome.code}")
        return report
    found = json.loads(out.read_text())
    report.counts.update(found["counts"])
    report.faults += found["faults"]
    return report


def damage_many(stored: Path, name: str, seed: float, out: Path) -> None:
    """Damage copies of one file, and write to a file what came of it; runs in a process of its own."""
    quiet()
    limit = psutil.Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, _too_long)
    counts: dict[str, int] = {"files": 0, "refused": 0, "unharmed": 0, "changed with a right checksum": 0}
    faults: list[str] = []
    kind = kinds(stored)[name]
    whole = whole_content(kind, out.parent / "whole")
    for number in range(FEW if kind.few else EACH):
        how, fault = damage(kind, Random(f"{seed} {number}"), out.parent / str(number), whole)
        counts["files"] += 1
        if fault is None:
            counts[how] += 1
            shutil.rmtree(out.parent / str(number))
        else:
            faults.append(f"{name} {number}: {fault}")
    out.write_text(json.dumps({"counts": counts, "faults": faults}))


def damage(kind: Kind, random: Random, folder: Path, whole: str | None) -> tuple[str, str | None]:
    """Damage one copy and read it; return what came of it, and what is wrong with that."""
    file = kind.copy_to(folder)
    how = kind.damage(file, random)
    signal.alarm(READ)
    began = time.monotonic()
    try:
        read, message = outcome(lambda: kind.read(file))
        content, unusable = outcome(lambda: shown(kind.use(read))) if message is None else (None, None)
    except TooLongError:
        return how, f"{how}: it takes more than {READ} s to read"
    except BaseException:
        return how, f"{how}, {time.monotonic() - began:.1f} s: {traceback.format_exc()[-3000:]}"
    finally:
        signal.alarm(0)
    if message is not None:
        # A change with a right checksum may show in another file of the same directory.
        together = folder if kind.around is not None and how == "signed" else file.parent
        if not (file.name in message or str(together) in message):
            return how, f"{how}: the error does not name the file: {message[:500]}"
        if len(message) > LONGEST:
            return how, f"{how}: the error has {len(message):,} characters: {message[:500]}"
        return "refused", None
    if content == whole and unusable is None:
        return "unharmed", None
    if how == "bytes" and kind.signed:
        return how, "changed bytes were accepted, and the content is another"
    return "refused" if unusable else "changed with a right checksum", None


def outcome(action: Callable[[], Any]) -> tuple[Any, str | None]:
    """Return a result, or the message of an error that a user can read."""
    try:
        return action(), None
    except FairpassError as error:
        return None, str(error)


def whole_content(kind: Kind, folder: Path) -> str | None:
    content, _ = outcome(lambda: shown(kind.use(kind.read(kind.copy_to(folder)))))
    return None if content is None else str(content)


def shown(value: Any) -> str:
    """Return content in a form that can be compared, without the place that it was read from."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.numpy().tobytes()
    return hashlib.sha256(repr(value).encode(errors="backslashreplace")).hexdigest()


def _too_long(*_: object) -> None:
    raise TooLongError
