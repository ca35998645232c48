import copy
import math
from collections.abc import Callable
from typing import Literal, cast

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.errors import DataError, FairpassError
from fairpass.kernels import intergroup_similarity, mmd2
from fairpass.methods import GCN
from fairpass.metrics import best_threshold
from fairpass.metrics.split_metrics import Objective
from fairpass.theory import RepresentationBound
from fairpass.training import DivergedError, EpochRecord, History, Program, Task, Training, seeded, train
from fairpass.training.program import two_logits

Script = Callable[..., Program]
Select = Literal["validation", "last"]


def epochs_done(program: Program) -> int:
    done = program.epochs_done
    assert isinstance(done, Tensor)
    return int(done)


def test_selects_the_first_of_the_best_epochs_with_its_state(task: Task, scripted: Script) -> None:
    program = scripted(20, 5, 0, 10, 0, 3)
    training = Training(epochs=6)
    progress = train(program, task, training)
    selections = [record.selection for record in progress.history]
    assert selections.index(max(selections)) == 2
    assert progress.selected == progress.history[2]
    assert epochs_done(program) == 3
    assert not program.training


def test_selects_the_last_epoch_if_asked_to(task: Task, scripted: Script) -> None:
    program = scripted(20, 0, 10)
    training = Training(epochs=3, select="last")
    progress = train(program, task, training)
    assert progress.selected.epoch == 2
    assert epochs_done(program) == 3


@pytest.mark.parametrize(("select", "selected"), [("validation", 1), ("last", 4)])
def test_patience_ends_training(task: Task, scripted: Script, select: Select, selected: int) -> None:
    training = Training(epochs=100, patience=3, select=select)
    progress = train(scripted(20, 0, 4, 3, 2, 1, 0), task, training)
    assert len(progress.history) == 5
    assert progress.selected.epoch == selected


def test_an_improvement_renews_patience(task: Task, scripted: Script) -> None:
    progress = train(scripted(20, 21, 10, 11, 0, 1, 1), task, Training(epochs=7, patience=2))
    assert len(progress.history) == 7


def test_callbacks_see_every_record_in_order(task: Task, scripted: Script) -> None:
    seen, also = History(), History()
    progress = train(scripted(3, 2, 1), task, Training(epochs=3), callbacks=[seen.append, also.append])
    assert seen == also == progress.history
    assert str(seen[1]) == (
        "epoch 1  loss 0.5000  other 0.5000  "
        + "  ".join(f"{name} {100 * value:.2f}" for name, value in seen[1].metrics.items())
        + f"  selection {seen[1].selection:.4f}"
    )


def test_history_columns(task: Task, scripted: Script) -> None:
    history = train(scripted(3, 2, 1), task, Training(epochs=3)).history
    assert history.column("loss") == pytest.approx([1, 1 / 2, 1 / 3])
    assert history.column("loss_other") == [0.5] * 3
    assert history.column("threshold") == [0.5] * 3
    assert History.from_list(history.to_list()) == history
    assert History().column("loss") == []
    with pytest.raises(ValueError, match=r"'name' must be one of epoch, loss, .* \(got 'wrong'"):
        history.column("wrong")


def test_a_loss_may_share_its_name_with_another_number() -> None:
    record = EpochRecord(0, {"main": 1.0, "similarity": 2.0}, {}, 0.0, None, {"similarity": 3.0})
    assert record.flat() == {
        "epoch": 0,
        "loss": 1.0,
        "loss_similarity": 2.0,
        "selection": 0.0,
        "threshold": None,
        "similarity": 3.0,
    }


