"""Several processes, one study: they share the work, and nobody waits for one that is gone."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState
from tests import holding
from tests.methods.ingredients import small_graph
from tests.trial import Trial
from torch_geometric.data import Data

from fairpass.locks import lock_file
from fairpass.tuning import LogUniform, Progress, tune
from fairpass.tuning.study import GRACE, OWNER, _process_space, give_up_lost, open_study, signs_of_life

QUICK: dict[str, Any] = {
    "seeds": 1,
    "fixed": {"epochs": 5},
    "space": {"learning_rate": LogUniform(1e-3, 1e-1)},
    "strategy": "motpe",  # which gives nothing up early
}


def search_elsewhere(storage: str, budget: int, folder: str) -> None:
    """Do the same search in another process, which says that it is at work and then waits until it may go on."""

    def hold(_: Progress) -> None:
        Path(folder, "at work").touch()
        while not Path(folder, "go on").exists():
            time.sleep(0.02)

    tuned = tune(small_graph(), "gat", budget=budget, storage=storage, callback=hold, **QUICK)
    sys.stdout.write(str(len(tuned.points)))


def start(storage: Path, budget: int) -> Trial:
    trial = Trial([str(storage), budget, str(storage.parent)], storage.parent / "work", search_elsewhere)
    trial.wait_until((storage.parent / "at work").exists)
    return trial


def test_trials_of_a_killed_process_are_not_waited_for(graph: Data, tmp_path: Path) -> None:
    storage = tmp_path / "study.db"
    with start(storage, 4) as other:
        other.send(signal.SIGKILL)
        assert other.outcome().killed
    progress: list[Progress] = []
    tuned = tune(graph, "gat", budget=4, storage=storage, callback=progress.append, **QUICK)
    assert len(tuned.points) == 4
    assert all(each.training for each in progress)  # it always had something to do
    (name,) = optuna.get_all_study_names(f"sqlite:///{storage}")
    study = optuna.load_study(study_name=name, storage=f"sqlite:///{storage}")
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] + [TrialState.COMPLETE] * 4


def test_two_processes_share_a_study(graph: Data, tmp_path: Path) -> None:
    storage, budget = tmp_path / "study.db", 10

    def wait_for_other(progress: Progress) -> None:
        if not progress.training:  # all that is left is the other's
            (tmp_path / "go on").touch()

    with start(storage, budget) as other:
        tuned = tune(graph, "gat", budget=budget, storage=storage, callback=wait_for_other, **QUICK)
        outcome = other.outcome()
    # Each did its part, and both know the whole.
    assert outcome.faults() == []
    assert len(tuned.points) == budget == int(outcome.stdout)
    assert len({str(tuned.values(point)) for point in tuned.points}) == budget
    study = optuna.load_study(study_name=tuned.study, storage=f"sqlite:///{storage}")
    owners = {trial.user_attrs["owner"] for trial in study.trials if trial.state == TrialState.COMPLETE}
    assert len(owners) == 2


def test_what_others_are_at_is_waited_for_and_done_if_they_fail(
    graph: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    storage = tmp_path / "study.db"
    tuned = tune(graph, "gat", budget=1, storage=storage, **QUICK)
    study = optuna.load_study(study_name=tuned.study, storage=f"sqlite:///{storage}")
    trial = study.ask({"learning_rate": FloatDistribution(1e-3, 1e-1, log=True)})
    trial.set_user_attr(OWNER, "elsewhere 1 aaaa")
    progress: list[Progress] = []

    def fail_after_a_while(report: Progress) -> None:
        progress.append(report)
        if len(progress) == 2:
            study.tell(trial, state=TrialState.FAIL)

    monkeypatch.setattr("fairpass.tuning.search._POLL", 0.05)
    tuned = tune(graph, "gat", budget=2, storage=storage, callback=fail_after_a_while, **QUICK)
    assert caplog.messages == ["waiting for 1 configuration that another search is trying"]
    assert [each.training for each in progress[:2]] == [0, 0]
    assert len(tuned.points) == 2


def running(study: optuna.Study) -> list[int]:
    """Give up what is lost, and return the numbers of the trials that are still running."""
    give_up_lost(study)
    return running_trials(study)


def running_trials(study: optuna.Study) -> list[int]:
    return [trial.number for trial in study.get_trials(states=(TrialState.RUNNING,))]


def study_with_trial(owner: str | None) -> optuna.Study:
    study = optuna.create_study(storage=InMemoryStorage())
    trial = study.ask()
    if owner is not None:
        trial.set_user_attr(OWNER, owner)
    return study


@pytest.mark.parametrize(
    "owner",
    [None, "elsewhere 1 aaaa", f"{socket.gethostname()} {os.getpid()} aaaa"],
    ids=["nobody", "elsewhere", "here"],
)
def test_unheard_of_searches_are_given_up_after_a_while(owner: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_with_trial(owner)
    assert running(study) == [0]
    late = time.time() + GRACE + 1
    monkeypatch.setattr(time, "time", lambda: late)
    assert running(study) == []
    assert study.trials[0].state == TrialState.FAIL


def test_a_sign_of_life_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairpass.tuning.study.BEAT", 0.01)
    storage = InMemoryStorage()
    study = optuna.create_study(storage=storage)
    with signs_of_life(study) as owner:
        study.ask().set_user_attr(OWNER, owner)
        late = time.time() + 2 * GRACE
        monkeypatch.setattr(time, "time", lambda: late)
        while late not in study.user_attrs.values():  # the next sign
            time.sleep(0.01)
        assert len(running(study)) == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_killed_process_is_gone_before_its_parent_asks() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        study = study_with_trial(f"{socket.gethostname()} {process.pid}{_process_space()} aaaa")
        assert len(running(study)) == 1
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # leaves it as a zombie
        assert running(study) == []


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_process_that_is_gone_is_known_to_be() -> None:
    study = study_with_trial(f"{socket.gethostname()} {ended_process()}{_process_space()} aaaa")
    assert running(study) == []


def test_a_process_of_another_container_is_not_looked_for() -> None:
    study = study_with_trial(f"{socket.gethostname()} {ended_process()}@1 aaaa")
    assert running(study) == [0]


def test_a_lock_tells_whether_a_search_goes_on(tmp_path: Path) -> None:
    """Also in containers with the same name, where processes have ids of their own."""
    storage = tmp_path / "study.db"
    owner = f"{socket.gethostname()} {ended_process()}@1 aaaa"
    with open_study("s", storage) as shared:
        shared.study.ask().set_user_attr(OWNER, shared.owner)
        shared.study.ask().set_user_attr(OWNER, owner)
        with holding.start(holding.HOLD, lock_file(storage), owner) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "True\n"
            late = time.time() + 2 * GRACE  # since their last signs of life
            with patch("time.time", lambda: late):
                shared.give_up_lost()
            assert running_trials(shared.study) == [0, 1]
            other.kill()
            other.wait()
        shared.give_up_lost()
        assert running_trials(shared.study) == [0]


def test_a_search_that_had_the_id_of_this_process_has_ended(tmp_path: Path) -> None:
    """As in a container that was started again, where every command has the same id."""
    with open_study("s", tmp_path / "study.db") as shared:
        shared.study.ask().set_user_attr(OWNER, f"{shared.owner.rpartition(' ')[0]} aaaa")
        shared.give_up_lost()
        assert running_trials(shared.study) == []


def test_optuna_says_as_much_as_before_when_all_searches_have_ended() -> None:
    before = optuna.logging.get_verbosity()
    first, second = open_study("a", None), open_study("b", None)
    for each in (first, second):
        each.__enter__()
    for each in (first, second):
        assert optuna.logging.get_verbosity() == optuna.logging.WARNING
        each.__exit__(None, None, None)
    assert optuna.logging.get_verbosity() == before
