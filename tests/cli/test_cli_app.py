"""The command as a whole: quick help, clear errors, clean streams."""

import errno
import os
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

import fairpass
from fairpass import __version__, datasets
from fairpass.cli import output
from fairpass.cli.app import app, load_command
from fairpass.cli.options import command
from fairpass.cli.output import explain, print_json
from fairpass.errors import DataError, DownloadError

Run = Callable[..., Result]
RunProcess = Callable[..., "subprocess.CompletedProcess[str]"]

# A command that goes the way of all others, without the seconds that it takes to load torch.
SHOUT = """
from fairpass.cli import output
from fairpass.cli.app import app
from fairpass.errors import DataError

@app.command()
def shout(*, softly: bool = False) -> None:
    if softly:
        raise DataError("louder")
    output.section("ΔDP", "A" * 100_000)

app()
"""

HEAVY = ("ray", "torch", "torch_geometric", "pandas", "sklearn", "fairlearn", "scipy", "numpy")


def modules_after(code: str) -> set[str]:
    script = f"import sys\ntry:\n    {code}\nexcept SystemExit:\n    pass\nprint('loaded', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [["--help"], ["audit", "--help"], ["datasets", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"sys.argv = ['fairpass', *{arguments}]; from fairpass.cli import main; main()"
    loaded = modules_after(code)
    assert "fairpass.cli.app" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert "pydantic" not in loaded or len(arguments) > 1


def test_package_is_light() -> None:
    loaded = modules_after("import fairpass.cli")
    assert "fairpass.cli" in loaded
    assert loaded.isdisjoint({*HEAVY, "typer", "rich"})


def test_help_is_quick(run_process: RunProcess) -> None:
    def seconds() -> float:
        """Return the processor time, which does not depend on what else runs."""
        before = os.times()
        assert run_process("--help").returncode == 0
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(3)) < 1.0  # about 0.3 s


def test_no_arguments_is_help(run: Run) -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stdout == run("--help").stdout
    for expected in ("audit", "datasets", "--version", "--debug", "Examples", "fairpass audit german"):
        assert expected in result.stdout


def test_version(run_process: RunProcess) -> None:
    done = run_process("--version", script="import runpy; runpy.run_module('fairpass', run_name='__main__')")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fairpass {__version__}\n", "")


def test_unknown_command_is_a_usage_error(run: Run) -> None:
    result = run("audti", "german")
    assert result.exit_code == 2
    assert "Did you mean 'audit'" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (DataError("'x' must be finite"), "'x' must be finite"),
        (DownloadError("no network"), "no network"),
        (ValueError("two\n  lines"), "two lines"),
        (ValueError(), "ValueError"),
        (ValueError("[bold]not markup[/bold]"), "[bold]not markup[/bold]"),
        (OSError(errno.ENOSPC, "No space left on device", "model.json"), "the disk is full: 'model.json'"),
        (PermissionError(errno.EACCES, "Permission denied", "runs"), "Permission denied: 'runs'"),
        (OSError("something"), "something"),
        (MemoryError(), "there is not enough memory"),
    ],
)
def test_errors_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str) -> None:
    def fail() -> list[str]:
        raise error

    monkeypatch.setattr(datasets, "names", fail)
    result = run("datasets")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == f"Error: {line}\n"
    assert run("datasets", "--debug").exception is error
    assert run("--debug", "datasets").exception is error
    monkeypatch.setenv("FAIRPASS_DEBUG", "1")
    assert run("datasets").exception is error


def test_errors_stay_one_line_in_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "notices", Console(stderr=True, width=40))
    result = run("audit", "gremlin")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("Error: there is no data set 'gremlin'")


def test_interrupt(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "names", interrupt)
    result = run("datasets")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "Interrupted\n")
    assert run("datasets", "--debug").exit_code == 130