class Fixed(Program):
    """Gives the logits it was given."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.register_buffer("logits", logits)

    def configure(self, training: Training) -> None:
        self.optimizers = {}

    def epoch(self, task: Task) -> dict[str, float]:
        return {"loss": cast(float, torch.tensor(0.5))}  # what a careless method returns

    def forward(self, task: Task) -> Tensor:
        logits = self.logits
        assert isinstance(logits, Tensor)
        return logits


@pytest.mark.parametrize("opposite", [False, True])
def test_discrepancy_of_the_logits(task: Task, opposite: bool) -> None:
    logits = torch.randn(120, 2)
    if opposite:  # on a line
        logits[:, 0] = -logits[:, 1]
    (record,) = train(Fixed(logits), task, Training(epochs=1)).history
    alpha = 1 / float(2 * (logits - logits.mean(0)).square().sum(1).mean())
    similarity = float(intergroup_similarity(logits, task.sens, alpha))
    assert record.discrepancy == pytest.approx(
        {
            "mmd2": float(mmd2(logits, task.sens, alpha)),
            "similarity": similarity,
            "bound": float(RepresentationBound(task.x, task.sens)(similarity)),
        },
        rel=1e-4,
        abs=1e-6,  # similarities near 1 cancel in the discrepancy, in single precision
    )
    assert isinstance(record.loss, float)


def test_discrepancy_of_equal_logits_is_zero(task: Task) -> None:
    (record,) = train(Fixed(torch.ones(120, 2)), task, Training(epochs=1)).history
    assert record.discrepancy["mmd2"] == pytest.approx(0, abs=1e-6)
    assert record.discrepancy["similarity"] == pytest.approx(1, abs=1e-6)


def test_discrepancy_of_three_groups_has_no_bound() -> None:
    task = Task(synthetic(120, avg_degree=6, num_groups=3, group_fraction=0.6))
    logits = torch.randn(120, 2)
    (record,) = train(Fixed(logits), task, Training(epochs=1)).history
    alpha = 1 / float(2 * (logits - logits.mean(0)).square().sum(1).mean())
    assert record.discrepancy == pytest.approx(
        {
            "mmd2": float(mmd2(logits, task.sens, alpha)),
            "similarity": float(intergroup_similarity(logits, task.sens, alpha)),
        },
        rel=1e-4,
    )


def test_discrepancy_is_tracked_only_if_asked_to(task: Task, scripted: Script) -> None:
    progress = train(scripted(1), task, Training(epochs=1, track_discrepancy=False))
    assert progress.history[0].discrepancy == {}


@pytest.mark.parametrize("objective", ["accuracy", "f1", "balanced_accuracy", "selection"])
def test_threshold_is_the_best_on_validation(task: Task, data: Data, objective: Objective) -> None:
    logit = torch.randn(120, 1, generator=torch.Generator().manual_seed(1)) + 0.3 * task.y[:, None] - 1
    training = Training(epochs=1, threshold=objective)
    (record,) = train(Fixed(two_logits(logit)), task, training).history
    val = data.val_mask
    scores = two_logits(logit).softmax(-1)[val, 1]
    expected = best_threshold(data.y[val], scores, sens=data.sens[val], objective=objective)
    assert record.threshold == expected != 0.5


def test_the_test_mask_and_its_labels_change_nothing(data: Data) -> None:
    training = Training(epochs=4, threshold="selection")
    expected = GCN(training=training).fit(data)
    other = copy.copy(data)
    other.test_mask = ~(data.test_mask | data.train_mask | data.val_mask)
    other.y = torch.where(data.test_mask, 1 - data.y, data.y)
    del data.test_mask
    for graph in (data, other):
        model = GCN(training=training).fit(graph)
        assert model.history_ == expected.history_
        assert torch.equal(model.predict(data), expected.predict(data))


def test_validation_without_positives_of_a_group_is_refused(data: Data, scripted: Script) -> None:
    data.y[data.val_mask & (data.sens == 0)] = 0
    with pytest.raises(DataError, match="group '0' has no node of label '1'"):
        train(scripted(0), Task(data), Training(epochs=1))


def test_diverged_training_ends_and_an_epoch_before_is_selected(task: Task, scripted: Script) -> None:
    training = Training(epochs=9, threshold="accuracy")
    program = scripted(5, 0, 3, -1, 0)
    progress = train(program, task, training)
    assert len(progress.history) == 4
    last = progress.history[-1]
    assert all(math.isnan(value) for value in (*last.metrics.values(), *last.discrepancy.values()))
    assert progress.selected.epoch == 1
    assert epochs_done(program) == 2


def test_training_that_never_was_finite_is_an_error(task: Task, scripted: Script) -> None:
    with pytest.raises(DivergedError, match=r"must give finite outputs \(got nan at epoch 0.*'learning_rate'"):
        train(scripted(-1, 0), task, Training(epochs=2))
    with pytest.raises(FairpassError, match="got nan at epoch 1"):
        train(scripted(0, -1), task, Training(epochs=2, select="last"))


def test_a_huge_learning_rate_is_a_clear_error(data: Data) -> None:
    with pytest.raises(DivergedError, match="a smaller 'learning_rate' may help"):
        GCN(training=Training(epochs=20, learning_rate=1e30, select="last")).fit(data)


def test_seeded_leaves_the_random_state_and_the_flags_alone() -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    drawn = []
    for _ in range(2):
        with seeded(1, deterministic=True):
            assert torch.are_deterministic_algorithms_enabled()
            drawn.append(torch.rand(3))
        torch.rand(1)
    assert torch.equal(*drawn)
    torch.set_rng_state(state)
    with pytest.raises(RuntimeError, match="inside"), seeded(1, deterministic=True):
        raise RuntimeError("inside")
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()


def test_seeded_keeps_what_the_caller_asked_of_algorithms() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with seeded(1, deterministic=False):
            assert torch.are_deterministic_algorithms_enabled()
        with seeded(1, deterministic=True):
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
