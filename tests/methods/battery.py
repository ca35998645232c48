"""What every method must do, as tests that any method can be put through.

Subclass `MethodBattery` under a name that begins with `Test`, and give it a fixture `kind` of scope "class",
the method's class. `tests/methods/test_battery.py` does so for every method of the registry.
"""

import copy
import math
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from sklearn.base import clone
from tests.methods.ingredients import (
    EPOCHS,
    Interrupt,
    Kind,
    changed,
    check_probabilities,
    draws_nothing,
    fit_or_refuse,
    make,
    small_graph,
    some_unknown,
)
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from fairpass.errors import DataError, ModelFileError, NotFiniteError, NotFittedError
from fairpass.methods import GCN, GMMD, NodeClassifier, load_model
from fairpass.metrics import Evaluation
from fairpass.training import EpochRecord, History, Training


def decided(model: NodeClassifier, data: Data, probabilities: Tensor) -> Tensor:
    """Return the decisions that a model must make: with the threshold 0.5, or by its groups' rule."""
    if model.group_thresholds_ is None:
        return (probabilities[:, 1] > 0.5).long()
    rule = model.group_thresholds_.decide(probabilities, sens=data.sens, seed=model.training.seed)
    return torch.from_numpy(rule)


class MethodBattery:
    @pytest.fixture(scope="class")
    @classmethod
    def data(cls) -> Data:
        return small_graph()

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, kind: Kind, data: Data) -> NodeClassifier:
        return make(kind).fit(data)

    @pytest.fixture
    def model_file(self, fitted: NodeClassifier, tmp_path: Path) -> Path:
        return fitted.save(tmp_path / "model.safetensors")

    # Fitting and predicting

    def test_work_before_the_first_epoch_is_part_of_the_budget(
        self, kind: Kind, data: Data, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        passes: list[int] = []
        backward = torch.autograd.backward

        def counted(*arguments: Any, **options: Any) -> None:
            passes[-1] += 1
            backward(*arguments, **options)

        monkeypatch.setattr(torch.autograd, "backward", counted)
        for epochs in (1, 3):
            passes.append(0)
            kind(training=Training(epochs=epochs)).fit(data)
        assert passes[1] >= 3 * passes[0]

    def test_fit_returns_the_classifier_and_leaves_data_and_random_state_alone(
        self, kind: Kind, data: Data, fitted: NodeClassifier
    ) -> None:
        before, state = copy.deepcopy(data), torch.get_rng_state()
        model = make(kind)
        assert model.fit(data) is model
        model.predict(data)
        model.evaluate(data)
        assert torch.equal(torch.get_rng_state(), state)
        assert not torch.are_deterministic_algorithms_enabled()
        assert data.keys() == before.keys()
        for name, value in before.items():
            assert torch.equal(data[name], value) if isinstance(value, Tensor) else data[name] == value
        # The same seed gives the same result to the bit, whatever was drawn before.
        assert model.history_ == fitted.history_
        assert torch.equal(model.predict_proba(data), fitted.predict_proba(data))

    def test_another_seed_gives_another_result(self, kind: Kind, data: Data, fitted: NodeClassifier) -> None:
        other = make(kind, seed=1).fit(data)
        assert torch.equal(other.predict_proba(data), fitted.predict_proba(data)) == draws_nothing(kind)

    def test_predictions(self, data: Data, fitted: NodeClassifier) -> None:
        probabilities, predictions = fitted.predict_proba(data), fitted.predict(data)
        check_probabilities(probabilities, 150)
        assert predictions.dtype == torch.long
        assert torch.equal(predictions, decided(fitted, data, probabilities))
        assert torch.equal(fitted.predict(data), predictions)
        assert torch.equal(fitted.predict_proba(data), probabilities)
        assert not probabilities.requires_grad

    def test_history_is_complete_and_the_best_epoch_is_selected(self, data: Data, fitted: NodeClassifier) -> None:
        history = fitted.history_
        assert history.column("epoch") == list(range(EPOCHS))
        for record in history:
            assert list(record.metrics) == ["AUC", "F1", "ACC", "DP", "EO"]
            assert list(record.discrepancy) == ["mmd2", "similarity", "bound"]
            assert all(value is not None and math.isfinite(value) for value in record.flat().values())
            auc, f1, acc, dp, eo = record.metrics.values()
            assert record.selection == pytest.approx(auc + f1 + acc - dp - eo, abs=1e-5)
            assert str(record).startswith(f"epoch {record.epoch}  ")
        selections = [record.selection for record in history]
        assert fitted.epoch_ == selections.index(max(selections))
        measured = fitted.evaluate(data, "val").percent()
        if fitted.group_thresholds_ is None:
            assert fitted.selected_ == history[fitted.epoch_]
        expected = {name: 100 * value for name, value in fitted.selected_.metrics.items()}
        assert measured == pytest.approx(expected, abs=1e-3)

    def test_evaluates_every_split(self, data: Data, fitted: NodeClassifier) -> None:
        for split in ("train", "val", "test"):
            evaluation = fitted.evaluate(data, split)
            assert isinstance(evaluation, Evaluation)
            assert evaluation.n == int(data[f"{split}_mask"].sum())

    def test_labels_outside_training_and_validation_are_never_looked_at(
        self, kind: Kind, data: Data, fitted: NodeClassifier
    ) -> None:
        hidden = torch.where(data.train_mask | data.val_mask, data.y, 1 - data.y)
        for y in (hidden, torch.where(data.test_mask, -1, data.y)):
            other = make(kind).fit(changed(data, y=y))
            assert other.history_ == fitted.history_
            assert torch.equal(other.predict_proba(data), fitted.predict_proba(data))

    def test_threshold_is_chosen_on_validation(self, kind: Kind, data: Data, fitted: NodeClassifier) -> None:
        chosen = make(kind, threshold="accuracy", select="last").fit(data)
        assert chosen.epoch_ == EPOCHS - 1
        scores = chosen.predict_proba(data)[data.val_mask, 1]
        correct = data.y[data.val_mask] == 1
        best = max(float(((scores > cut) == correct).float().mean()) for cut in [*scores.tolist(), 0.0, 1.0, 0.5])
        assert chosen.history_[-1].metrics["ACC"] == pytest.approx(best)
        if chosen.group_thresholds_ is not None:  # the decisions are another rule's
            assert chosen.threshold_ is None
            return
        assert chosen.evaluate(data, "val").acc == pytest.approx(best)
        assert chosen.threshold_ is not None
        assert chosen.threshold_ == chosen.history_[-1].threshold
        scores = chosen.predict_proba(data)[:, 1]
        assert torch.equal(chosen.predict(data), (scores > chosen.threshold_).long())

    # Graphs of all kinds

    def test_predicts_on_another_graph(self, fitted: NodeClassifier) -> None:
        other = small_graph(90, seed=3)
        check_probabilities(fitted.predict_proba(other), 90)
        assert fitted.evaluate(other).n == int(other.test_mask.sum())
        bare = Data(x=other.x, edge_index=other.edge_index, sens=other.sens)
        assert torch.equal(fitted.predict_proba(bare), fitted.predict_proba(other))

    def test_features_far_outside_the_fitted_range_give_probabilities_or_an_error(
        self, data: Data, fitted: NodeClassifier
    ) -> None:
        for size in (1e10, 1e20, 3e38):
            extreme = changed(data, x=torch.where(torch.arange(data.num_nodes)[:, None] % 9 == 0, size, data.x))
            with suppress(NotFiniteError):
                check_probabilities(fitted.predict_proba(extreme), data.num_nodes)

    def test_features_may_be_part_of_a_computation(self, kind: Kind, data: Data, fitted: NodeClassifier) -> None:
        tracked = changed(data, x=data.x.clone().requires_grad_())
        assert torch.equal(make(kind).fit(tracked).predict_proba(tracked), fitted.predict_proba(data))

    def test_a_score_does_not_depend_on_who_else_is_scored(self, data: Data, fitted: NodeClassifier) -> None:
        def scores(rows: list[int]) -> Tensor:
            people = Data(x=data.x[rows], sens=data.sens[rows], edge_index=torch.empty(2, 0, dtype=torch.long))
            return fitted.predict_proba(people)

        together = scores(list(range(30)))
        for rows in ([4], [20, 3], torch.nonzero(data.sens[:30] == 1).flatten().tolist()):
            torch.testing.assert_close(scores(rows), together[rows], rtol=0, atol=1e-6)

    def test_some_groups_and_labels_are_unknown(self, kind: Kind, data: Data) -> None:
        partly = some_unknown(data)
        partly.y = torch.where(torch.arange(150) % 7 == 0, -1, data.y)
        model = make(kind).fit(partly)
        check_probabilities(model.predict_proba(partly), 150)
        if model.group_thresholds_ is not None:
            with pytest.raises(DataError, match=r"'data.sens' must be known for thresholds per group \(got \d+ nodes"):
                model.evaluate(partly)
            partly.test_mask = partly.test_mask & (partly.sens >= 0)
        assert model.evaluate(partly).n == int((partly.test_mask & (partly.y >= 0)).sum())

    def test_more_labels_and_more_groups_work_or_are_refused(self, kind: Kind) -> None:
        labels = small_graph(240, classes=3)
        model = make(kind)
        if fit_or_refuse(model, labels):
            check_probabilities(model.predict_proba(labels), 240, 3)
            assert model.threshold_ is None
            assert torch.equal(model.predict(labels), model.predict_proba(labels).argmax(1))
            assert model.evaluate(labels).threshold is None
        groups = small_graph(240, groups=3)
        model = make(kind)
        if fit_or_refuse(model, groups):
            check_probabilities(model.predict_proba(groups), 240)
            assert list(model.history_[0].discrepancy) == ["mmd2", "similarity"]
            assert len(model.evaluate(groups).groups) == 3

    def test_sensitive_attribute_outside_the_features_works_or_is_refused(self, kind: Kind, data: Data) -> None:
        without = changed(data, sens_column=None, x=data.x[:, :6], feature_names=data.feature_names[:6])
        model = make(kind)
        if fit_or_refuse(model, without):
            check_probabilities(model.predict_proba(without), 150)

    def test_weights_of_edges_are_used_or_refused(self, kind: Kind, data: Data, fitted: NodeClassifier) -> None:
        """Other weights give other scores, unless the method uses no edges; ones are as good as none."""
        both_ways = data.edge_index.sum(0) % 5 + 1
        weighted = changed(data, edge_weight=both_ways / both_ways.float().mean())
        model = make(kind)
        if not fit_or_refuse(model, weighted):
            assert not kind.takes_edge_weights
            with pytest.raises(DataError, match=rf"'data.edge_weight' must be left out for '{kind.name}'"):
                fitted.predict(weighted)
            return
        assert kind.takes_edge_weights
        without = changed(data, edge_index=data.edge_index[:, :0])
        uses_edges = not torch.equal(make(kind).fit(without).predict_proba(without), fitted.predict_proba(data))
        assert torch.equal(model.predict_proba(weighted), fitted.predict_proba(data)) != uses_edges
        if uses_edges:
            assert not torch.equal(model.predict_proba(weighted), model.predict_proba(data))
        alike = changed(data, edge_weight=torch.ones(data.num_edges))
        assert torch.equal(make(kind).fit(alike).predict_proba(alike), fitted.predict_proba(data))

    @pytest.mark.parametrize(
        ("spoil", "message"),
        [
            (lambda d: changed(d, sens=None), r"'data' must have .* \(missing: sens\)"),
            (lambda d: changed(d, x=d.x.clone().fill_(math.nan)), "'data.x' must be finite"),
            (lambda d: changed(d, sens=torch.zeros_like(d.sens)), "at least two groups"),
            (lambda d: changed(d, train_mask=d.train_mask & (d.y == 0)), "label must occur in the 'train'"),
            (lambda d: changed(d, val_mask=d.val_mask & (d.sens == 1)), "group must occur in the 'val'"),
            (
                lambda d: changed(d, val_mask=d.val_mask & ((d.sens == 1) | (d.y == 0)), group_names=["f", "m"]),
                "the 'val' split cannot be measured: .* group 'f' has no node|label 1 in group 'f'",
            ),
            (lambda d: changed(d, y=d.y.float()), "'data.y' must be integer"),
            (lambda _: HeteroData(), r"must be a torch_geometric.data.Data \(got HeteroData"),
        ],
    )
    def test_unsuitable_data_is_refused_before_training(
        self, kind: Kind, data: Data, spoil: Callable[[Data], Data], message: str
    ) -> None:
        epochs: list[EpochRecord] = []
        with pytest.raises(DataError, match=message):
            make(kind).fit(spoil(data), callbacks=[epochs.append])
        assert not epochs

    def test_other_features_are_refused(self, data: Data, fitted: NodeClassifier) -> None:
        with pytest.raises(DataError, match=r"must have the 7 features of the fitted graph \(got 6"):
            fitted.predict(changed(data, x=data.x[:, :6], feature_names=None, sens_column=None))
        swapped = [*data.feature_names[1::-1], *data.feature_names[2:]]
        with pytest.raises(DataError, match=r"'data.feature_names' must be those of the fitted graph"):
            fitted.predict(changed(data, feature_names=swapped))

    # The estimator's conventions

    def test_parameters(self, kind: Kind, data: Data) -> None:
        model = make(kind)
        copied = clone(model)
        assert type(copied) is kind
        assert copied.get_params() == model.get_params()
        assert copied.set_params(training=Training(epochs=2)) is copied
        assert copied.training.epochs == 2
        assert repr(kind()) == f"{kind.__name__}()"
        assert "training=Training(epochs=2)" in repr(copied)
        with pytest.raises(ValueError, match="'wrong' is not a parameter"):
            model.set_params(wrong=1)
        for use in (model.predict, model.predict_proba, model.evaluate, model.save):
            with pytest.raises(NotFittedError, match="must be fitted first"):
                use(data)

    # Files

    def test_loaded_model_predicts_the_same_to_the_bit(
        self, data: Data, fitted: NodeClassifier, model_file: Path, tmp_path: Path
    ) -> None:
        other = small_graph(90, seed=3)
        state = torch.get_rng_state()
        loaded = [load(model_file) for load in (type(fitted).load, NodeClassifier.load, load_model)]
        assert torch.equal(torch.get_rng_state(), state)
        for model in loaded:
            assert type(model) is type(fitted)
            assert model.get_params() == fitted.get_params()
            assert (model.history_, model.epoch_) == (fitted.history_, fitted.epoch_)
            assert model.threshold_ == fitted.threshold_
            for graph in (data, other):
                assert torch.equal(model.predict_proba(graph), fitted.predict_proba(graph))
                assert torch.equal(model.predict(graph), fitted.predict(graph))
        again = loaded[0].save(tmp_path / "again.safetensors")
        assert again.read_bytes() == model_file.read_bytes()

    def test_files_that_are_not_this_model(self, kind: Kind, model_file: Path, tmp_path: Path) -> None:
        content = model_file.read_bytes()
        other = GCN if kind is not GCN else GMMD
        with pytest.raises(ModelFileError, match=rf"must hold a {other.__name__} model \(got one of method"):
            other.load(model_file)
        bad = tmp_path / "bad.safetensors"
        for damage in (
            content[: len(content) // 2],
            content[:-1],
            content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
            b"",
            b"This is no model.\n" * 20,
        ):
            bad.write_bytes(damage)
            with pytest.raises(ModelFileError, match=r"bad\.safetensors' (must be a fairpass model|is damaged)"):
                load_model(bad)
        save_file({"weight": torch.ones(2)}, bad)
        with pytest.raises(ModelFileError, match="a foreign file"):
            kind.load(bad)
        with pytest.raises(ModelFileError, match="there is no such file"):
            kind.load(tmp_path / "nowhere")

    # Interruptions

    def test_interrupted_fit_goes_on_to_the_same_result(
        self, kind: Kind, data: Data, fitted: NodeClassifier, tmp_path: Path
    ) -> None:
        file = tmp_path / "checkpoint.safetensors"
        model = make(kind)
        with pytest.raises(KeyboardInterrupt):
            model.fit(data, callbacks=[Interrupt(2)], checkpoint=file)
        with pytest.raises(NotFittedError):
            model.predict(data)
        with pytest.raises(ModelFileError, match="must be a checkpoint of this very fit"):
            make(kind, seed=1).fit(data, checkpoint=file)
        with pytest.raises(ModelFileError, match="must be a checkpoint of this very fit"):
            make(kind).fit(changed(data, x=data.x + 1), checkpoint=file)
        torch.rand(7)  # the random state of the process that goes on does not matter
        rest = History()
        model = make(kind).fit(data, callbacks=[rest.append], checkpoint=file)
        assert rest == fitted.history_[3:]
        assert model.history_ == fitted.history_
        assert model.epoch_ == fitted.epoch_
        assert torch.equal(model.predict_proba(data), fitted.predict_proba(data))
        assert not list(tmp_path.iterdir())
