"""What all tests share: how examples are drawn, and a cache of their own."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.drawing import load_profile
from tests.trial import forked

# Before anything imports Ray, also in the processes that tests start: it sends nothing to anybody.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
# Before any test module is imported: tests take their settings from the profile that is loaded then.
load_profile()
# So that a failed assertion of the battery says what it compared, as those of test modules do.
pytest.register_assert_rewrite("tests.methods.battery", "tests.methods.ingredients")


@pytest.fixture(autouse=True)
def _same_draws() -> None:
    """Start every test with the same random state: what it draws must not depend on the tests before it."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Build graphs into a temporary directory, not the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAIRPASS_CACHE", str(tmp_path_factory.mktemp("graphs")))
        yield


@pytest.fixture
def forked_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the processes of `--jobs` from the tests' server, for tests that need not show how they start."""
    monkeypatch.setattr("fairpass.runs.executors.processes._START_METHOD", forked.get_start_method())


@pytest.fixture
def reachable() -> Iterator[None]:
    """Let signals arrive: processes of pytest-xdist ignore Ctrl-C, and those of `nohup` the end of a terminal."""
    handlers: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
