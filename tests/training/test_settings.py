from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
import torch

from fairpass.training import Training
from fairpass.training.settings import is_available


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, r"'epochs' must be at least 1 \(got 0"),
        ({"epochs": 2.5}, r"'epochs' must be a whole number \(got 2.5"),
        ({"epochs": True}, r"'epochs' must be a whole number \(got True"),
        ({"epochs": None}, r"'epochs' must be a whole number \(got None"),
        ({"seed": -1}, r"'seed' must be at least 0 \(got -1"),
        ({"patience": 0}, r"'patience' must be at least 1 \(got 0"),
        ({"learning_rate": 0.0}, r"'learning_rate' must be positive and finite \(got 0.0"),
        ({"learning_rate": float("nan")}, r"'learning_rate' must be positive and finite \(got nan"),
        ({"learning_rate": float("inf")}, r"'learning_rate' must be positive and finite \(got inf"),
        ({"weight_decay": -1e-3}, r"'weight_decay' must be at least 0 and finite \(got -0.001"),
        ({"threshold": "best"}, r"'threshold' must be a number or one of .* \(got 'best'"),
        ({"threshold": 1.5}, r"'threshold' must be between 0 and 1 \(got 1.5"),
        ({"threshold": float("nan")}, r"'threshold' must be between 0 and 1 \(got nan"),
        ({"postprocess": "threshold"}, r"'postprocess' must be one of \('none', 'thresholds'\) \(got 'threshold'"),
        ({"constraint": "parity"}, r"'constraint' must be one of \('demographic_parity', .* \(got 'parity'"),
        ({"select": "first"}, r"'select' must be one of \('validation', 'last'\) \(got 'first'"),
        ({"device": "abacus"}, r"'device' must name a device of PyTorch, .* \(got 'abacus'"),
        ({"device": 3}, r"'device' must be text \(got 3"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**settings)
    with pytest.raises(ValueError, match=message):
        Training().but(**settings)


def test_changes_and_plain_data() -> None:
    training = Training(epochs=7, patience=None)
    other = training.but(seed=3, threshold="f1")
    assert (other.epochs, other.seed, other.threshold) == (7, 3, "f1")
    assert training.seed == 0
    assert Training(**other.to_dict()) == other
    assert hash(other) == hash(Training(**other.to_dict()))
    assert Training(epochs=cast(int, np.int64(7))) == training


def test_repr_says_what_differs() -> None:
    assert repr(Training()) == "Training()"
    assert repr(Training(epochs=7, select="last")) == "Training(epochs=7, select='last')"
    assert eval(repr(Training(patience=3))) == Training(patience=3)


def test_available_devices() -> None:
    assert is_available("cpu")
    assert not is_available("cuda:99")


@pytest.mark.parametrize("value", [np.uint8(2), np.float32(0.5), np.float64(0.5), np.int64(1), Fraction(1, 2)])
def test_numbers_of_other_libraries_become_plain(value: Any) -> None:
    name = "window" if isinstance(value, np.integer) else "threshold"
    found = getattr(Training(**{name: value}), name)
    assert (type(found), found) == (int if name == "window" else float, value)


@pytest.mark.parametrize("value", [np.array([1, 2]), torch.tensor([1, 2]), torch.tensor(2), [1], {}])
@pytest.mark.parametrize("name", Training.declared)
def test_what_is_no_single_value_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^'{name}' must be"):
        Training(**{name: value})
