"""`fairpass check`: one answer, and an exit code that a pipeline can read."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from fairpass.datasets import load
from fairpass.methods import Constant, Logistic
from fairpass.metrics.limits import LIMITS
from fairpass.training import Training

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A constant and logistic regression on Adult, whose predictions differ a lot between men and women."""
    folder = tmp_path_factory.mktemp("models")
    data = load("adult")
    Constant(training=Training(epochs=1)).fit(data).save(folder / "constant.safetensors")
    Logistic().fit(data).save(folder / "logistic.safetensors")
    return folder


@pytest.mark.parametrize(
    ("model", "limit", "verdict", "code"),
    [("constant", "0.05", "shown", 0), ("logistic", "0.05", "violated", 4), ("logistic", "0.19", "not shown", 3)],
)
def test_the_exit_code_says_what_came_out(
    run: Run, models: Path, model: str, limit: str, verdict: str, code: int
) -> None:
    command = ("check", models / f"{model}.safetensors", "adult", "--max-dp", limit)
    result = run(*command)
    assert result.exit_code == code, result.output
    said = " ".join(result.stdout.split())
    assert f"{model} on Adult (census income): the limits asked for {verdict.capitalize()}" in said
    assert "random sample" in said
    assert ("of no use" in said) == (model == "constant")  # it keeps every limit
    document = json.loads(run(*command, "--json").stdout)["promise"]
    assert (document["verdict"], document["on"]) == (verdict, "test")
    assert document["checks"][0]["sentence"] in said


def test_all_limits_at_once(run: Run, models: Path) -> None:
    limits = ("--max-dp", "1", "--max-eo", "0.9", "--min-impact-ratio", "0.01", "--confidence", "0.99")
    result = run("check", models / "logistic.safetensors", "adult", *limits)
    assert result.exit_code == 0, result.output
    for kind in LIMITS.values():
        assert kind.title.capitalize() in result.stdout
    assert "99 % confidence" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "give a limit to check: --max-dp, --max-eo or --min-impact-ratio"),
        (("--max-dp", "5"), "--max-dp must be above 0 and at most 1 (got 5.0)"),
        (("--min-impact-ratio", "0"), "--min-impact-ratio must be above 0 and at most 1 (got 0.0)"),
        (("--max-dp", "0.1", "--confidence", "95"), "--confidence must be at least 0.5 and below 1 (got 95.0)"),
    ],
)
def test_wrong_limits_are_found_before_any_work(run: Run, options: tuple[str, ...], message: str) -> None:
    result = run("check", "nowhere.safetensors", "adult", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in " ".join(result.stderr.replace("│", " ").split())


def test_nodes_that_are_not_there(run: Run, models: Path) -> None:
    result = run("check", models / "logistic.safetensors", "adult", "--max-dp", "0.1", "--on", "safety")
    assert result.exit_code == 2
    assert "--on must not be safety: the split has no safety nodes" in " ".join(result.stderr.replace("│", " ").split())
