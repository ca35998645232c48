"""What comes before the fair layers of GMMD: encoders of all kinds, a user's own module, and centred logits."""

import copy
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.ingredients import Interrupt, changed, check_probabilities, small_graph
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from fairpass.errors import ModelFileError
from fairpass.methods import GMMD, GMMDS, load_model
from fairpass.methods.gmmd import FairMessagePassing, contrasts
from fairpass.nn import SparseOperator
from fairpass.runs import fit_all
from fairpass.training import Task, Training

TRAINING = Training(epochs=4)
ENCODERS = ["mlp", "linear", "gcn", "sage", "gat", "gin"]


class TwoConvolutions(nn.Module):
    """What a user might write."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 8) -> None:
        super().__init__()
        self.first, self.norm = GCNConv(in_channels, hidden), nn.BatchNorm1d(hidden)
        self.second = GCNConv(hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.second(self.norm(self.first(x, edge_index)).relu(), edge_index)
        return out


def two_convolutions(in_channels: int, out_channels: int) -> nn.Module:
    return TwoConvolutions(in_channels, out_channels)


def too_wide(in_channels: int, out_channels: int) -> nn.Module:
    return TwoConvolutions(in_channels, out_channels + 1)


class GivenLogits(nn.Module):
    """An encoder that returns the features."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_fits_predicts_and_is_kept(encoder: Any, classes: int, tmp_path: Path) -> None:
    graph = small_graph(240, classes=classes)
    model = GMMD(encoder=encoder, norm=True, residual=True, num_layers=3, training=TRAINING).fit(graph)
    probabilities = model.predict_proba(graph)
    check_probabilities(probabilities, 240, classes)
    loaded = load_model(model.save(tmp_path / "model"))
    assert isinstance(loaded, GMMD)
    assert (loaded.encoder, loaded.norm, loaded.residual) == (encoder, True, True)
    assert torch.equal(loaded.predict_proba(graph), probabilities)


def test_linear_has_one_layer_whatever_num_layers_says(data: Data) -> None:
    one, many = (GMMD(encoder="linear", num_layers=n, training=TRAINING).fit(data) for n in (1, 4))
    assert torch.equal(one.predict_proba(data), many.predict_proba(data))
    assert sum(parameter.numel() for parameter in many.program_.parameters()) == 2 * 7 + 2


@pytest.mark.parametrize("encoder", ["linear", "gcn", "sage"])
def test_a_population_is_its_members_alone(data: Data, encoder: str) -> None:
    def members() -> list[GMMD]:
        options: Any = {"encoder": encoder, "norm": True, "residual": True, "num_layers": 3, "scale": "standard"}
        first = GMMD(training=TRAINING, **options)
        return [first, GMMD(lambda_s=0.0, weight=3.0, training=TRAINING.but(seed=1), **options)]

    together = members()
    assert fit_all(together, data) == [None, None]
    for one, other in zip(together, members(), strict=True):
        torch.testing.assert_close(one.predict_proba(data), other.fit(data).predict_proba(data), rtol=0, atol=1e-4)


# A user's own module


def test_a_function_makes_the_encoder(data: Data, tmp_path: Path) -> None:
    before = copy.deepcopy(data)
    model = GMMD(encoder=two_convolutions, training=TRAINING).fit(data)
    assert torch.equal(data.x, before.x)
    assert model.trains_alone
    probabilities = model.predict_proba(data)
    check_probabilities(probabilities, 150)
    program = model.program_
    assert isinstance(program, FairMessagePassing)
    assert isinstance(program.encoder, TwoConvolutions)
    # The same seed, the same result.
    again = GMMD(encoder=two_convolutions, training=TRAINING).fit(data)
    assert torch.equal(again.predict_proba(data), probabilities)
    path = model.save(tmp_path / "model")
    loaded = load_model(path, encoder=two_convolutions)
    assert torch.equal(loaded.predict_proba(data), probabilities)
    assert torch.equal(GMMD.load(path, encoder=two_convolutions).predict_proba(data), probabilities)


def test_a_file_holds_the_functions_name_and_no_code(data: Data, tmp_path: Path) -> None:
    path = GMMD(encoder=two_convolutions, training=TRAINING).fit(data).save(tmp_path / "model")
    name = f"{__name__}.two_convolutions"
    with pytest.raises(ModelFileError, match=rf"'encoder' must be given to 'load', it was the function '{name}'"):
        GMMD.load(path)
    # Another function has other parameters.
    with pytest.raises(ModelFileError, match="does not fit this version of 'gmmd'"):
        GMMD.load(path, encoder=too_wide)


@pytest.mark.parametrize(
    "encoder",
    [
        TwoConvolutions,
        functools.partial(TwoConvolutions, hidden=5),
        lambda in_channels, out_channels: TwoConvolutions(in_channels, out_channels, 3),
    ],
)
def test_any_callable_will_do(data: Data, tmp_path: Path, encoder: Callable[[int, int], nn.Module]) -> None:
    model = GMMD(encoder=encoder, lambda_s=0.0, training=TRAINING).fit(data)
    path = model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"'encoder' must be given to 'load', it was the function '\S+'"):
        load_model(path)
    loaded = load_model(path, encoder=encoder)
    assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))
    assert "encoder=" in repr(model)


