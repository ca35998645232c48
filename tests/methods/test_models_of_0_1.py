"""Model files that version 0.1 wrote still give the probabilities they gave then.

`tests/data/models_0_1` holds a graph, models that version 0.1.0 fitted to it, and what they predicted.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch_geometric.data import Data

from fairpass.methods import GCN, GMMD, GMMDS, NodeClassifier, load_model

STORED = Path(__file__).parents[1] / "data" / "models_0_1"


@pytest.fixture(scope="module")
def data() -> Data:
    return Data(**load_file(STORED / "graph.safetensors"))


@pytest.fixture(scope="module")
def probabilities() -> dict[str, Tensor]:
    found: dict[str, Tensor] = load_file(STORED / "probabilities.safetensors")
    return found


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (GMMD, {"weight": 100.0, "lambda_f": None, "encoder": "mlp", "columns": "all", "criterion": "dp"}),
        # Version 0.1 also stored a weight of 1, which played no part beside lambda_f.
        (GMMDS, {"weight": None, "lambda_f": 2.0, "num_layers": 3, "bandwidth": "fixed", "columns": "all"}),
        (GCN, {"hidden": 6, "num_layers": 2}),
    ],
)
def test_predicts_as_it_did(
    data: Data, probabilities: dict[str, Tensor], tmp_path: Path, kind: type[NodeClassifier], parameters: dict[str, Any]
) -> None:
    model = load_model(STORED / f"{kind.name}.safetensors")
    assert type(model) is kind
    assert {name: getattr(model, name) for name in parameters} == parameters
    torch.testing.assert_close(model.predict_proba(data), probabilities[kind.name], rtol=0, atol=1e-5)
    assert len(model.history_) == 6
    # Written by this version, it is the same model.
    again = kind.load(model.save(tmp_path / "model"))
    assert torch.equal(again.predict_proba(data), model.predict_proba(data))
    assert again.threshold_ == model.threshold_
    assert again.hyperparameters == model.hyperparameters


def test_settings_that_0_1_did_not_have_mean_as_before(data: Data) -> None:
    model = load_model(STORED / "gmmd-s.safetensors")
    assert (model.training.window, model.training.postprocess) == (1, "none")
    assert model.chosen_ is None
    assert model.group_thresholds_ is None
    positive = model.predict_proba(data)[:, 1] > 0.4872097373008728
    assert torch.equal(model.predict(data), positive.long())
