"""How signals end a command: it writes checkpoints, stops its workers and prints one word."""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import typer

from fairpass.cli import output
from fairpass.lifetime import STARTED_BY, is_indivisible

# SIGHUP is sent when a terminal is closed, or a connection lost; not every system has it.
_SIGNALS = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
# In these methods an exception can come after the lock is taken and before `with` would release it.
_LOCKING = {
    *(f"{kind}.{what}" for kind in ("Condition", "_AcquireFutures", "SemLock") for what in ("__enter__", "__exit__")),
    *("Condition._acquire_restore", "Condition._release_save"),
}
_SOON = 0.05  # seconds


def interruptible(command: Callable[[], Any]) -> Any:
    """Call a command that signals end as Ctrl-C does, with the exit code of shells: 128 + the signal's number."""
    came: list[int] = []
    try:
        with _handled(came):
            return command()
    except typer.Exit:
        raise
    except (KeyboardInterrupt, Exception) as error:
        # Libraries make errors of their own of an interruption, and Ray raises one for a signal that it caught.
        if not (came or isinstance(error, KeyboardInterrupt)):
            raise
        output.finish_stdout()
        raise typer.Exit(_end(came)) from None


def _end(came: Sequence[int]) -> int:
    """Print how a command ended, and return its exit code."""
    output.notices.show_cursor()  # which a bar or a status hides, and an interruption of its start or end leaves so
    number = max(came, key=lambda each: each != signal.SIGINT, default=signal.SIGINT)
    if STARTED_BY not in os.environ:  # otherwise the command that started this worker says it
        output.notices.print("Interrupted" if number == signal.SIGINT else "Terminated", style="yellow")
    return 128 + number


@contextmanager
def _handled(came: list[int]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interruption = _Interruption(came)
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    hook = sys.unraisablehook
    for number, found in before.items():
        if found != signal.SIG_IGN:  # what is ignored stays so: with `nohup` a command outlives its terminal
            signal.signal(number, interruption.handle)
    sys.unraisablehook = partial(interruption.raise_lost, hook)
    try:
        yield
    finally:
        interruption.stop()
        sys.unraisablehook = hook
        for number, found in before.items():
            signal.signal(number, found or signal.SIG_DFL)
    if came:  # it was held back, and the command ended first
        raise KeyboardInterrupt


class _Interruption:
    """Raises `KeyboardInterrupt` for a signal: at once, or a little later where it would do harm."""

    def __init__(self, came: list[int]) -> None:
        self.came, self.is_over = came, False
        self.sending = _thread.allocate_lock()

    def handle(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGINT:
            signal.signal(number, _ignore)  # `timeout` sends it twice: to us, and to our group
        self.came.append(number)
        if self.is_over:
            return
        if number != signal.SIGINT:
            signal.signal(signal.SIGINT, self.handle)  # shells let the background commands of a script ignore it
        # Half a module would fail later, with an error that nobody understands.
        is_importing = _is_importing(frame)
        if is_importing and not output.work_has_begun():
            os._exit(_end(self.came))
        if is_importing or _must_not_interrupt(frame):
            self._raise_soon()
        else:
            raise KeyboardInterrupt

    def raise_lost(self, hook: Callable[[Any], object], lost: Any) -> None:
        """Interrupt again if an interruption came where Python can raise nothing, such as in a destructor."""
        # The handlers of torch's agent raise errors of their own.
        if isinstance(lost.exc_value, KeyboardInterrupt) or type(lost.exc_value).__name__ == "SignalException":
            self._raise_soon()
        else:
            hook(lost)

    def stop(self) -> None:
        """Interrupt nothing that comes after the command."""
        self.is_over = True
        with self.sending:  # what has been sent arrives before the lock is free, and is only noted
            pass

    def _raise_soon(self) -> None:
        _thread.start_new_thread(self._send, ())  # a `Thread` needs locks, which the main thread may have

    def _send(self) -> None:
        """Send Ctrl-C to the main thread, which may be waiting by now: Python's own function would not wake it."""
        time.sleep(_SOON)
        with self.sending:
            if self.is_over:
                return
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                _thread.interrupt_main()


def _ignore(number: int, frame: FrameType | None) -> None:
    """Do nothing. Processes that start later would inherit `SIG_IGN`, and could not be terminated."""


def _is_importing(frame: FrameType | None) -> bool:
    return any(each.f_code.co_filename.startswith("<frozen importlib") for each in _command_frames(frame))


def _must_not_interrupt(frame: FrameType | None) -> bool:
    """Return whether an exception here could leave something half done, such as a lock that nobody releases."""
    codes = (each.f_code for each in _command_frames(frame))
    return any(code.co_qualname in _LOCKING or is_indivisible(code) for code in codes)


def _command_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None and frame.f_code is not interruptible.__code__:
        yield frame
        frame = frame.f_back