def test_a_fit_with_a_users_module_can_be_interrupted(data: Data, tmp_path: Path) -> None:
    path = tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        GMMD(encoder=two_convolutions, training=TRAINING).fit(data, callbacks=[Interrupt(1)], checkpoint=path)
    resumed = GMMD(encoder=two_convolutions, training=TRAINING).fit(data, checkpoint=path)
    whole = GMMD(encoder=two_convolutions, training=TRAINING).fit(data)
    assert resumed.history_ == whole.history_
    assert torch.equal(resumed.predict_proba(data), whole.predict_proba(data))


def test_an_encoder_must_return_one_logit_for_each_class(data: Data) -> None:
    with pytest.raises(ValueError, match=r"'encoder' must return logits of shape \(150, 2\) \(got \(150, 3\)\)"):
        GMMD(encoder=too_wide, training=TRAINING).fit(data)


# Smoothing left out


@pytest.mark.parametrize("model", [GMMD, GMMDS])
def test_without_smoothness_edges_and_layers_do_not_matter(data: Data, model: type[GMMD]) -> None:
    one = model(lambda_s=0.0, K=1, training=TRAINING).fit(data)
    deep = model(lambda_s=0.0, K=5, backbone="sage", training=TRAINING).fit(data)
    rewired = changed(data, edge_index=small_graph(seed=5).edge_index)
    assert torch.equal(deep.predict_proba(rewired), one.predict_proba(data))
    assert not torch.equal(model(training=TRAINING).fit(data).predict_proba(data), one.predict_proba(data))


# Centred logits


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_contrasts_are_an_orthonormal_basis_of_centred_logits(classes: int) -> None:
    basis = contrasts(classes).double()
    identity = torch.eye(classes, dtype=torch.float64)
    torch.testing.assert_close(basis.T @ basis, identity[1:, 1:], rtol=0, atol=1e-6)
    torch.testing.assert_close(basis @ basis.T, identity - 1 / classes, rtol=0, atol=1e-6)


def given_logits(in_channels: int, out_channels: int) -> nn.Module:
    return GivenLogits()


def program_of(columns: Any, task: Task, **options: Any) -> FairMessagePassing:
    return FairMessagePassing(task, GMMD(encoder=given_logits, columns=columns, **options))


def logits_as_features(classes: int, *, centred: bool, nodes: int = 60) -> Task:
    """Return a graph whose features are the encoder's logits."""
    graph = small_graph(nodes, classes=classes)
    logits = torch.randn(nodes, classes, generator=torch.Generator().manual_seed(0))
    graph.x = logits - logits.mean(1, keepdim=True) if centred else logits
    graph.feature_names, graph.sens_column = [f"logit {i}" for i in range(classes)], None
    return Task(graph)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("options", [{}, {"lambda_s": 0.0}, {"step": "paper", "bandwidth": "fixed", "lambda_f": 5.0}])
def test_centred_columns_of_centred_logits_change_nothing(classes: int, options: dict[str, Any]) -> None:
    task = logits_as_features(classes, centred=True)
    centred, everything = (program_of(columns, task, **options)(task) for columns in ("centred", "all"))
    torch.testing.assert_close(centred.softmax(-1), everything.softmax(-1), rtol=0, atol=2e-5)
    torch.testing.assert_close(centred, everything, rtol=0, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_centred_columns_see_no_more_than_the_softmax(classes: int) -> None:
    task, shifted = logits_as_features(classes, centred=False), logits_as_features(classes, centred=True)
    torch.testing.assert_close(
        program_of("centred", task)(task), program_of("centred", task)(shifted), rtol=0, atol=1e-4
    )


@pytest.mark.parametrize(("classes", "columns"), [(2, 1), (3, 2)])
def test_the_layers_work_on_one_column_less(classes: int, columns: int) -> None:
    task = logits_as_features(classes, centred=False)
    seen: list[torch.Size] = []
    program = program_of("centred", task)
    program.propagation.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape))
    assert program(task).shape == (60, classes)
    assert seen == [(60, columns)]


@pytest.mark.parametrize("columns", ["centred", "all"])
@pytest.mark.parametrize("classes", [2, 3])
def test_derivatives(classes: int, columns: Any) -> None:
    task = logits_as_features(classes, centred=False, nodes=24)
    options: Any = {"bandwidth": "fixed", "lambda_f": 3.0, "fair_steps": 2}
    program = program_of(columns, task, **options).double()
    operator = SparseOperator.from_edge_index(task.edge_index, task.num_nodes, dtype=torch.float64)

    def of(x: Tensor) -> Tensor:
        inside = copy.copy(task)
        inside.x, inside._operators = x, {"gcn": operator}
        out: Tensor = program(inside)
        return out

    assert gradcheck(of, task.x.double().requires_grad_(), fast_mode=True)
