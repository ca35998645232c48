"""What all classifiers share and no single method's nature can change; see `battery.py` for the rest."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tests.methods.ingredients import changed
from torch_geometric.data import Data

import fairpass
from fairpass.errors import DataError, ModelFileError, NotFittedError
from fairpass.methods import GCN, GMMD, GMMDS, Constant, NodeClassifier, load_model, registry
from fairpass.methods.header import KIND
from fairpass.training import DivergedError, Training
from fairpass.training.tensors import read_tensors, write_tensors

TRAINING = Training(epochs=3)


@pytest.fixture(scope="module")
def fitted(data: Data) -> GCN:
    return GCN(hidden=4, training=TRAINING).fit(data)


def rewrite(path: Path, **changes: Any) -> None:
    """Change the header of a model file, its digest with it."""
    tensors, header = read_tensors(path, KIND)
    write_tensors(path, KIND, tensors, {**header, **changes})


def test_model_file_tells_what_it_is(data: Data, fitted: GCN, tmp_path: Path) -> None:
    path = fitted.save(tmp_path / "model.safetensors")
    with safe_open(str(path), framework="pt") as file:
        header = json.loads(file.metadata()["fairpass"])["header"]
    assert header["method"] == "gcn"
    assert header["parameters"] == {"num_layers": 2, "hidden": 4, "dropout": 0.5}
    assert header["training"] == TRAINING.to_dict()
    assert header["sizes"]["feature_names"] == data.feature_names
    assert header["sizes"]["label_names"] == header["sizes"]["group_names"] == ["0", "1"]
    assert header["fingerprint"] == fairpass.training.fingerprint(data)
    assert header["provenance"] == fitted.provenance_ == data.provenance
    assert header["versions"]["fairpass"] == fairpass.__version__
    assert header["versions"]["torch"] == torch.__version__
    assert len(header["history"]) == 3


@pytest.mark.parametrize(
    "damage", ["shown", [], {"verdict": "shown"}, {"checks": []}, {"checks": [{"verdict": "shown"}]}]
)
def test_a_damaged_promise_is_said_when_the_model_is_read(fitted: GCN, tmp_path: Path, damage: Any) -> None:
    path = fitted.save(tmp_path / "model.safetensors")
    assert GCN.load(path).promise_ is None
    rewrite(path, promise=damage)
    with pytest.raises(ModelFileError, match=r"does not fit this version|must be a fairpass model"):
        GCN.load(path)


def test_failed_saving_leaves_the_old_model_and_nothing_else(
    data: Data, fitted: GCN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = fitted.save(tmp_path / "model.safetensors")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("fairpass.training.tensors.write_bytes", fail)
    with pytest.raises(OSError, match="disk full"):
        Constant(training=TRAINING).fit(data).save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert torch.equal(GCN.load(path).predict_proba(data), fitted.predict_proba(data))


def test_a_kill_while_the_model_is_saved_does_not_lose_the_fit(
    data: Data, fitted: GCN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, checkpoint, again = tmp_path / "model", tmp_path / "checkpoint", list[object]()

    def killed(*_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(GCN, "save", killed)
        with pytest.raises(SystemExit):
            GCN(hidden=4, training=TRAINING).fit(data, checkpoint=checkpoint, save_to=file)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]
    GCN(hidden=4, training=TRAINING).fit(data, callbacks=[again.append], checkpoint=checkpoint, save_to=file)
    assert list(tmp_path.iterdir()) == [file]
    assert torch.equal(GCN.load(file).predict_proba(data), fitted.predict_proba(data))


def test_a_fit_that_diverged_leaves_no_checkpoint(data: Data, tmp_path: Path) -> None:
    hopeless = GCN(hidden=4, training=TRAINING.but(learning_rate=1e30))
    with pytest.raises(DivergedError):
        hopeless.fit(data, checkpoint=tmp_path / "checkpoint", save_to=tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_parameters_changed_after_fit_do_not_reach_the_model(data: Data, tmp_path: Path) -> None:
    model = GCN(hidden=4, training=TRAINING).fit(data)
    before = model.predict_proba(data)
    model.set_params(hidden=32, training=Training(device="meta"))
    assert torch.equal(model.predict_proba(data), before)
    loaded = GCN.load(model.save(tmp_path / "model"))
    assert loaded.hidden == 4
    assert loaded.training == TRAINING
    assert torch.equal(loaded.predict_proba(data), before)


def test_set_params_checks_as_init_does(fitted: GCN) -> None:
    with pytest.raises(ValueError, match=r"'hidden' must be at least 1 \(got 0\)"):
        fitted.set_params(dropout=0.1, hidden=0)
    assert fitted.get_params(deep=False) == {"num_layers": 2, "hidden": 4, "dropout": 0.5, "training": TRAINING}


def test_repr_can_be_evaluated() -> None:
    model = GMMD(K=3, lambda_f=0.5, training=TRAINING)
    assert repr(model) == "GMMD(K=3, lambda_f=0.5, training=Training(epochs=3))"
    assert eval(repr(model)).get_params() == model.get_params()


def test_a_refit_that_fails_leaves_the_fitted_model(data: Data, fitted: GCN) -> None:
    before = fitted.predict_proba(data)
    with pytest.raises(DataError):
        fitted.fit(changed(data, y=None))
    assert torch.equal(fitted.predict_proba(data), before)


@pytest.mark.parametrize("surroundings", [torch.no_grad, torch.inference_mode, partial(torch.device, "meta")])
def test_a_fit_does_not_depend_on_the_modes_of_torch_around_it(data: Data, surroundings: Callable[[], Any]) -> None:
    expected = GMMD(hidden=4, training=TRAINING).fit(data).predict_proba(data)
    with surroundings():
        given = data if surroundings is not torch.inference_mode else data.clone()  # whose tensors have no gradients
        found = GMMD(hidden=4, training=TRAINING).fit(given).predict_proba(given)
    assert torch.equal(found, expected)


def test_missing_device_is_refused(data: Data) -> None:
    with pytest.raises(ValueError, match=r"'device' must be available on this machine \(got 'cuda:99'\)"):
        GCN(training=Training(device="cuda:99")).fit(data)


def test_model_of_a_missing_device_is_loaded_on_the_cpu(data: Data, fitted: GCN, tmp_path: Path) -> None:
    path = fitted.save(tmp_path / "model")
    rewrite(path, training={**TRAINING.to_dict(), "device": "cuda:99"})
    loaded = load_model(path)
    assert loaded.training == TRAINING
    assert torch.equal(loaded.predict_proba(data), fitted.predict_proba(data))
    assert load_model(path, device="cpu").training.device == "cpu"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"width": 4}}, r"does not fit this version of 'gcn' .*unexpected keyword argument"),
        ({"parameters": {"hidden": 5}}, r"does not fit this version of 'gcn' .*there must be a tensor"),
        ({"parameters": {"hidden": -1}}, r"does not fit this version of 'gcn' .*must be at least 1"),
        ({"training": {"device": "cpu", "epochs": 0}}, r"does not fit this version of 'gcn' .*'epochs'"),
        ({"method": "lost"}, r"holds a model that cannot be read here: 'method' must be one of"),
    ],
)
def test_models_of_other_versions(fitted: GCN, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = fitted.save(tmp_path / "model")
    rewrite(path, **changes)
    with pytest.raises(ModelFileError, match=f"(?s){message}"):
        load_model(path)


def test_stripped_of_its_header_a_model_is_a_foreign_file(fitted: GCN, tmp_path: Path) -> None:
    path = fitted.save(tmp_path / "model")
    save_file(load_file(path), path)
    with pytest.raises(ModelFileError, match="a foreign file"):
        GCN.load(path)


def test_a_subclass_does_not_pass_for_its_parent(data: Data, tmp_path: Path) -> None:
    path = GMMDS(training=Training(epochs=1)).fit(data).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"must hold a GMMD model \(got one of method 'gmmd-s'\)"):
        GMMD.load(path)
    assert isinstance(NodeClassifier.load(path), GMMDS)


class Unregistered(Constant):
    name: ClassVar[str] = "unregistered"


def test_a_class_reads_its_own_models_without_the_registry(data: Data, tmp_path: Path) -> None:
    path = Unregistered().fit(data).save(tmp_path / "model")
    assert isinstance(Unregistered.load(path), Unregistered)
    with pytest.raises(ModelFileError, match="cannot be read here"):
        load_model(path)


def test_any_method_is_read_through_a_common_base(data: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Abstract(NodeClassifier):
        """A family of methods to which the constant does not belong."""

    path = Constant().fit(data).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"must hold a Abstract model \(got one of method 'constant'\)"):
        Abstract.load(path)
    monkeypatch.setitem(registry.OWN, "constant", f"{__name__}:Unregistered")
    assert isinstance(NodeClassifier.load(path), Unregistered)


def test_evaluation_of_swapped_labels_is_refused(data: Data, fitted: GCN) -> None:
    swapped = changed(data, label_names=["1", "0"])
    with pytest.raises(DataError, match=r"'data.label_names' must be those of the fitted graph \(got '1' for '0'"):
        fitted.evaluate(swapped)


def test_evaluation_needs_labelled_nodes_of_every_group(data: Data, fitted: GCN) -> None:
    with pytest.raises(DataError, match=r"'test_mask' must hold labelled nodes \(got none\)"):
        fitted.evaluate(changed(data, test_mask=torch.zeros_like(data.test_mask)))
    with pytest.raises(DataError, match=r"'data' must have 'test_mask' \(it is missing\)"):
        fitted.evaluate(changed(data, test_mask=None))
    one_group = changed(data, test_mask=data.test_mask & (data.sens == 0))
    with pytest.raises(DataError, match="is undefined: "):
        fitted.evaluate(one_group)
    with pytest.warns(UserWarning, match="is undefined: "):
        evaluation = fitted.evaluate(one_group, undefined="nan")
    assert evaluation.delta_dp != evaluation.delta_dp
    assert evaluation.acc > 0


def test_evaluation_with_intervals(data: Data, fitted: GCN) -> None:
    assert set(fitted.evaluate(data, bootstrap=20).intervals) >= {"acc", "delta_dp"}


def test_not_fitted_is_a_runtime_error(data: Data) -> None:
    with pytest.raises(RuntimeError, match="this GCN must be fitted first"):
        GCN().predict(data)
    assert issubclass(NotFittedError, RuntimeError)
