from typing import Any

import pytest
import torch
from torch_geometric.data import Data

from fairpass.methods import GMMD, GMMDS
from fairpass.nn import GMMDPropagation, GMMDSPropagation
from fairpass.training import Task, Training

TRAINING = Training(epochs=3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"K": 0}, r"'K' must be at least 1 \(got 0\)"),
        ({"alpha": -1.0}, r"'alpha' must be positive \(got -1.0\)"),
        ({"lambda_f": -1.0}, r"'lambda_f' must be at least 0 \(got -1.0\)"),
        ({"backbone": "mlp"}, r"'backbone' must be one of .* \(got 'mlp'\)"),
        ({"encoder": "transformer"}, r"'encoder' must be one of .*'auto'\) or a function \(got 'transformer'\)"),
        ({"criterion": "ppv"}, r"'criterion' must be one of \('dp', 'eo', 'odds'\) \(got 'ppv'\)"),
        ({"columns": "some"}, r"'columns' must be one of .* \(got 'some'\)"),
        ({"scale": "rank"}, r"'scale' must be one of .* \(got 'rank'\)"),
        (
            {"criterion": "eo", "sample": 5},
            r"'sample' must be None for criterion 'eo', which compares all nodes \(got 5\)",
        ),
        ({"weight": 1.0, "lambda_f": 2.0}, r"'weight' and 'lambda_f' must not be given together \(got 1.0 and 2.0\)"),
        ({"lambda_f_scaling": "sum"}, r"'lambda_f_scaling' must be one of .* \(got 'sum'\)"),
        ({"num_layers": 0}, r"'num_layers' must be at least 1 \(got 0\)"),
        ({"hidden": 0}, r"'hidden' must be at least 1 \(got 0\)"),
        ({"dropout": 1.0}, r"'dropout' must be at least 0 and below 1 \(got 1.0\)"),
    ],
)
def test_wrong_parameters_are_errors_before_fit(parameters: dict[str, Any], message: str) -> None:
    for kind in (GMMD, GMMDS):
        with pytest.raises(ValueError, match=message):
            kind(**parameters)


def test_of_weight_and_lambda_f_the_new_one_replaces_the_other() -> None:
    model = GMMD()
    assert (model.weight, model.lambda_f) == (100.0, None)
    assert (model.set_params(lambda_f=2.0).weight, model.lambda_f) == (None, 2.0)
    assert (model.set_params(K=3).weight, model.lambda_f) == (None, 2.0)
    assert (model.set_params(weight=5.0).weight, model.lambda_f) == (5.0, None)
    with pytest.raises(ValueError, match=r"'weight' and 'lambda_f' must not be given together \(got 1.0 and 2.0\)"):
        model.set_params(weight=1.0, lambda_f=2.0)
    assert (model.weight, model.lambda_f) == (5.0, None)


def test_construction_draws_no_random_numbers() -> None:
    state = torch.get_rng_state()
    GMMD(backbone="gat")
    assert torch.equal(torch.get_rng_state(), state)


def test_parameters_reach_the_message_passing(data: Data) -> None:
    task = Task(data)
    propagation = GMMD(K=3, lambda_s=0.5, lambda_f=2.0, alpha=0.7, step="paper").build(task).propagation
    assert isinstance(propagation, GMMDPropagation)
    assert not isinstance(propagation, GMMDSPropagation)
    assert (propagation.K, propagation.lambda_s, propagation.lambda_f) == (3, 0.5, 2.0)
    assert (propagation.alpha, propagation.step) == (0.7, "paper")
    assert isinstance(GMMDS().build(task).propagation, GMMDSPropagation)


def test_the_papers_configuration(data: Data) -> None:
    paper = GMMDS.paper(lambda_f=0.5, sample=20, training=TRAINING)
    assert isinstance(paper, GMMDS)
    propagation = paper.build(Task(data)).propagation
    assert isinstance(propagation, GMMDPropagation)
    assert (propagation.step, propagation.bandwidth, propagation.sample) == ("paper", "fixed", 20)
    assert propagation.lambda_f == 0.5 * 20 * 20
    assert paper.fit(data).evaluate(data).acc > 0


def test_scaling_counts_the_nodes_that_take_part(data: Data) -> None:
    task = Task(data)
    sizes = task.group_sizes
    model = GMMD(lambda_f=0.5, lambda_f_scaling="product")
    assert model._propagation(task).lambda_f == 0.5 * sizes[0] * sizes[1]
    assert model.set_params(sample=10_000)._propagation(task).lambda_f == 0.5 * sizes[0] * sizes[1]


def test_without_weight_it_is_plain_smoothing(data: Data) -> None:
    plain = GMMD(fair_steps=0, training=TRAINING).fit(data).predict_proba(data)
    for model in (GMMD(weight=0, training=TRAINING), GMMDS(lambda_f=0, training=TRAINING)):
        torch.testing.assert_close(model.fit(data).predict_proba(data), plain)


def test_fairness_brings_the_groups_together(data: Data) -> None:
    training = Training(epochs=25, select="last")
    plain, fair = (GMMD(weight=w, training=training).fit(data).history_[-1] for w in (0.0, 30.0))
    assert fair.discrepancy["mmd2"] < 0.5 * plain.discrepancy["mmd2"]


@pytest.mark.parametrize("backbone", ["gcn", "gin", "gat"])
def test_every_backbone_is_kept_in_a_file(data: Data, tmp_path: Any, backbone: Any) -> None:
    model = GMMD(backbone=backbone, training=TRAINING).fit(data)
    loaded = GMMD.load(model.save(tmp_path / "model"))
    assert loaded.backbone == backbone
    assert torch.equal(loaded.predict_proba(data), model.predict_proba(data))
