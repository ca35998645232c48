"""Trackers write what a fit did to where others look: event files and data bases that are read back here."""

import importlib.util
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.methods.ingredients import Interrupt, small_graph
from torch_geometric.data import Data

from fairpass.methods import GCN, GMMD
from fairpass.training import EpochRecord, Training
from fairpass.training.tracking import MLflow, TensorBoard, Tracker, TrackingError, WeightsAndBiases, open_tracker

EPOCHS = 4

# Raised inside the libraries when they are imported or used, and not ours to fix.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph()


@pytest.fixture
def model() -> GMMD:
    return GMMD(fair_steps=1, training=Training(epochs=EPOCHS, seed=3))


def follow(tracker: Tracker, model: GMMD, data: Data) -> None:
    with tracker:
        tracker.start(model, data)
        model.fit(data, callbacks=[tracker])
        tracker.finish(model.evaluate(data))


class Kept(Tracker):
    """A tracker of one's own."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}
        self.written: list[tuple[dict[str, float], int | None]] = []
        self.failed: bool | None = None

    def open(self, name: str, parameters: dict[str, Any]) -> None:
        self.parameters = {"name": name, **parameters}

    def write(self, numbers: dict[str, float], epoch: int | None) -> None:
        self.written.append((numbers, epoch))

    def close(self, *, failed: bool) -> None:
        self.failed = failed


def test_a_tracker_of_ones_own(model: GMMD, data: Data) -> None:
    kept = Kept()
    follow(kept, model, data)
    assert kept.parameters.items() >= {"method": "gmmd", "fair_steps": 1, "training__seed": 3}.items()
    assert len(kept.parameters["fingerprint"]) == 64
    assert "training" not in kept.parameters
    assert [epoch for _, epoch in kept.written] == [*range(EPOCHS), None]
    for (numbers, _), record in zip(kept.written, model.history_, strict=False):
        assert numbers["loss/loss"] == record.loss
        assert numbers["validation/AUC"] == record.metrics["AUC"]
        assert numbers["validation/selection"] == record.selection
        assert numbers["discrepancy/mmd2"] == record.discrepancy["mmd2"]
    last, _ = kept.written[-1]
    evaluation = model.evaluate(data)
    assert last["test/DP"] == pytest.approx(evaluation.delta_dp)
    assert list(last) == ["test/AUC", "test/F1", "test/ACC", "test/DP", "test/EO", "test/balanced_ACC"]
    assert kept.failed is False


def test_what_is_not_a_number_is_left_out() -> None:
    kept = Kept()
    kept(EpochRecord(0, {"loss": float("nan"), "other": 1.0}, {"AUC": 0.5}, float("nan"), threshold=None))
    assert kept.written == [({"loss/other": 1.0, "validation/AUC": 0.5}, 0)]


def test_an_interrupted_fit_is_a_failed_run(model: GMMD, data: Data) -> None:
    kept = Kept()
    with pytest.raises(KeyboardInterrupt), kept:
        model.fit(data, callbacks=[kept, Interrupt(1)])
    assert kept.failed
    assert len(kept.written) == 2


def test_tensorboard_reads_it_back(model: GMMD, data: Data, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    follow(open_tracker(f"tensorboard:{tmp_path}"), model, data)
    found = accumulator.EventAccumulator(str(tmp_path)).Reload()
    losses = found.Scalars("loss/loss")
    assert [event.step for event in losses] == list(range(EPOCHS))
    assert [event.value for event in losses] == pytest.approx(model.history_.column("loss"))
    (accuracy,) = found.Scalars("test/ACC")
    assert accuracy.value == pytest.approx(model.evaluate(data).acc)
    (text,) = found.Tensors("parameters/text_summary")
    assert b"| fair_steps | 1 |" in text.tensor_proto.string_val[0]


def test_tensorboard_says_where_it_cannot_write(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(TrackingError, match=r"TensorBoard cannot write to '.*file'"):
        TensorBoard(str(file))
    with pytest.raises(TrackingError, match=r"TensorBoard's place must be a directory \(got 's3://bucket/x'\)"):
        TensorBoard("s3://bucket/x")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_tensorboard_says_once_that_the_disk_is_full(
    model: GMMD, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    events = tmp_path / "events"
    message = f"^TensorBoard cannot write to '{events}': No space left on device$"
    threads = threading.active_count()
    tracker = TensorBoard(str(events))
    assert threading.active_count() == threads  # one of its own would print its errors
    tracker.start(model, data)
    tracker._file.close()
    full = Path("/dev/full").open("wb")  # noqa: SIM115 # the tracker closes it
    monkeypatch.setattr(tracker._records, "_writer", full)
    monkeypatch.setattr(tracker, "_file", full)
    with pytest.raises(TrackingError, match=message):
        follow(tracker, model, data)
    assert full.closed


@pytest.fixture
def mlflow(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    return found


def test_mlflow_reads_it_back(mlflow: Any, model: GMMD, data: Data, tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    follow(open_tracker(f"mlflow:{uri}"), model, data)
    interrupted = MLflow(uri)
    interrupted.start(GCN(), data)
    with pytest.raises(KeyboardInterrupt), interrupted:
        GCN(training=Training(epochs=3)).fit(data, callbacks=[interrupted, Interrupt(1)])

    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("fairpass")
    second, first = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time DESC"])
    assert (first.info.run_name, first.info.status) == ("gmmd", "FINISHED")
    assert first.data.params.items() >= {"fair_steps": "1", "training__seed": "3", "lambda_f": "None"}.items()
    losses = client.get_metric_history(first.info.run_id, "loss/loss")
    assert [metric.step for metric in losses] == list(range(EPOCHS))
    assert [metric.value for metric in losses] == pytest.approx(model.history_.column("loss"))
    assert first.data.metrics["test/ACC"] == pytest.approx(model.evaluate(data).acc)
    assert (second.info.run_name, second.info.status) == ("gcn", "FAILED")


def test_mlflow_says_where_it_cannot_write(mlflow: Any, tmp_path: Path) -> None:
    with pytest.raises(TrackingError, match="MLflow cannot write to 'nowhere://here'"):
        MLflow("nowhere://here")


class Run(SimpleNamespace):
    """As much of a run of Weights & Biases as is used."""

    def __init__(self, **options: Any) -> None:
        super().__init__(options=options, rows=[], summary={}, exit_code=None)

    def log(self, numbers: dict[str, float], step: int) -> None:
        self.rows.append((step, numbers))

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


def test_weights_and_biases_is_called_as_its_manual_says(
    model: GMMD, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a stand-in, for the library is not part of our environments."""
    runs: list[Run] = []

    def init(**options: Any) -> Run:
        runs.append(Run(**options))
        return runs[-1]

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    follow(open_tracker("wandb:fair"), model, data)
    (run,) = runs
    assert (run.options["project"], run.options["name"]) == ("fair", "gmmd")
    assert run.options["config"]["training__epochs"] == EPOCHS
    assert [step for step, _ in run.rows] == list(range(EPOCHS))
    assert run.summary["test/ACC"] == pytest.approx(model.evaluate(data).acc)
    assert run.exit_code == 0


@pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed")
def test_weights_and_biases_offline(model: GMMD, data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    follow(WeightsAndBiases("fair"), model, data)
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch.utils.tensorboard", "mlflow", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    ("description", "title"),
    [("tensorboard:here", "TensorBoard"), ("mlflow:sqlite://", "MLflow"), ("wandb:here", "Weights & Biases")],
)
def test_what_is_not_installed_is_named(description: str, title: str) -> None:
    extra = description.partition(":")[0]
    with pytest.raises(TrackingError, match=rf"{title} must be installed .*: pip install 'fairpass\[{extra}\]'"):
        open_tracker(description)


@pytest.mark.parametrize("description", ["tensorboard:x\udcff", "mlflow:sqlite:///x\udcff.db", "wandb:x\udcff"])
def test_what_is_not_utf_8_is_refused(description: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"'track' must be UTF-8 text, .* \(got '.*x\\udcff"):
        open_tracker(description)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("description", ["tensorboard", "tensorboard:", "files:here", ""])
def test_wrong_descriptions(description: str) -> None:
    with pytest.raises(ValueError, match=r"'track' must be tensorboard:DIRECTORY, mlflow:URI or wandb:PROJECT \(got"):
        open_tracker(description)
