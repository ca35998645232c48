"""One command, script or function in a process of its own: start it, disturb it, wait for it, and say what went wrong.

A trial is forked from a server that has imported everything, so it costs a fraction of a second. It leads a session of
its own, by which processes that outlive it are found.
"""

import multiprocessing
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock
from typing import Any, Self

import psutil

LIMIT = 300.0  # seconds; what takes longer hangs
GRACE = 60.0  # seconds that a process of an ended trial may go on
_SIGNS = ("Traceback (most recent call last)", "Fatal Python error", "Exception ignored in", "core dumped")
_STREAMS = ("stdout", "stderr")
# A process has one such server, whoever forks from it.
forked = multiprocessing.get_context("forkserver")
forked.set_forkserver_preload(["tests.preloaded"])
_lock = Lock()  # multiprocessing's list of children is not made for threads


@dataclass(frozen=True)
class Outcome:
    """What is left of a process: its exit code (minus the signal, if one ended it), and what it printed."""

    arguments: tuple[str, ...]
    code: int | None  # None: it had to be stopped
    stdout: str
    stderr: str
    seconds: float
    orphans: tuple[str, ...] = ()
    sent: int | None = None  # the signal that was sent before it ended

    @property
    def killed(self) -> bool:
        return self.sent is not None

    def faults(self) -> list[str]:
        """Return what no command may do, whatever it is asked for."""
        found = [f"{sign!r} in the output" for sign in _SIGNS if sign in self.stdout + self.stderr]
        if self.code is None:
            found.append(f"it hangs: no end after {self.seconds:.0f} s")
        elif self.code < 0 and -self.code != self.sent:
            found.append(f"it was ended by {signal.Signals(-self.code).name}")
        found += [f"it left a process behind: {each}" for each in self.orphans]
        found += [f"{name} has an escape sequence" for name in _STREAMS if "\x1b" in getattr(self, name)]
        return found

    def describe(self) -> str:
        sent = "" if self.sent is None else f" (sent {signal.Signals(self.sent).name})"
        shown = f"--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-8000:]}"
        return (
            f"$ fairpass {' '.join(map(repr, self.arguments))}\nexit {self.code}{sent}, {self.seconds:.2f} s\n{shown}"
        )


@dataclass
class Trial:
    """A process that runs a command in a directory, or another function with arguments."""

    arguments: Sequence[Any]
    folder: Path
    function: Callable[..., Any] | None = None
    limit: float = LIMIT
    grace: float = GRACE
    sent: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.logs = Path(f"{self.folder}.logs") / f"{time.monotonic_ns()}"
        self.logs.mkdir(parents=True)
        for name in _STREAMS:
            (self.logs / name).touch()
        here, there = forked.Pipe(duplex=False)
        work = (self.function or command, tuple(self.arguments))
        given = (there, str(self.folder), str(self.logs), dict(os.environ), *work)
        self.process = forked.Process(target=_child, args=given)
        with _lock:
            self.process.start()
        there.close()
        if here.poll(LIMIT):
            with suppress(EOFError):  # it has been killed already
                here.recv()
        here.close()
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing of it behind, whatever became of the test."""
        self.process.kill()
        self._kill_session()

    @property
    def pid(self) -> int:
        return self.process.pid or 0

    def ends_within(self, seconds: float) -> bool:
        return bool(wait([self.process.sentinel], max(0.0, seconds)))

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for something that the process does before it ends."""
        deadline = time.monotonic() + self.limit
        while not condition():
            if self.ends_within(0.05):
                raise RuntimeError(f"it ended too early:\n{self.outcome().describe()}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {self.limit:.0f} s in vain")

    def send(self, number: int) -> None:
        """Send a signal to the process, and not to those that it has started."""
        if not self.ends_within(0):
            self.sent = number
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill_after(self, seconds: float, number: int) -> Outcome:
        """Send a signal after a while, unless it has ended by then."""
        if not self.ends_within(seconds):
            self.send(number)
        return self.outcome()

    def outcome(self) -> Outcome:
        """Wait for the end."""
        hangs = not self.ends_within(self.limit)
        if hangs:
            os.kill(self.pid, signal.SIGKILL)
            self.ends_within(GRACE)
        seconds = time.monotonic() - self.started
        with _lock:
            code = self.process.exitcode
        orphans = [] if hangs else outlived(self.pid, self.grace)
        self._kill_session()
        words = tuple(str(each) for each in self.arguments)
        stdout, stderr = ((self.logs / name).read_text(errors="replace") for name in _STREAMS)
        return Outcome(words, None if hangs else code, stdout, stderr, seconds, tuple(orphans), self.sent)

    def _kill_session(self) -> None:
        for each in session(self.pid):
            with suppress(psutil.NoSuchProcess):
                each.kill()


def session(leader: int) -> list[psutil.Process]:
    """Return the living processes of a session."""
    found = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            if os.getsid(pid) == leader and (each := psutil.Process(pid)).status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found


def outlived(leader: int, grace: float) -> list[str]:
    """Return the processes of a session that go on after its leader's end."""
    deadline = time.monotonic() + grace
    while (left := session(leader)) and time.monotonic() < deadline:
        time.sleep(0.05)
    found = []
    for each in left:
        with suppress(psutil.NoSuchProcess):
            found.append(f"{each.pid} {' '.join(each.cmdline())}")
    return found


def run(arguments: Sequence[Any], folder: Path, limit: float = LIMIT) -> Outcome:
    """Run a command undisturbed."""
    return Trial([str(each) for each in arguments], folder, limit=limit).outcome()


def command(*arguments: str) -> None:
    from fairpass.cli import main

    sys.argv = ["fairpass", *arguments]
    main()


def script(path: str, *arguments: str) -> None:
    """Do what `python PATH ARGUMENTS` does."""
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).parent))
    runpy.run_path(path, run_name="__main__")


def _child(
    ready: Any, folder: str, logs: str, environment: dict[str, str], function: Callable[..., Any], arguments: Any
) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
        with (Path(logs) / name).open("wb") as file:
            os.dup2(file.fileno(), stream.fileno())
    ready.send(True)
    ready.close()
    code = 0
    try:
        function(*arguments)
    except SystemExit as end:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        code = end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:
        traceback.print_exc()
        code = 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what comes now is no part of the command
    sys.exit(code)
