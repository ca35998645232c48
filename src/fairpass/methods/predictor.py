"""What a fitted classifier does: scores, decisions, and how accurate and fair they are."""

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets.graph import SplitName
from fairpass.errors import DataError, NotFiniteError, NotFittedError
from fairpass.methods.estimator import Estimator
from fairpass.methods.postprocess import decide_by_group
from fairpass.metrics import Evaluation, GroupThresholds, evaluate
from fairpass.metrics.inputs import Undefined
from fairpass.metrics.promise import Promise
from fairpass.nn.validation import check_choice
from fairpass.training import EpochRecord, History, Program
from fairpass.training.program import ReferenceName, UnknownGroup, scores
from fairpass.training.task import Task


class Predictor(Estimator):
    """A classifier after `fit` or `load`; `NodeClassifier` says what its attributes are."""

    name: ClassVar[str]

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
