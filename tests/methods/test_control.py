"""Every fair method declares its control: itself with fairness switched off, and nothing else changed."""

from typing import Any

import pytest
import torch
from tests.methods.ingredients import QUICK, changed, small_graph
from torch_geometric.data import Data

from fairpass.methods import GCN, GMMD, NodeClassifier, Thresholds, method, names
from fairpass.training import Task, Training, seeded

FAIR = [name for name in names() if method(name).switched_off]
LAST = Training(epochs=5, select="last", track_discrepancy=False)


@pytest.fixture(scope="module")
def relabelled(data: Data) -> Data:
    """The same people and features with the groups of another draw, which a control must not notice."""
    order = torch.randperm(150, generator=torch.Generator().manual_seed(5))
    shuffled = data.sens.clone()
    for split in ("train_mask", "val_mask", "test_mask"):
        for label in (0, 1):
            nodes = torch.nonzero(data[split] & (data.y == label)).flatten()
            shuffled[nodes] = data.sens[nodes[order[: len(nodes)].argsort()]]
    assert not torch.equal(shuffled, data.sens)
    return changed(data, sens=shuffled)


def made(name: str, **settings: Any) -> NodeClassifier:
    return method(name)(**QUICK.get(name, {}), training=LAST.but(**settings))


def test_every_method_says_where_it_acts() -> None:
    for name in names():
        found = method(name)
        is_plain = found.stage == "plain"
        assert is_plain == (not found.switched_off), name
        assert not is_plain or found.needs_groups == "never", name
        assert found.switched_off.keys() <= found.declared.keys()


@pytest.mark.parametrize("name", FAIR)
def test_control_and_method_differ_in_what_is_switched_off_only(name: str) -> None:
    model = made(name)
    control = model.control()
    assert type(control) is type(model)
    assert control.training == model.training
    different = {key for key, value in model.hyperparameters.items() if control.hyperparameters[key] != value}
    assert different
    assert different <= model.switched_off.keys()
    assert control.control().hyperparameters == control.hyperparameters


@pytest.mark.parametrize("name", FAIR)
def test_control_and_method_start_from_the_same_weights(name: str, data: Data) -> None:
    states = []
    for model in (made(name), made(name).control()):
        with seeded(0, deterministic=True):
            states.append(model.build(Task(data)).state_dict())
    assert states[0].keys() == states[1].keys()
    for key, value in states[0].items():
        assert torch.equal(value, states[1][key]), key


# BeMap's control draws as many neighbours as BeMap does, and this number depends on the groups. Which neighbours it
# draws must not: `test_bemap.py` checks that all are equally likely.
NOT_BY_NUMBER = [name for name in FAIR if name != "bemap"]


@pytest.mark.parametrize("name", NOT_BY_NUMBER)
def test_a_control_does_not_notice_the_groups(name: str, data: Data, relabelled: Data) -> None:
    control, again = made(name).control().fit(data), made(name).control().fit(relabelled)
    torch.testing.assert_close(control.predict_proba(data), again.predict_proba(relabelled), rtol=0, atol=1e-6)
    assert torch.equal(control.predict(data), again.predict(relabelled))


# NIFTY finds the groups in a column of the features, FairINV has no need of them.
READS_SENS = [name for name in FAIR if method(name).needs_groups != "never" and name != "nifty"]


@pytest.mark.parametrize("name", READS_SENS)
def test_a_method_notices_the_groups(name: str, data: Data, relabelled: Data) -> None:
    """So the test above can fail."""
    model, other = made(name).fit(data), made(name).fit(relabelled)
    same = torch.equal(model.predict_proba(data), other.predict_proba(relabelled))
    assert not same or not torch.equal(model.predict(data), other.predict(relabelled))


@pytest.mark.parametrize("name", FAIR)
def test_a_method_differs_from_its_control(name: str, data: Data) -> None:
    model, control = made(name).fit(data), made(name).control().fit(data)
    same = torch.equal(model.predict_proba(data), control.predict_proba(data))
    assert not same or not torch.equal(model.predict(data), control.predict(data))


def test_a_plain_method_has_no_control() -> None:
    with pytest.raises(ValueError, match=r"must have fairness to switch off \(got GCN"):
        GCN().control()


def test_controls_that_are_known() -> None:
    """GMMD without kernel steps is its encoder; thresholds for each group become one threshold."""
    data = small_graph()
    plain = GMMD(encoder="gcn", lambda_s=0, training=LAST).control().fit(data)
    assert torch.equal(
        plain.predict_proba(data),
        GMMD(encoder="gcn", lambda_s=0, fair_steps=0, training=LAST).fit(data).predict_proba(data),
    )
    one = Thresholds(training=LAST.but(epochs=1)).control().fit(data)
    assert one.group_thresholds_ is None
    assert one.threshold_ == 0.5
