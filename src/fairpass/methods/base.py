"""What all classifiers share: fit, predict, evaluate, save, load. A method says only what is particular to it."""

import hashlib
import inspect
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.errors import DataError, ModelFileError, NotFittedError
from fairpass.metrics import Evaluation, evaluate
from fairpass.training import Callback, Checkpoint, History, Program, Task, Training, fingerprint, seeded, train
from fairpass.training.program import scores
from fairpass.training.task import SplitName
from fairpass.training.tensors import read_tensors, write_tensors

_KIND = "fairpass model"


class NodeClassifier(ABC):
    """A classifier of the nodes of a graph.

    A subclass names its hyper-parameters as keyword arguments of `__init__`, stores each under its own name (as
    scikit-learn's estimators do), and builds its `Program`. How to train is apart from them, in `training`.

    Attributes after `fit`:
        program_: the trained networks.
        history_: what happened at every epoch.
        threshold_: the score above which a prediction is positive (None with more than two classes).
        epoch_: the selected epoch.
    """

    name: ClassVar[str]
    summary: ClassVar[str]

    def __init__(self, *, training: Training | None = None) -> None:
        self.training = training if training is not None else self.default_training()

    @classmethod
    def default_training(cls) -> Training:
        """Return the settings a method trains with if none are given."""
        return Training()

    @abstractmethod
    def build(self, task: Task) -> Program:
        """Return the untrained program for graphs of this shape (features, classes, groups)."""

    def fit(
        self,
        data: Data,
        *,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a graph and return the classifier itself.

        Args:
            data: PyG `Data` with `x`, `edge_index`, `y`, `sens`, `train_mask` and `val_mask`. It is not modified.
            callbacks: called with the record of every epoch.
            checkpoint: a file in which an interrupted fit is kept, and from which the same call goes on.
        """
        task = Task(data, self.training.device)
        task.groups  # noqa: B018 # fails here, before any work, if there are fewer than two groups
        digest = fingerprint(data)
        with seeded(self.training.seed, deterministic=self.training.deterministic):
            program = self.build(task).to(task.device)
            store = None if checkpoint is None else Checkpoint(checkpoint, self._identity(digest))
            progress = train(program, task, self.training, callbacks=callbacks, checkpoint=store)
        self.program_, self.history_ = program, progress.history
        self.threshold_, self.epoch_ = progress.best_threshold, progress.best_epoch
        self._shape = {
            "num_features": task.num_features,
            "num_classes": task.num_classes,
            "num_groups": task.num_groups,
            "group_sizes": task.group_sizes,
            "feature_names": task.feature_names,
            "label_names": task.label_names,
            "group_names": task.group_names,
            "sens_column": task.sens_column,
            "fingerprint": digest,
            "provenance": data.get("provenance"),
        }
        return self

    @torch.no_grad()
    def predict_proba(self, data: Data) -> Tensor:
        """Return the probability of each class for every node, `(N, C)`; of the fitted graph or of another."""
        program = self._fitted()
        task = Task(data, self.training.device, need_masks=False)
        self._check_same_features(task)
        program.eval()
        logits: Tensor = program(task)
        return logits.softmax(-1).cpu()

    def predict(self, data: Data) -> Tensor:
        """Return the predicted class of every node, `(N,)`."""
        probabilities = self.predict_proba(data)
        if self.threshold_ is None:
            return probabilities.argmax(-1)
        return (probabilities[:, 1] > self.threshold_).long()

    def evaluate(self, data: Data, split: SplitName = "test", *, bootstrap: int = 0) -> Evaluation:
        """Return how accurate and how fair the predictions are on a split's labelled nodes."""
        probabilities = self.predict_proba(data)
        task = Task(data, need_masks=False)
        nodes = task.nodes(split)
        if not len(nodes):
            raise DataError(f"'{split}' must hold labelled nodes (got none)")
        return evaluate(
            task.y[nodes],
            scores(probabilities[nodes]),
            sens=task.sens[nodes],
            threshold=0.5 if self.threshold_ is None else self.threshold_,
            group_names=task.group_names or None,
            label_names=task.label_names or None,
            bootstrap=bootstrap,
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted classifier to one safetensors file; nothing in it is code."""
        program = self._fitted()
        header = {
            "method": self.name,
            "parameters": self.get_params(),
            "training": self.training.to_dict(),
            "shape": self._shape,
            "threshold": self.threshold_,
            "epoch": self.epoch_,
            "history": self.history_.to_list(),
            "versions": {name: version(name) for name in ("fairpass", "torch", "torch-geometric")},
        }
        header["parameters"].pop("training")
        return write_tensors(path, _KIND, program.state_dict(), header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a classifier that `save` wrote; its predictions are the same to the last bit."""
        tensors, header = read_tensors(path, _KIND)
        if header["method"] != cls.name:
            raise ModelFileError(f"'{path}' must hold a {cls.name!r} model (got {header['method']!r})")
        model = cls(**header["parameters"], training=Training(**header["training"]))
        model._restore(tensors, header)
        return model

    def _restore(self, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
        shape = header["shape"]
        program = self.build(_Shape(shape))  # type: ignore[arg-type] # a program is built from a task's sizes alone
        program.load_state_dict(tensors)
        self.program_, self._shape = program.to(self.training.device).eval(), shape
        self.history_ = History.from_list(header["history"])
        self.threshold_, self.epoch_ = header["threshold"], header["epoch"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the hyper-parameters and `training` by name, as scikit-learn does."""
        return {name: getattr(self, name) for name in inspect.signature(type(self).__init__).parameters if name != "self"}

    def set_params(self, **params: Any) -> Self:
        """Change hyper-parameters by name."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"'{name}' is not a parameter of {type(self).__name__} (it has {', '.join(known)})")
            setattr(self, name, value)
        return self

    def _identity(self, digest: str) -> str:
        description = {k: v for k, v in self.get_params().items() if k != "training"}
        content = json.dumps([self.name, description, self.training.to_dict(), digest], sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()

    def _fitted(self) -> Program:
        program: Program | None = getattr(self, "program_", None)
        if program is None:
            raise NotFittedError(f"this {type(self).__name__} must be fitted first (call 'fit', or 'load' a model)")
        return program

    def _check_same_features(self, task: Task) -> None:
        expected = self._shape["num_features"]
        if task.num_features != expected:
            raise DataError(f"'data.x' must have the {expected} features of the fitted graph (got {task.num_features})")
        names = self._shape["feature_names"]
        if names and task.feature_names and names != task.feature_names:
            different = next(f"{a!r} where {b!r} was fitted" for a, b in zip(task.feature_names, names, strict=True) if a != b)
            raise DataError(f"'data.feature_names' must be those of the fitted graph (got {different})")

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name != "training" and value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"


class _Shape:
    """The sizes of the graph a stored program was built for."""

    def __init__(self, shape: dict[str, Any]) -> None:
        for name in ("num_features", "num_classes", "num_groups", "group_sizes", "sens_column"):
            setattr(self, name, shape[name])
