"""Which distributions GMMD makes equal: all scores of the groups, or those of the nodes of each label."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.methods.ingredients import changed, check_probabilities, small_graph, some_unknown
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.errors import DataError
from fairpass.kernels import Groups
from fairpass.methods import GMMD, GMMDS
from fairpass.methods.gmmd import Criterion, FairMessagePassing
from fairpass.nn.calibration import calibrate, calibrated
from fairpass.runs import fit_all
from fairpass.training import DivergedError, EpochRecord, Task, Training

TRAINING = Training(epochs=3)
by_label = pytest.mark.parametrize("criterion", ["eo", "odds"])


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph(200)


def program_of(model: GMMD) -> FairMessagePassing:
    program = model.program_
    assert isinstance(program, FairMessagePassing)
    return program


def differences(criterion: Criterion, fair_steps: int) -> dict[str, float]:
    """Return mean DP and EO in percent over validation and test nodes of graphs whose groups' base rates differ."""
    totals = {"DP": 0.0, "EO": 0.0}
    training = Training(epochs=12, learning_rate=0.3, select="last", track_discrepancy=False)
    for seed in (0, 1, 2):
        graph = synthetic(
            1000,
            avg_degree=4,
            num_features=6,
            group_fraction=0.4,
            label_bias=0.4,
            feature_signal=1.2,
            feature_leakage=1.5,
            fractions=(0.3, 0.35, 0.35),
            seed=seed,
        )
        model = GMMD(encoder="linear", lambda_s=0.0, criterion=criterion, fair_steps=fair_steps, training=training)
        model.fit(graph)
        positive = model.predict(graph).double()
        for mask in (graph.val_mask, graph.test_mask):
            for name, counted in (("DP", mask), ("EO", mask & (graph.y == 1))):
                rates = [positive[counted & (graph.sens == group)].mean() for group in (0, 1)]
                totals[name] += 100 * abs(float(rates[0] - rates[1])) / 6
    return totals


def test_each_criterion_lowers_its_own_difference() -> None:
    plain, dp, eo, odds = differences("dp", 0), differences("dp", 4), differences("eo", 4), differences("odds", 4)
    assert plain["DP"] > 25
    assert plain["EO"] > 10
    assert dp["DP"] < 0.25 * plain["DP"]
    assert eo["EO"] < 0.5 * plain["EO"]
    assert odds["EO"] < 0.5 * plain["EO"]
    # Where base rates differ, the one is not the other.
    assert dp["EO"] > 1.5 * eo["EO"]
    assert eo["DP"] > 2 * dp["DP"]


@by_label
@pytest.mark.parametrize("model", [GMMD, GMMDS])
def test_predictions_need_no_labels_and_are_kept_in_a_file(
    data: Data, tmp_path: Path, model: type[GMMD], criterion: Criterion
) -> None:
    fitted = model(criterion=criterion, training=TRAINING).fit(data)
    probabilities = fitted.predict_proba(data)
    bare = changed(data, y=None, train_mask=None, val_mask=None, test_mask=None)
    assert torch.equal(fitted.predict_proba(bare), probabilities)
    loaded = model.load(fitted.save(tmp_path / "model"))
    assert loaded.criterion == criterion
    assert torch.equal(loaded.predict_proba(bare), probabilities)
    # What was measured in training is what the model does now.
    assert fitted.evaluate(data, "val").percent() == pytest.approx(
        {name: 100 * value for name, value in fitted.selected_.metrics.items()}, abs=1e-3
    )
    other = small_graph(90, seed=3)
    check_probabilities(loaded.predict_proba(other), 90)


@by_label
@pytest.mark.parametrize(("classes", "groups"), [(2, 3), (3, 2), (3, 3)])
def test_more_labels_and_groups(criterion: Criterion, classes: int, groups: int, tmp_path: Path) -> None:
    graph = small_graph(300, classes=classes, groups=groups)
    model = GMMD(criterion=criterion, training=TRAINING).fit(graph)
    check_probabilities(model.predict_proba(graph), 300, classes)
    loaded = GMMD.load(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict_proba(graph), model.predict_proba(graph))
    calibration = program_of(model).calibration
    assert calibration is not None
    assert calibration.shape[:2] == (groups, 1 if classes == 2 else classes)


@pytest.mark.parametrize(
    ("criterion", "classes", "labels"), [("eo", 2, [1]), ("odds", 2, [0, 1]), ("eo", 3, [0, 1, 2])]
)
def test_groups_are_compared_among_the_right_labels(criterion: Criterion, classes: int, labels: list[int]) -> None:
    graph = small_graph(240, classes=classes)
    model = GMMD(criterion=criterion, training=TRAINING).fit(graph)
    program, task = program_of(model), Task(graph)
    seen: list[Groups] = []
    program.propagation.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[2]))
    with torch.no_grad():
        program(task)
        logits = program.encode(task)
    val = task.nodes("val")
    tables = calibrate(logits[val], task.y[val], task.sens[val], 2)
    expected = task.groups.among(calibrated(logits, task.sens, tables)[:, labels])
    assert seen[0].blocks == len(labels)
    torch.testing.assert_close(seen[0].membership, expected.membership)


