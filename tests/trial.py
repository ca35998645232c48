"""One command, script or function in a process of its own: start it, disturb it, wait for it, and say what went wrong.

A trial is forked from a server that has imported everything, so it costs a fraction of a second. It leads a session of
its own, and has a variable in its environment: by these the processes that it starts are found, also after its end.
Its temporary files go to a directory of its own, so that leftovers are found.
"""

import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, Self

import psutil

LIMIT = 300.0  # seconds; what takes longer hangs
GRACE = 30.0  # seconds that a process of an ended trial may go on
_SIGNS = ("Traceback (most recent call last)", "Fatal Python error", "Exception ignored in", "core dumped")
_STREAMS = ("stdout", "stderr")
_OF_PYG = "torch_geometric."  # the modules that PyG generates for its layers, and leaves there
_MARK = "FAIRPASS_TRIAL"
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
    temporary: tuple[str, ...] = ()  # files that it left in the system's directory for them

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
        if self.code is not None and self.code >= 0:  # killed, it could not remove them
            found += [f"it left a temporary file behind: {each}" for each in self.temporary]
        for name in _STREAMS:
            if marks := unseen(getattr(self, name)):
                found.append(f"{name} has an escape sequence, or what cannot be seen: {marks}")
        return found

    def describe(self) -> str:
        sent = "" if self.sent is None else f" (sent {signal.Signals(self.sent).name})"
        shown = f"--- stdout\n{self.stdout[-4000:]}\n--- stderr\n{self.stderr[-8000:]}"
        return (
            f"$ fairpass {' '.join(map(repr, self.arguments))}\nexit {self.code}{sent}, {self.seconds:.2f} s\n{shown}"
        )


def unseen(text: str) -> str:
    """Return the characters of a text that control a terminal or show nothing, but for joiners."""
    kinds = {mark: unicodedata.category(mark) for mark in {*text} - {*"\n\t\u200c\u200d"}}
    return " ".join(f"U+{ord(mark):04X}" for mark in sorted(kinds) if kinds[mark] in ("Cc", "Cf", "Zl", "Zp"))


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
        self.mark = f"{time.monotonic_ns()}"
        self.logs = Path(f"{self.folder}.logs") / self.mark
        self.temporary = self.logs / "tmp"
        self.temporary.mkdir(parents=True)
        for name in _STREAMS:
            (self.logs / name).touch()
        here, there = forked.Pipe(duplex=False)
        work = (self.function or command, tuple(self.arguments))
        environment = {**os.environ, _MARK: self.mark, "TMPDIR": str(self.temporary)}
        # PyTorch makes this directory when it is imported, for all programs of a user. It is not ours to remove.
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(self.logs / "torch")
        given = (there, str(self.folder), str(self.logs), environment, *work)
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
        self.kill_all()

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
                raise TimeoutError(f"condition not met within {self.limit:.0f} s")

    def send(self, number: int, *, to_group: bool = False) -> None:
        """Send a signal to the process, or also to those that it has started, as a terminal does."""
        if not self.ends_within(0):
            self.sent = number
            with suppress(ProcessLookupError):
                (os.killpg if to_group else os.kill)(self.pid, number)

    def kill_worker(self, random: Random) -> bool:
        """Kill one of the processes that it has started, if there is one, as the system does without memory."""
        workers = [each for each in self.processes() if each.pid != self.pid and is_worker(each)]
        if workers:
            with suppress(psutil.NoSuchProcess):
                random.choice(workers).kill()
        return bool(workers)

    def processes(self) -> list[psutil.Process]:
        """Return its living processes: those of its session, and those that have its mark."""
        found = []
        for pid in psutil.pids():
            with suppress(ProcessLookupError, PermissionError, psutil.Error):
                each = psutil.Process(pid)
                mine = os.getsid(pid) == self.pid or each.environ().get(_MARK) == self.mark
                if mine and each.status() != psutil.STATUS_ZOMBIE:
                    found.append(each)
        return sorted(found, key=lambda each: each.pid)

    def outlived(self) -> list[str]:
        """Return its processes that go on after its end."""
        deadline = time.monotonic() + self.grace
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        found = []
        for each in left:
            with suppress(psutil.Error):
                found.append(f"{each.pid} {' '.join(each.cmdline())}")
        return found

    def outcome(self) -> Outcome:
        """Wait for the end."""
        hangs = not self.ends_within(self.limit)
        if hangs:
            os.kill(self.pid, signal.SIGKILL)
            self.ends_within(GRACE)
        seconds = time.monotonic() - self.started
        with _lock:
            code = self.process.exitcode
        orphans = [] if hangs else self.outlived()
        self.kill_all()
        words = tuple(str(each) for each in self.arguments)
        stdout, stderr = ((self.logs / name).read_text(errors="replace") for name in _STREAMS)
        found = [str(each.relative_to(self.temporary)) for each in sorted(self.temporary.rglob("*"))]
        left = tuple(each for each in found if not each.startswith(_OF_PYG))
        return Outcome(words, None if hangs else code, stdout, stderr, seconds, tuple(orphans), self.sent, left)

    def kill_all(self) -> None:
        for each in self.processes():
            with suppress(psutil.NoSuchProcess):
                each.kill()


def is_worker(process: psutil.Process) -> bool:
    """Return whether a process is a worker, and not a helper of multiprocessing such as its resource tracker."""
    with suppress(psutil.Error):
        return any(word in ("fairpass", "--multiprocessing-fork") for word in process.cmdline())
    return False


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
    # The server may have been started by a process of pytest-xdist, which ignores Ctrl-C, or of `nohup`, which ignores
    # the end of a terminal, or while Ctrl-C was blocked.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # the server may have looked up its own
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
        code = end.code if isinstance(end.code, int) else bool(end.code)
    except BaseException:
        traceback.print_exc()
        code = 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command is over
    sys.exit(code)
