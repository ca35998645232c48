"""The scaler of features against scikit-learn's."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from tests.methods.ingredients import small_graph
from torch import Tensor

from fairpass.methods import GMMD
from fairpass.nn.layers import FeatureScaler, InputScale
from fairpass.training import Training

THEIRS: dict[InputScale, Any] = {"standard": StandardScaler(), "minmax": MinMaxScaler((-1, 1))}
every_scale = pytest.mark.parametrize("scale", ["standard", "minmax"])


def features(n: int = 300, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return columns of all magnitudes, off centre, one of them with two values only."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn((n, 5), generator=random, dtype=torch.float64)
    x = x * torch.tensor([1e-6, 1.0, 30.0, 1e5, 1.0]) + torch.tensor([0.0, 5.0, -100.0, 1e5, 0.0])
    x[:, 4] = (x[:, 4] > 0).double()
    return x.to(dtype)


def fitted(scale: InputScale, x: Tensor) -> FeatureScaler:
    scaler = FeatureScaler(scale, x.shape[1])
    scaler.fit(x)
    return scaler


@every_scale
def test_agrees_with_scikit_learn(scale: InputScale) -> None:
    x, other = features(), 3 * features(50) - 1
    theirs = copy.deepcopy(THEIRS[scale]).fit(x.numpy())
    scaler = fitted(scale, x)
    np.testing.assert_allclose(scaler(x).numpy(), theirs.transform(x.numpy()), atol=1e-9)
    # A new graph is scaled by what was measured on the fitted one.
    np.testing.assert_allclose(scaler(other).numpy(), theirs.transform(other.numpy()), rtol=1e-9, atol=1e-9)


@every_scale
def test_agrees_in_single_precision(scale: InputScale) -> None:
    x = features(dtype=torch.float32)
    expected = copy.deepcopy(THEIRS[scale]).fit_transform(x.double().numpy())
    found = fitted(scale, x)(x)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5)


@every_scale
@pytest.mark.parametrize("value", [0.0, 0.1, -7.3, 1e6, 123456.789])
@pytest.mark.parametrize("n", [3, 1000, 18_876])
def test_a_constant_feature_becomes_zero(scale: InputScale, value: float, n: int) -> None:
    x = torch.stack([torch.full((n,), value), torch.arange(n).float()], 1)
    scaler = fitted(scale, x)
    out = scaler(x)
    assert not bool(out[:, 0].any())
    assert float(out[:, 1].max()) > 0.9
    # Nor does it matter what a new graph has there.
    assert not bool(scaler(x + 1)[:, 0].any())


def test_given_leaves_the_features_alone() -> None:
    x = features()
    scaler = fitted("given", x)
    assert scaler(x) is x
    assert not scaler.state_dict()
    assert repr(scaler) == "FeatureScaler('given')"


@every_scale
def test_inputs_are_left_alone_and_the_state_can_be_stored(scale: InputScale) -> None:
    x = features()
    before = x.clone()
    scaler = fitted(scale, x)
    out = scaler(x)
    assert torch.equal(x, before)
    other = FeatureScaler(scale, 5).double()
    other.load_state_dict(scaler.state_dict())
    assert torch.equal(other(x), out)


@every_scale
def test_a_model_scales_a_new_graph_as_the_fitted_one(scale: InputScale, tmp_path: Any) -> None:
    data, other = small_graph(), small_graph(90, seed=3)
    data.x, other.x = 40 * data.x + 7, 40 * other.x + 7
    training = Training(epochs=4)
    model = GMMD(scale=scale, training=training).fit(data)
    # The same as scaling both graphs by hand, with the first one's figures.
    theirs = copy.deepcopy(THEIRS[scale]).fit(data.x.numpy())
    by_hand, new_by_hand = copy.copy(data), copy.copy(other)
    for graph in (by_hand, new_by_hand):
        graph.x = torch.from_numpy(theirs.transform(graph.x.numpy())).float()
    plain = GMMD(training=training).fit(by_hand)
    torch.testing.assert_close(model.predict_proba(other), plain.predict_proba(new_by_hand), rtol=0, atol=1e-4)
    loaded = GMMD.load(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict_proba(other), model.predict_proba(other))
