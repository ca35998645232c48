"""Which search works on which trial: trials of one that is gone are given up, so that nobody waits for them."""

import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from optuna.exceptions import OptunaError, UpdateFinishedTrialError
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, Trial, TrialState

# A search says so often that it is alive, and is taken for dead if it has not for so long (seconds).
BEAT, GRACE = 10.0, 60.0

_OWNER, _ALIVE = "owner", "alive"


@contextmanager
def signs_of_life(study: Study, backend: BaseStorage) -> Iterator[str]:
    """Say in the study, which is kept in `backend`, from time to time that a search is alive; yield its name."""
    # The last part, because numbers of processes are used again.
    owner = f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"
    stop, name = Event(), f"{_ALIVE} {owner}"

    def beat() -> None:
        while not stop.wait(BEAT):
            with suppress(OptunaError):  # a sign that gets lost does no harm: there will be another
                study.set_user_attr(name, time.time())
        backend.remove_session()  # each thread has one

    study.set_user_attr(name, time.time())
    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield owner
    finally:
        stop.set()
        thread.join()


def sign(trial: Trial, owner: str) -> None:
    """Make a trial a search's own."""
    trial.set_user_attr(_OWNER, owner)


def give_up(study: Study, number: int) -> None:
    """End a trial of which nothing is known; it does not count."""
    with suppress(UpdateFinishedTrialError):  # another process was quicker
        study.tell(number, state=TrialState.FAIL, skip_if_finished=True)


def running(study: Study) -> list[FrozenTrial]:
    """Return the trials that some search works on, having given up those that none does any more."""
    alive: dict[str, Any] = study.user_attrs
    found = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    lost = [trial for trial in found if _is_lost(trial, alive)]
    for trial in lost:
        give_up(study, trial.number)
    return [trial for trial in found if trial not in lost]


def _is_lost(trial: FrozenTrial, alive: dict[str, Any]) -> bool:
    signed = trial.user_attrs.get(_OWNER)
    if signed is not None and _is_gone(signed):
        return True
    started = trial.datetime_start
    last = alive.get(f"{_ALIVE} {signed}", started.timestamp() if started else 0.0)
    return bool(time.time() - last > GRACE)


def _is_gone(signed: str) -> bool:
    """Return whether it is certain that a process has ended: it was on this machine, and is not there."""
    host, process, _ = signed.rsplit(" ", 2)
    if host != socket.gethostname() or os.name != "posix":
        return False
    try:
        os.kill(int(process), 0)  # asks whether it is there, and does nothing to it
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
