"""`fairpass train --track`: a fit that can be followed elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]

GCN = ("train", "german", "--method", "gcn", "--epochs", "3")

# Raised inside the libraries when they are imported or used, and not ours to fix.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def test_two_trackers_at_once(run_json: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    events, uri = tmp_path / "events", f"sqlite:///{tmp_path / 'mlflow.db'}"
    shown = run_json(*GCN, "--track", f"tensorboard:{events}", "--track", f"mlflow:{uri}", "--json")

    accuracy = shown["evaluation"]["acc"]
    found = accumulator.EventAccumulator(str(events)).Reload()
    assert len(found.Scalars("loss/loss")) == 3
    assert found.Scalars("test/ACC")[0].value == pytest.approx(accuracy)
    client = mlflow.MlflowClient(tracking_uri=uri)
    (logged,) = client.search_runs([client.get_experiment_by_name("fairpass").experiment_id])
    assert logged.data.metrics["test/ACC"] == pytest.approx(accuracy)
    assert logged.data.params.items() >= {"method": "gcn", "data": "german", "training__epochs": "3"}.items()


def test_a_wrong_description_is_one_sentence_before_any_work(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run(*GCN, "--track", "tensorbord:here", "--out", out)
    assert result.exit_code == 1
    assert "--track must be tensorboard:DIRECTORY, mlflow:URI or wandb:PROJECT (got 'tensorbord:here')" in result.stderr
    assert "Traceback" not in result.output
    assert not out.exists()