@by_label
def test_no_nodes_own_label_is_used_but_for_calibration(data: Data, criterion: Criterion) -> None:
    model = GMMD(criterion=criterion, training=TRAINING).fit(data)
    flipped = changed(data, y=1 - data.y)
    assert torch.equal(model.predict_proba(flipped), model.predict_proba(data))
    hidden = changed(data, y=torch.where(data.test_mask, -1, data.y))
    again = GMMD(criterion=criterion, training=TRAINING).fit(hidden)
    assert torch.equal(again.predict_proba(data), model.predict_proba(data))


@by_label
def test_some_groups_may_be_unknown(data: Data, criterion: Criterion, tmp_path: Path) -> None:
    partly = some_unknown(data)
    model = GMMD(criterion=criterion, training=TRAINING).fit(partly)
    check_probabilities(model.predict_proba(partly), 200)
    loaded = GMMD.load(model.save(tmp_path / "model"))
    assert torch.equal(loaded.predict_proba(partly), model.predict_proba(partly))


@pytest.mark.parametrize("unknown", [False, True])
def test_a_new_graph_may_have_no_likely_positives_in_a_group(data: Data, unknown: bool) -> None:
    model = GMMD(criterion="eo", lambda_s=0.0, training=TRAINING).fit(data)
    calibration = program_of(model).calibration
    assert calibration is not None
    calibration[0, :, 1] = 0.0  # of group 0, at any score
    graph = some_unknown(data) if unknown else data
    # Nothing can be compared, so that the encoder's logits stay as they are, up to a constant.
    with torch.no_grad():
        expected = program_of(model).encode(Task(graph)).softmax(-1)
    got = model.predict_proba(graph, reference="batch")
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-6)


def members(criterion: Criterion, **changes: Any) -> list[GMMD]:
    second = TRAINING.but(seed=1, **changes)
    return [GMMD(criterion=criterion, training=TRAINING), GMMD(criterion=criterion, weight=5.0, training=second)]


@by_label
def test_a_population_is_its_members_alone(data: Data, criterion: Criterion) -> None:
    together = members(criterion)
    assert fit_all(together, data) == [None, None]
    for one, other in zip(together, members(criterion), strict=True):
        other.fit(data)
        torch.testing.assert_close(one.predict_proba(data), other.predict_proba(data), rtol=0, atol=1e-4)
        torch.testing.assert_close(program_of(one).calibration, program_of(other).calibration, rtol=1e-3, atol=1e-4)


@by_label
def test_a_fit_that_diverges_says_so_and_spoils_no_other(data: Data, criterion: Criterion) -> None:
    training = TRAINING.but(learning_rate=1e30, select="last")
    with pytest.raises(DivergedError, match="a smaller 'learning_rate' may help"):
        GMMD(criterion=criterion, training=training).fit(data)
    good, bad = members(criterion, learning_rate=1e30, select="last")
    errors = fit_all([good, bad], data)
    assert errors[0] is None
    assert isinstance(errors[1], DivergedError)
    alone = members(criterion)[0].fit(data)
    torch.testing.assert_close(good.predict_proba(data), alone.predict_proba(data), rtol=0, atol=1e-4)


def without(data: Data, label: int, group: int) -> Data:
    """Return the graph without validation nodes of this label in this group."""
    return changed(data, val_mask=data.val_mask & ~((data.y == label) & (data.sens == group)))


@by_label
def test_a_group_without_validation_nodes_of_a_label_is_refused_before_training(
    data: Data, criterion: Criterion
) -> None:
    epochs: list[EpochRecord] = []
    lacking = changed(without(data, 0, 1), group_names=["men", "women"], label_names=["bad", "good"])
    message = (
        rf"'criterion' '{criterion}' needs a validation node of every label in every group "
        r"\(got none of label 'bad' in group 'women'\)"
    )
    with pytest.raises(DataError, match=message):
        GMMD(criterion=criterion, training=TRAINING).fit(lacking, callbacks=[epochs.append])
    assert not epochs
    unnamed = changed(lacking, group_names=None, label_names=None)
    with pytest.raises(DataError, match=r"\(got none of label 0 in group 1\)"):
        GMMD(criterion=criterion, training=TRAINING).fit(unnamed)
    assert GMMD(training=TRAINING).fit(lacking).epoch_ >= 0


def test_a_refused_criterion_spoils_no_other_fit(data: Data) -> None:
    lacking = without(data, 0, 1)
    classifiers = [*members("eo"), *members("dp")]
    errors = fit_all(classifiers, lacking)
    assert all(isinstance(error, DataError) for error in errors[:2])
    assert errors[2:] == [None, None]


def test_three_labels_too() -> None:
    graph = small_graph(240, classes=3)
    with pytest.raises(DataError, match=r"\(got none of label 'label 2' in group '0'\)"):
        GMMD(criterion="odds", training=TRAINING).fit(without(graph, 2, 0))


def test_scores_of_the_positives_are_drawn_together(data: Data) -> None:
    """The compared distributions are nearer after the layers than before, whatever the others do."""
    model = GMMD(criterion="eo", lambda_s=0.0, training=Training(epochs=20, select="last")).fit(data)
    program, task = program_of(model), Task(data)
    with torch.no_grad():
        before, after = program.encode(task), program(task)
        calibration = program.calibration
        assert calibration is not None
        chance = calibrated(before, task.sens, calibration)[:, 1]

    def gap(logits: Tensor) -> float:
        score = logits[:, 1] - logits[:, 0]
        means = [float((score * chance)[task.sens == a].sum() / chance[task.sens == a].sum()) for a in (0, 1)]
        return math.fabs(means[0] - means[1])

    assert gap(after) < 0.5 * gap(before)
