"""Following a fit in TensorBoard, MLflow or Weights & Biases.

A tracker is a callback of `fit` that also records what is fitted and the result::

    with TensorBoard("runs/german") as tracker:
        tracker.start(model, data)
        model.fit(data, callbacks=[tracker])
        tracker.finish(model.evaluate(data))

The library of a tracker is an extra of fairpass and is imported when the tracker is made.
"""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from math import isfinite
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self
from uuid import uuid4

from fairpass.errors import FairpassError
from fairpass.metrics import Evaluation
from fairpass.plain_text import is_utf8
from fairpass.training.history import EpochRecord
from fairpass.training.task import fingerprint

if TYPE_CHECKING:
    from torch_geometric.data import Data


class TrackingError(FairpassError, RuntimeError):
    """A tracker's library is not installed, or cannot write to its destination."""


class _Classifier(Protocol):
    name: ClassVar[str]

    def get_params(self, deep: bool = ...) -> dict[str, Any]: ...


class Tracker(ABC):
    """Records one fit elsewhere, with its own `open`, `write` and `close`; a context manager that closes at the end."""

    def start(self, classifier: _Classifier, data: "Data") -> None:
        """Record what is about to be fitted; call it before `fit`."""
        parameters = {name: value for name, value in classifier.get_params(deep=True).items() if name != "training"}
        about = data.get("provenance") or {}
        graph = {"data": about.get("name") or about.get("source") or "", "fingerprint": fingerprint(data)}
        self.open(classifier.name, {"method": classifier.name, **graph, **parameters})

    def __call__(self, record: EpochRecord) -> None:
        """Write the numbers of one epoch."""
        validation = {**record.metrics, "selection": record.selection, "threshold": record.threshold}
        self._write(record.epoch, loss=record.losses, validation=validation, discrepancy=record.discrepancy)

    def finish(self, evaluation: Evaluation, split: str = "test") -> None:
        """Write the result: the metrics on a split's nodes, as fractions."""
        metrics = {name: value / 100 for name, value in evaluation.percent().items()}
        self._write(None, **{split: {**metrics, "balanced_ACC": evaluation.balanced_acc}})

    def _write(self, epoch: int | None, **groups: Mapping[str, float | None]) -> None:
        """Write the numbers that are finite: a metric may not be defined, and training may have diverged."""
        numbers = {f"{group}/{name}": value for group, values in groups.items() for name, value in values.items()}
        self.write({name: value for name, value in numbers.items() if value is not None and isfinite(value)}, epoch)

    @abstractmethod
    def open(self, name: str, parameters: dict[str, Any]) -> None:
        """Begin a run of a method with these parameters."""

    @abstractmethod
    def write(self, numbers: dict[str, float], epoch: int | None) -> None:
        """Write the numbers of an epoch or, if it is None, of the whole run; names look like `loss/total`."""

    @abstractmethod
    def close(self, *, failed: bool) -> None:
        """End the run, if one was begun."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(failed=kind is not None)


class TensorBoard(Tracker):
    """Writes an event file for TensorBoard into a directory."""

    def __init__(self, directory: str) -> None:
        self._library, self._directory = _library("torch.utils.tensorboard", "TensorBoard", "tensorboard"), directory
        if "://" in directory:
            raise TrackingError(f"TensorBoard's place must be a directory (got {directory!r})")
        name = f"events.out.tfevents.{time.time():.0f}.{gethostname()}.{os.getpid()}.{uuid4().hex}"
        with self._named():
            Path(directory).mkdir(parents=True, exist_ok=True)
            # Not its own `SummaryWriter`: that writes in a thread, which prints a traceback if it cannot.
            self._file = Path(directory, name).open("xb")  # noqa: SIM115 # until `close`
        self._records = self._library.RecordWriter(self._file)
        self._add(file_version="brain.Event:2")

    def open(self, name: str, parameters: dict[str, Any]) -> None:
        rows = [f"| {key} | {value} |" for key, value in parameters.items()]
        text = "\n".join(["| name | value |", "|---|---|", *rows])
        self._add(summary=self._library.writer.text("parameters", text))

    def write(self, numbers: dict[str, float], epoch: int | None) -> None:
        for name, value in numbers.items():
            self._add(summary=self._library.writer.scalar(name, value), step=epoch)

    def _add(self, **event: Any) -> None:
        record = self._library.writer.Event(wall_time=time.time(), **event).SerializeToString()
        with self._named():
            try:
                self._records.write(record)
                self._file.flush()  # so that a training can be followed
            except OSError:
                with suppress(OSError):  # it tries to write the rest
                    self._file.close()
                raise

    def close(self, *, failed: bool) -> None:
        with self._named():
            self._file.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TrackingError(f"TensorBoard cannot write to '{self._directory}': {error.strerror or error}") from None


class MLflow(Tracker):
    """Logs to an MLflow tracking server or database, such as `sqlite:///mlflow.db` or `http://localhost:5000`."""

    def __init__(self, uri: str, experiment: str = "fairpass") -> None:
        self._mlflow = _library("mlflow", "MLflow", "mlflow")
        self._run: str | None = None
        try:
            self._client = self._mlflow.MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(experiment)
            self._experiment = found.experiment_id if found else self._client.create_experiment(experiment)
        except self._mlflow.exceptions.MlflowException as error:
            raise TrackingError(f"MLflow cannot write to '{uri}': {error}") from None

    def open(self, name: str, parameters: dict[str, Any]) -> None:
        self._run = self._client.create_run(self._experiment, run_name=name).info.run_id
        params = [self._mlflow.entities.Param(key, str(value)) for key, value in parameters.items()]
        self._client.log_batch(self._run, params=params)

    def write(self, numbers: dict[str, float], epoch: int | None) -> None:
        now = time.time_ns() // 1_000_000
        metrics = [self._mlflow.entities.Metric(name, value, now, epoch or 0) for name, value in numbers.items()]
        self._client.log_batch(self._run, metrics=metrics)

    def close(self, *, failed: bool) -> None:
        if self._run is not None:
            self._client.set_terminated(self._run, "FAILED" if failed else "FINISHED")


class WeightsAndBiases(Tracker):
    """Logs to a Weights & Biases project; `WANDB_MODE=offline` in the environment keeps all data on this machine."""

    def __init__(self, project: str) -> None:
        self._wandb, self._project = _library("wandb", "Weights & Biases", "wandb"), project
        self._run: Any = None

    def open(self, name: str, parameters: dict[str, Any]) -> None:
        self._run = self._wandb.init(project=self._project, name=name, config=parameters)

    def write(self, numbers: dict[str, float], epoch: int | None) -> None:
        if epoch is None:
            self._run.summary.update(numbers)
        else:
            self._run.log(numbers, step=epoch)

    def close(self, *, failed: bool) -> None:
        if self._run is not None:
            self._run.finish(exit_code=int(failed))


def open_tracker(description: str) -> Tracker:
    """Return the tracker that a text describes: `tensorboard:DIRECTORY`, `mlflow:URI` or `wandb:PROJECT`."""
    trackers: dict[str, Any] = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WeightsAndBiases}
    name, _, where = description.partition(":")
    if name not in trackers or not where:
        raise ValueError(f"'track' must be tensorboard:DIRECTORY, mlflow:URI or wandb:PROJECT (got {description!r})")
    if not is_utf8(where):
        raise ValueError(f"'track' must be UTF-8 text, as the programs that read it expect (got {description!r})")
    tracker: Tracker = trackers[name](where)
    return tracker


def _library(module: str, title: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        hint = f"pip install 'fairpass[{extra}]' ({error})"
        raise TrackingError(f"{title} must be installed to track with it: {hint}") from None
