import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from typer.testing import CliRunner, Result

from fairpass.cli import output
from fairpass.cli.app import app

_SCRIPT = "from fairpass.cli import main; main()"

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def graph_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, graph_cache: Path) -> None:
    """A terminal wide enough for every sentence, and nothing of the user's settings."""
    monkeypatch.setenv("COLUMNS", "250")
    # A console keeps the width that it found when it was made.
    monkeypatch.setattr(output, "console", output.PlainConsole())
    monkeypatch.setenv("FAIRPASS_CACHE", str(graph_cache))
    for name in ("FAIRPASS_DEBUG", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TERM"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run() -> Run:
    """Run a command in this process; the exit code, stdout and stderr are in the result."""

    def invoke(*arguments: str | Path) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return invoke


@pytest.fixture
def run_json(run: Run) -> Callable[..., Any]:
    """Run a command that succeeds, and return the JSON document that is all of its stdout."""

    def invoke(*arguments: str | Path) -> Any:
        result = run(*arguments)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return invoke


@pytest.fixture
def run_process() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run a command in a process of its own; `script` is what Python runs for it."""

    def start(
        *arguments: str, script: str = _SCRIPT, stdout: int | IO[str] = subprocess.PIPE
    ) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=600, check=False)

    return start


@pytest.fixture
def own_tables(tmp_path: Path) -> dict[str, Path]:
    """Forty people with text ids, two groups and a constant column; a ring of friends, one of them twice."""
    rows = ["name,age,shoe,planet,sex,hired"]
    rows += [
        f"p{i},{20 + i},{36 + (i < 20) * 6 + i % 3},earth,{'m' if i < 20 else 'f'},{'yes' if i % 2 else 'no'}"
        for i in range(40)
    ]
    edges = ["one,other", *(f"p{i},p{(i + 1) % 40}" for i in range(40)), "p1,p0"]
    paths = {"nodes": tmp_path / "people.csv", "edges": tmp_path / "friends.csv"}
    paths["nodes"].write_text("\n".join(rows))
    paths["edges"].write_text("\n".join(edges))
    return paths
