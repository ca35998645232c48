"""The base of all classifiers: fit, save and load, and the predictions of `Predictor`."""

import hashlib
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

from torch_geometric.data import Data

from fairpass import __version__
from fairpass.errors import DataError, ModelFileError
from fairpass.methods.best import fit_candidates
from fairpass.methods.estimator import stored_parameters
from fairpass.methods.header import KIND, ODD, SHOWN, read_model, restored
from fairpass.methods.postprocess import check_thresholds, fit_thresholds
from fairpass.methods.predictor import Predictor
from fairpass.training import Checkpoint, History, Program, Training
from fairpass.training.loop import Callback, DivergedError, FitState, seeded, train
from fairpass.training.settings import Postprocess, is_available
from fairpass.training.task import Task, fingerprint
from fairpass.training.tensors import to_json, write_tensors

FilePath = str | os.PathLike[str]

_LIBRARIES = ("torch", "torch-geometric", "numpy", "safetensors")


class NodeClassifier(Predictor, ABC):
    """A classifier of the nodes of a graph.

    A subclass declares its hyper-parameters (see `fairpass.parameters`) and builds its `Program`. How to train is
    separate, in `training`.

    Attributes after `fit`:
        program_: the trained networks.
        history_: the record of every epoch.
        threshold_: the score above which a prediction is positive; None with more than two classes or with
            `group_thresholds_`, the thresholds of `postprocess="thresholds"`.
        epoch_: the selected epoch, and `selected_` its record with the metrics of the final decisions.
        chosen_: the hyper-parameters of the candidate that validation chose, if there were several; `candidates_` are
            those of all, each with its validation `score`.
        provenance_: the `provenance` of the fitted graph.
    """

    summary: ClassVar[str]

    @abstractmethod
    def build(self, task: Task) -> Program:
        """Return the untrained program for graphs of this shape.

        It may use only the task's sizes (`num_features`, `num_classes`, `num_groups`, `group_sizes`), its names and
        its `sens_column`: there is no graph when a stored model is loaded.
        """

    def candidates(self, best: "NodeClassifier | None", number: int) -> "Sequence[NodeClassifier]":
        """Return what validation chooses among in round `number`, given the best so far; by default nothing."""
        return ()

    def fit(
        self,
        data: Data,
        *,
        callbacks: Sequence[Callback] = (),
        checkpoint: FilePath | None = None,
        save_to: FilePath | None = None,
    ) -> Self:
        """Train on a graph and return the classifier itself.

        Args:
            data: PyG `Data` with `x`, `edge_index`, `y`, `sens`, `train_mask` and `val_mask`; not modified.
            callbacks: called with the record of every epoch.
            checkpoint: file that keeps the state of an interrupted fit; the same call resumes from it.
            save_to: file to save the fitted classifier to, before the checkpoint is removed: so there is always one of
                the two, whenever the process is killed.
        """
        training = self.training
        if not is_available(training.device):
            raise ValueError(f"'device' must be available on this machine (got {training.device!r})")
        task = Task(data, training.device)
        header = self.describe(task, fingerprint(data))
        if self.candidates(None, 0):
            self._check_task(task)
            tried, kept = fit_candidates(self, data, callbacks, checkpoint)
            best = tried[0].classifier
            found = [{**stored_parameters(each.classifier.hyperparameters), "score": each.score} for each in tried]
            header |= {"chosen": stored_parameters(best.hyperparameters), "candidates": found}
            self._assume(best.program_, best.history_, {**best._header, **header})
        else:
            kept = self.train_on(task, header, callbacks, checkpoint)
        self.keep(save_to, kept)
        return self

    def train_on(
        self, task: Task, header: dict[str, Any], callbacks: Sequence[Callback], checkpoint: FilePath | None
    ) -> list[Path]:
        """Train on a graph as methods see it, given what `describe` says of it; return files that may be removed."""
        self._check_task(task)
        store = None if checkpoint is None else Checkpoint(checkpoint, _identity(header))
        kept = [] if store is None else [store.path]
        try:
            with seeded(self.training.seed, deterministic=self.training.deterministic):
                program = self.build(task).to(task.device)
                progress = train(program, task, self.training, callbacks=callbacks, checkpoint=store)
            self._accept(program, progress, header, task)
        except DivergedError:  # it would diverge again
            _remove(kept)
            raise
        return kept

    def keep(self, save_to: FilePath | None, done_with: Iterable[Path]) -> None:
        """Save what was fitted, if asked to, and only then remove the files of the fit."""
        if save_to is not None:
            self.save(save_to)
        _remove(done_with)

    def save(self, path: FilePath) -> Path:
        """Write the fitted classifier to one safetensors file; it contains no code."""
        state = self._fitted().state_dict()
        return write_tensors(path, KIND, state, {**self._header, "history": self.history_.to_list()})

    @classmethod
    def load(cls, path: FilePath, *, device: str | None = None, **code: Callable[..., Any]) -> Self:
        """Read a classifier that `save` wrote; `NodeClassifier.load` reads models of every method.

        Args:
            device: where to put it; by default where it was fitted, or on the CPU if that is not available.
            code: hyper-parameters that are functions; a file holds only their names.
        """
        tensors, header = read_model(path)
        settings = header["training"]
        found = cls._class_of(header["method"], path)
        try:
            settings["device"] = device or (settings["device"] if is_available(settings["device"]) else "cpu")
            model = found(**found._read(header["parameters"], code), training=Training(**settings))
            header["training"] = settings = model.training.to_dict()
            built = found(**found._read(header["chosen"], code)) if header.get("chosen") else model
            stored = {found.current_name(name): tensor for name, tensor in tensors.items()}
            with seeded(model.training.seed, deterministic=False):  # what is drawn here is overwritten
                program = restored(built.build, header["sizes"], stored, own_code=bool(code))
            model._assume(program.to(settings["device"]), History.from_list(header.pop("history")), header)
            _ = model.promise_  # raises if it cannot be read
        except ODD as error:
            reason = f"(it was written with {header['versions']}): {error}"[:SHOWN]
            raise ModelFileError(f"'{path}' does not fit this version of {found.name!r} {reason}") from None
        return model

    @classmethod
    def _class_of(cls, name: str, path: FilePath) -> type[Self]:
        """Return the class of a stored model: this one, or any subclass if this is abstract."""
        from fairpass.methods.registry import UnknownMethodError, method

        try:
            found = method(name) if inspect.isabstract(cls) else cls
        except UnknownMethodError as error:
            raise ModelFileError(f"'{path}' holds a model that cannot be read here: {str(error)[:SHOWN]}") from None
        if not issubclass(found, cls) or (found is cls and cls.name != name):
            raise ModelFileError(f"'{path}' must hold a {cls.__name__} model (got one of method {name[:SHOWN]!r})")
        return found

    @classmethod
    def _read(cls, stored: Mapping[str, Any], code: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
        named = {name: value["function"] for name, value in stored.items() if isinstance(value, Mapping)}
        if lacking := sorted(named.keys() - code.keys()):
            raise ValueError(f"'{lacking[0]}' must be given to 'load', it was the function {named[lacking[0]]!r}")
        return {**cls.before, **stored, **code}

    @classmethod
    def current_name(cls, name: str) -> str:
        """Return the current name of a stored tensor; version 0.1 had other names for some."""
        return name.replace(".convolutions.", ".layers.")

    def is_fit_of(self, candidate: "NodeClassifier", data: Data) -> bool:
        """Return whether this is what fitting `candidate` to a graph results in."""
        wanted = candidate.describe(Task(data, candidate.training.device), fingerprint(data))
        return _identity(self._header) == _identity(wanted)

    def describe(self, task: Task, graph: str) -> dict[str, Any]:
        """Return what is known before a fit begins, given the fingerprint of the graph."""
        return {
            "method": self.name,
            "parameters": stored_parameters(self.hyperparameters),
            "training": self.training.to_dict(),
            "sizes": task.sizes(),
            "fingerprint": graph,
            "provenance": task.provenance,
            "versions": {"fairpass": __version__, **{name: version(name) for name in _LIBRARIES}},
        }

    @property
    def postprocess(self) -> Postprocess:
        return self.training.postprocess

    @property
    def trains_alone(self) -> bool:
        """Whether this classifier cannot be trained with others as one population (see `fairpass.runs`)."""
        return True

    def _check_task(self, task: Task) -> None:
        """Raise `DataError` if the method cannot be fitted to this graph; called before training."""
        self._check_weights(task)
        for what, where, number in (("labels", "y", task.num_classes), ("groups", "sens", task.num_groups)):
            if what in self.takes_two and number != 2:
                raise DataError(f"'data.{where}' must have 2 {what} for {type(self).__name__} (got {number})")
        if self.postprocess == "thresholds":
            check_thresholds(task)

    def _accept(self, program: Program, progress: FitState, header: dict[str, Any], task: Task) -> None:
        selected = progress.selected  # raises `DivergedError` if there is none
        header = {**header, "threshold": selected.threshold, "epoch": selected.epoch}
        if self.postprocess == "thresholds":
            header |= fit_thresholds(program, task, self.training)
        self._assume(program, progress.history, header)


def _remove(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _identity(header: dict[str, Any]) -> str:
    """Return a hash of everything that the result of a fit depends on."""
    parts = {name: header[name] for name in ("method", "parameters", "training", "fingerprint", "versions")}
    return hashlib.sha256(to_json(parts).encode()).hexdigest()