def test_a_bug_is_not_hidden(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    error = TypeError("a bug")

    def fail() -> list[str]:
        raise error

    monkeypatch.setattr(datasets, "names", fail)
    assert run("datasets").exception is error


def test_traceback_only_with_debug(run_process: RunProcess) -> None:
    plain = run_process("shout", "--softly", script=SHOUT)
    assert (plain.returncode, plain.stdout, plain.stderr) == (1, "", "Error: louder\n")
    debug = run_process("shout", "--softly", "--debug", script=SHOUT)
    assert debug.returncode == 1
    assert debug.stderr.startswith("Traceback")
    assert debug.stderr.endswith("fairpass.errors.DataError: louder\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("argument", ["shout", "--help", "--version"])
def test_full_disk(argument: str, run_process: RunProcess) -> None:
    with Path("/dev/full").open("w") as full:
        done = run_process(argument, script=SHOUT, stdout=full)
    assert (done.returncode, done.stderr) == (1, "Error: the disk is full\n")


NOTE = """
from fairpass.cli import output
from fairpass.cli.app import app

@app.command()
def speak() -> None:
    with output.working("Thinking"), output.bar(1) as show:
        show(0, "Working", "")
        output.note("a note")
        output.warn("a warning")
    output.print_line("the result")

app()
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_notices_that_cannot_be_written_end_no_work() -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", NOTE, "speak"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, "the result\n")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell of Unix")
def test_without_stderr_notices_are_lost_and_work_goes_on() -> None:
    shell = ["sh", "-c", 'exec "$0" -c "$1" speak 2>&-', sys.executable, NOTE]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, "the result\n")


@pytest.mark.parametrize("argument", ["shout", "--help"])
def test_closed_pipe_is_quiet(argument: str, run_process: RunProcess) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run_process(argument, script=SHOUT, stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell of Unix")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closed: str) -> None:
    shell = ["sh", "-c", f'exec "$0" -c "$1" shout {closed}', sys.executable, SHOUT]
    done = subprocess.run(shell, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_encoding_will_do(run_process: RunProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = run_process("shout", script=SHOUT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("\n?DP\n")


def test_warnings_are_one_line_on_stderr(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def careful() -> list[str]:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn("this is not\nwise", stacklevel=2)
        return ["german"]

    monkeypatch.setattr(datasets, "names", careful)
    result = run("datasets", "--json")
    assert result.exit_code == 0
    assert result.stderr == "Warning: this is not wise\n"


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"x": float("nan")})


def test_explain_names_the_class_of_a_silent_error() -> None:
    assert explain(KeyboardInterrupt()) == "KeyboardInterrupt"


def test_option_groups() -> None:
    @dataclass(frozen=True)
    class Size:
        width: Annotated[int, typer.Argument()]
        height: Annotated[int, typer.Option("--tall")] = 3

    @dataclass(frozen=True)
    class Ink:
        colour: Annotated[str, typer.Option()] = "black"

    drawing = typer.Typer()
    drawn = []

    @drawing.command()
    @command
    def draw(name: str, size: Size, ink: Ink, loud: bool = False) -> None:
        """Draw a box."""
        drawn.append((name, size, ink, loud))

    result = CliRunner().invoke(drawing, ["box", "7", "--tall", "2", "--loud"])
    assert result.exit_code == 0, result.output
    assert drawn == [("box", Size(7, 2), Ink("black"), True)]
    assert "Draw a box." in CliRunner().invoke(drawing, ["--help"]).output
    assert CliRunner().invoke(drawing, ["box"]).exit_code == 2


def test_import_is_cheap() -> None:
    loaded = modules_after("import fairpass; dir(fairpass)")
    assert "fairpass" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_public_names() -> None:
    names: list[str] = vars(fairpass)["__all__"]
    assert {*dir(fairpass), "__version__"} == {*names}
    assert {"GMMD", "load", "fit_all", "Training", "evaluate"} <= {*names}
    assert all(getattr(fairpass, name) is not None for name in names)
    with pytest.raises(AttributeError, match="magic"):
        getattr(fairpass, "magic")  # noqa: B009 # mypy knows that it does not exist


def commands() -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    found = {name: load_command(name) for name in group.commands}
    return {**found, **found["datasets"].commands}


@pytest.mark.parametrize("name", commands())
def test_every_option_has_a_text(name: str) -> None:
    options = [option for option in commands()[name].params if option.name != "help"]
    assert options or name == "fetch"
    assert [option.name for option in options if not option.help] == []


def test_every_text_is_used() -> None:
    groups = {"graph": "train", "settings": "run"}
    shared = {option.name for command in commands().values() for option in command.params}
    texts = tomllib.loads((Path(output.__file__).parent / "help.toml").read_text(encoding="utf-8"))
    assert texts["options"].keys() <= shared
    for name in texts.keys() - {"options", "fairpass"}:
        used = {option.name for option in commands()[groups.get(name, name)].params}
        assert texts[name].get("options", {}).keys() <= used


def test_examples_can_be_run() -> None:
    """Their commands and options exist; values are parsed."""
    texts = tomllib.loads((Path(output.__file__).parent / "help.toml").read_text(encoding="utf-8"))
    lines = [
        line for about in texts.values() for each in about.get("examples", {}).values() for line in each.split("\n")
    ]
    assert len(lines) > 40
    for line in lines:
        words = shlex.split(line.partition(" > ")[0])
        name, *arguments = words[words.index("fairpass") + 1 :]
        if "--help" not in arguments:
            commands()[name].make_context(name, arguments)
