"""Locks that are held elsewhere: by a process until its input ends or it is killed, or while a command runs."""

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from fairpass.locks import in_use

T = TypeVar("T")
_PATIENCE = 600  # seconds

HOLD = """
import sys
from fairpass.locks import Locks
locks = Locks(sys.argv[1])
print(all([locks.acquire(name) for name in sys.argv[2:]]), flush=True)
sys.stdin.read()
"""


def start(script: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def while_in_use(
    place: Path, command: Callable[[], T], caplog: pytest.LogCaptureFixture, then: Callable[[], object]
) -> T:
    """Return what a command returns that is called while a place is in use, after doing something while it waits."""
    with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING):
        with in_use(place):
            waiting = pool.submit(command)
            deadline = time.monotonic() + _PATIENCE
            while not caplog.records and not waiting.done() and time.monotonic() < deadline:
                time.sleep(0.02)
            then()
        found = waiting.result(_PATIENCE)
    assert f"is using '{place}': waiting for it to end" in caplog.messages[0]
    return found
