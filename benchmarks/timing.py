"""Measuring competitors so that they can be compared: in turns, in one process, on one machine."""

import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

# On a machine that others use too, wall time on several threads is mostly their work. With this variable set, one
# thread is used and its processor time is what counts.
ONE_THREAD = "FAIRPASS_BENCH_ONE_THREAD"


def clock() -> Callable[[], float]:
    """Return what seconds are measured with."""
    if ONE_THREAD not in os.environ:
        return time.perf_counter
    torch.set_num_threads(1)
    return time.process_time


@dataclass(frozen=True)
class Timing:
    """How long each of several calls took, in seconds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the middle one: what a user will see."""
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        """Return the shortest one: what the work takes when nothing else disturbs it."""
        return min(self.seconds)


def side_by_side(
    competitors: Mapping[str, Callable[[], object]], *, rounds: int = 7, budget: float = 5.0
) -> dict[str, Timing]:
    """Call every competitor once in each round, so that what disturbs one disturbs all.

    A first call of each is not counted, unless it alone takes longer than the `budget` (in seconds); a
    competitor that has used up its budget sits out the remaining rounds.
    """
    now = clock()
    seconds: dict[str, list[float]] = {name: [] for name in competitors}
    for turn in range(rounds + 1):
        for name, call in competitors.items():
            if sum(seconds[name]) >= budget:
                continue
            start = now()
            call()
            took = now() - start
            if turn > 0 or took >= budget:
                seconds[name].append(took)
    return {name: Timing(tuple(taken)) for name, taken in seconds.items()}


def environment() -> dict[str, str | int]:
    """Return what else the figures depend on: versions and machine."""
    return {
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "clock": "processor time of one thread" if ONE_THREAD in os.environ else "wall time",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
