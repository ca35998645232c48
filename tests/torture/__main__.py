"""Torture fairpass for some minutes: `python -m tests.torture --minutes 10`.

What a trial does is drawn from the seed, its part and its number, and `--only kills --trial 123` repeats one; when a
kill hits also depends on the machine's speed.
"""

import argparse
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import count
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

from tests.torture.reporting import COUNTED, Part, Report, Setting, Sum

SHARES = {
    "kills": 0.35,
    "interruptions": 0.1,
    "starts": 0.3,
    "damage": 0.08,
    "hostile": 0.05,
    "numbers": 0.06,
    "disk": 0.06,
}


def part(name: str) -> Part:
    # A module `numbers` would be taken for that of the standard library.
    found: Part = import_module(f"tests.torture.{'extreme_numbers' if name == 'numbers' else name}").trial
    return found


def repeat(name: str, number: int, seed: str, base: Path) -> Report:
    """Make one trial; whatever it raises is a fault, too."""
    folder = base / f"{name}-{number}"
    setting = Setting(Random(f"{seed} {name} {number}"), folder / "work", base / "shared")
    shutil.rmtree(folder, ignore_errors=True)
    for each in (setting.folder, setting.shared):
        each.mkdir(parents=True, exist_ok=True)
    try:
        report = part(name)(setting)
    except Exception:
        report = Report([f"the harness failed: {traceback.format_exc()}"])
    if report.faults:
        again = f"python -m tests.torture --seed {seed} --only {name} --trial {number}"
        (folder / "fault.txt").write_text(f"{again}\n{report.describe()}\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return report


class Torture:
    """Makes trials of all parts in turn, each for its share of the time."""

    def __init__(self, parts: Mapping[str, float], minutes: float, seed: str, base: Path) -> None:
        self.parts, self.minutes, self.seed, self.base = parts, minutes, seed, base
        self.sums = {name: Sum() for name in parts}
        self.faults: list[dict[str, Any]] = []
        self.skipped: set[str] = set()
        self.lock, self.spent = Lock(), dict.fromkeys(parts, 0.0)
        self.numbers = {name: count() for name in parts}
        self.start = self.said = time.monotonic()

    def run(self, jobs: int) -> None:
        with ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(self._work) for _ in range(jobs)]:
                done.result()

    def _work(self) -> None:
        while time.monotonic() < self.start + 60 * self.minutes:
            with self.lock:
                # The part that is furthest behind its share.
                name = min(self.parts, key=lambda each: self.spent[each] / self.parts[each])
                number = next(self.numbers[name])
                self.spent[name] += 0.1  # so that the other thread takes another
            began = time.monotonic()
            report = repeat(name, number, self.seed, self.base)
            with self.lock:
                self.spent[name] += time.monotonic() - began
                self.note(name, number, report)

    def note(self, name: str, number: int, report: Report) -> None:
        self.sums[name].add(report)
        if report.skipped:
            self.skipped.add(f"{name}: {report.skipped}")
        if report.faults:
            folder = self.base / f"{name}-{number}"
            self.faults.append({"part": name, "trial": number, "faults": report.faults, "kept": str(folder)})
            print(f"FAULT {name} {number}: {report.faults[0][-500:]} (kept in {folder})", flush=True)
        if time.monotonic() - self.said > 30:
            self.said = time.monotonic()
            print(f"{(self.said - self.start) / 60:5.1f} min  {'; '.join(self.progress())}", flush=True)

    def progress(self) -> Iterator[str]:
        for name, each in self.sums.items():
            what = ", ".join(f"{number:,} {kind}" for kind, number in sorted(each.counts.items()) if kind in COUNTED)
            yield f"{name} {each.tried}{f' ({what})' if what else ''}{f', {each.fault} FAULT' if each.fault else ''}"

    def table(self) -> str:
        lines = [f"{'part':<10}{'tried':>8}{'clean':>8}{'fault':>8}{'skipped':>9}  counts"]
        for name, each in self.sums.items():
            counts = ", ".join(f"{number:,} {kind}" for kind, number in sorted(each.counts.items()))
            lines.append(f"{name:<10}{each.tried:>8,}{each.clean:>8,}{each.fault:>8,}{each.skipped:>9,}  {counts}")
        return "\n".join([*lines, *(f"skipped: {each}" for each in sorted(self.skipped))])

    def to_dict(self) -> dict[str, Any]:
        parts = {name: vars(each) | {"counts": dict(each.counts)} for name, each in self.sums.items()}
        about = {"seed": self.seed, "minutes": self.minutes, "seconds": time.monotonic() - self.start}
        return {**about, "parts": parts, "faults": self.faults, "skipped": sorted(self.skipped)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", default=str(secrets.randbelow(10**6)))
    parser.add_argument("--only", default=",".join(SHARES), help="parts, separated by commas")
    parser.add_argument("--trial", type=int, help="repeat one trial of one part")
    parser.add_argument("--jobs", type=int, default=2, help="trials at a time")
    parser.add_argument("--folder", type=Path, help="where trials work, and those with faults are kept")
    parser.add_argument("--json", type=Path, help="where the figures are written")
    asked = parser.parse_args()
    print(f"make torture MINUTES={asked.minutes:g} SEED={asked.seed}", flush=True)
    base = asked.folder or Path(tempfile.mkdtemp(prefix="torture-"))
    os.environ |= {"OMP_NUM_THREADS": "1", "COLUMNS": "250", "FAIRPASS_CACHE": str(base / "cache")}
    torture = Torture({name: SHARES[name] for name in asked.only.split(",")}, asked.minutes, asked.seed, base)
    if asked.trial is not None:
        report = repeat(asked.only, asked.trial, asked.seed, base)
        torture.note(asked.only, asked.trial, report)
        print(report.describe())
    else:
        torture.run(asked.jobs)
    print(torture.table())
    if asked.json:
        asked.json.write_text(json.dumps(torture.to_dict(), indent=1))
    if not torture.faults and asked.folder is None:
        shutil.rmtree(base, ignore_errors=True)
    return bool(torture.faults)


if __name__ == "__main__":
    sys.exit(main())
