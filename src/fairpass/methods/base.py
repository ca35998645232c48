"""The base of all classifiers: fit, predict, evaluate, save and load."""

import hashlib
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass import __version__
from fairpass.errors import DataError, ModelFileError, NotFiniteError, NotFittedError
from fairpass.methods.best import fit_candidates
from fairpass.methods.estimator import Estimator, stored_parameters
from fairpass.methods.header import KIND, ODD, SHOWN, read_model, restored
from fairpass.methods.postprocess import check_thresholds, decide_by_group, fit_thresholds
from fairpass.metrics import Evaluation, GroupThresholds, evaluate
from fairpass.metrics.inputs import Undefined
from fairpass.metrics.promise import Promise
from fairpass.nn.validation import check_choice
from fairpass.training import Checkpoint, EpochRecord, History, Program, Training
from fairpass.training.loop import Callback, DivergedError, FitState, seeded, train
from fairpass.training.program import ReferenceName, UnknownGroup, scores
from fairpass.training.settings import Postprocess, is_available
from fairpass.training.task import SplitName, Task, fingerprint
from fairpass.training.tensors import to_json, write_tensors

FilePath = str | os.PathLike[str]

_LIBRARIES = ("torch", "torch-geometric", "numpy", "safetensors")


class NodeClassifier(Estimator, ABC):
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

    name: ClassVar[str]
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
        if save_to is not None:
            self.save(save_to)
        _remove(kept)
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

    @torch.no_grad()
    def predict_proba(
        self, data: Data, *, reference: ReferenceName | None = None, unknown_group: UnknownGroup = "none"
    ) -> Tensor:
        """Return the probability of each class for every node, `(N, C)`, of the fitted graph or another.

        Args:
            data: PyG `Data` with `x` and `edge_index`, and `sens` where it is known; one node is enough.
            reference: `"fitted"` scores nodes among those of the fitted graph, so that a score depends on the node and
                its neighbours only. `"batch"` scores the nodes of `data` among each other; it is the default only for
                models that sample nodes or were written by version 0.1.
            unknown_group: what methods that need a node's group do without it: `"none"` corrects nothing;
                `"estimate"` averages the correction over the groups, weighted by an estimate from the features;
                `"error"` raises a `DataError`.
        """
        program, device = self._fitted(), self._header["training"]["device"]
        if reference is None:
            reference = "fitted" if program.keeps_reference else "batch"
        check_choice("reference", reference, ReferenceName)
        check_choice("unknown_group", unknown_group, UnknownGroup)
        if reference == "fitted" and not program.keeps_reference:
            raise ValueError("'reference' must be 'batch' for this model: it keeps no reference (got 'fitted')")
        task = Task(data, device, need_masks=False)
        expected = self._header["sizes"]["num_features"]
        if task.num_features != expected:
            raise DataError(f"'data.x' must have the {expected} features of the fitted graph (got {task.num_features})")
        self._check_names("feature_names", task.feature_names)
        self._check_weights(task)
        if (largest := int(task.sens.max())) >= (known := int(self._header["sizes"]["num_groups"])):
            raise DataError(f"'data.sens' must be one of the {known} groups of the fitted graph (got {largest})")
        if reference == "fitted":
            self._check_names("group_names", task.group_names)
        program.eval()
        probabilities = program.score(task, reference, unknown_group).softmax(-1).cpu()
        if bad := int(probabilities.isnan().any(-1).sum()):
            got = f"got NaN for {bad:,} nodes; the largest feature is {float(task.x.abs().max()):.1e}"
            raise NotFiniteError(f"predictions must be finite ({got}, perhaps far more than in the fitted graph)")
        return probabilities

    def predict(self, data: Data, **scoring: Any) -> Tensor:
        """Return the predicted class of every node, `(N,)`; keyword arguments as for `predict_proba`.

        Thresholds per group need the group of every node; random decisions are drawn from the training seed.
        """
        return self.decide(data, self.predict_proba(data, **scoring))

    def decide(self, data: Data, probabilities: Tensor, nodes: Tensor | None = None) -> Tensor:
        """Return the predicted class of some nodes, by default all, given the probabilities of all nodes."""
        if self.group_thresholds_ is not None:
            self._check_names("group_names", list(data.get("group_names") or ()))
            seed = self._header["training"]["seed"]
            return decide_by_group(self.group_thresholds_, data, probabilities, nodes, seed)
        chosen = probabilities if nodes is None else probabilities[nodes]
        return chosen.argmax(-1) if self.threshold_ is None else (chosen[:, 1] > self.threshold_).long()

    def evaluate(
        self,
        data: Data,
        split: SplitName = "test",
        *,
        undefined: Undefined = "error",
        bootstrap: int = 0,
        **scoring: Any,
    ) -> Evaluation:
        """Return the accuracy and fairness of the predictions on the labelled nodes of a split.

        Args:
            undefined: what to do if a label or group is missing, so that a metric is undefined: `"error"` or `"nan"`.
            bootstrap: number of resamples for confidence intervals; 0 for none.
            scoring: `reference` and `unknown_group`, as for `predict_proba`.
        """
        probabilities = self.predict_proba(data, **scoring)
        task = Task(data, need_masks=False)
        self._check_names("label_names", task.label_names)
        nodes = task.nodes(split)
        if not len(nodes):
            raise DataError(f"'{split}_mask' must hold labelled nodes (got none)")
        return evaluate(
            task.y[nodes],
            scores(probabilities[nodes]),
            sens=task.sens[nodes],
            threshold=0.5 if self.threshold_ is None else self.threshold_,
            decisions=None if self.group_thresholds_ is None else self.decide(data, probabilities, nodes),
            group_names=task.group_names or None,
            label_names=task.label_names or self._header["sizes"]["label_names"] or None,
            undefined=undefined,
            bootstrap=bootstrap,
        )

    def mark(self, promise: Promise) -> None:
        """Keep what a check of limits on unfairness said, as `promise_`, also in the file that `save` writes."""
        self._fitted()
        self._header["promise"] = promise.to_dict()

    @property
    def promise_(self) -> Promise | None:
        """What a check of limits on unfairness said, if there was one."""
        stored = self._header.get("promise")
        return None if stored is None else Promise.from_dict(stored)

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
            raise ModelFileError(f"'{path}' holds a model that cannot be read here: {error}") from None
        if not issubclass(found, cls) or (found is cls and cls.name != name):
            raise ModelFileError(f"'{path}' must hold a {cls.__name__} model (got one of method {name!r})")
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

    def _check_weights(self, task: Task) -> None:
        """Refuse weights of edges that would be ignored: attention learns its own, some methods change the edges."""
        if task.edge_weight is None:
            return
        attends = "gat" in (getattr(self, "backbone", None), getattr(self, "encoder", None))
        if attends or not self.takes_edge_weights:
            what = f"{self.name!r}{' with attention' if self.takes_edge_weights else ''}"
            raise DataError(
                f"'data.edge_weight' must be left out for {what}, which does not use weights of edges "
                f"(with tables: unweighted=True in place of 'edge_weight')"
            )

    def _accept(self, program: Program, progress: FitState, header: dict[str, Any], task: Task) -> None:
        selected = progress.selected  # raises `DivergedError` if there is none
        header = {**header, "threshold": selected.threshold, "epoch": selected.epoch}
        if self.postprocess == "thresholds":
            header |= fit_thresholds(program, task, self.training)
        self._assume(program, progress.history, header)

    def _assume(self, program: Program, history: History, header: dict[str, Any]) -> None:
        self.program_, self.history_, self._header = program, history, header
        self.threshold_: float | None = header["threshold"]
        self.epoch_: int = header["epoch"]
        self.chosen_: dict[str, Any] | None = header.get("chosen")
        self.candidates_: list[dict[str, Any]] = header.get("candidates", [])
        rule = header.get("group_thresholds")
        self.group_thresholds_ = None if rule is None else GroupThresholds.from_dict(rule)
        self.selected_: EpochRecord = replace(history[self.epoch_], **header.get("validation", {}))
        self.provenance_: dict[str, Any] | None = header["provenance"]

    def _fitted(self) -> Program:
        program: Program | None = getattr(self, "program_", None)
        if program is None:
            raise NotFittedError(f"this {type(self).__name__} must be fitted first (call 'fit', or 'load' a model)")
        return program

    def _check_names(self, what: str, names: list[str]) -> None:
        fitted = self._header["sizes"][what]
        if names and fitted and names != fitted:
            different = ", ".join(f"{a!r} for {b!r}" for a, b in zip(names, fitted, strict=False) if a != b)
            raise DataError(f"'data.{what}' must be those of the fitted graph (got {different})")


def _remove(files: Iterable[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)


def _identity(header: dict[str, Any]) -> str:
    """Return a hash of everything that the result of a fit depends on."""
    parts = {name: header[name] for name in ("method", "parameters", "training", "fingerprint", "versions")}
    return hashlib.sha256(to_json(parts).encode()).hexdigest()
