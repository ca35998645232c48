"""Selection by the mean over the last epochs, so that a momentary peak is not what is kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from fairpass.methods import GCN, GMMD
from fairpass.runs import fit_all
from fairpass.training import EpochRecord, FitState, History, Program, Task, Training, train

Script = Callable[..., Program]


def history(*selections: float) -> History:
    return History(EpochRecord(i, {"loss": 0.0}, {}, value, 0.5) for i, value in enumerate(selections))


def selected(window: int, *selections: float) -> int:
    state = FitState(Training(window=window))
    for record in history(*selections):
        state.add(record)
    return state.best_epoch


def test_smoothed_is_the_mean_over_the_last_epochs() -> None:
    records = history(1.0, 2.0, 6.0, 3.0)
    assert [records.smoothed(i, 1) for i in range(4)] == [1.0, 2.0, 6.0, 3.0]
    assert [records.smoothed(i, 2) for i in range(4)] == [1.0, 1.5, 4.0, 4.5]
    assert [records.smoothed(i, 3) for i in range(4)] == pytest.approx([1.0, 1.5, 3.0, 11 / 3])
    assert records.smoothed(3, 100) == 3.0


@pytest.mark.parametrize(
    ("window", "selections", "expected"),
    [
        # A momentary peak is selected only without a window.
        (1, (1.0, 1.0, 2.5, 1.0, 1.6, 1.6, 1.6, 1.6), 2),
        (4, (1.0, 1.0, 2.5, 1.0, 1.6, 1.6, 1.6, 1.6), 5),
        (3, (1.0, 1.0, 2.0, 1.0, 1.6, 1.6, 1.6, 1.6), 6),
        # A momentary dip does not disqualify what comes after it for long.
        (2, (1.0, 2.0, 2.0, 0.0, 2.1, 2.1), 5),
        # Nor is one in the first epochs, where the mean is over fewer of them;
        (3, (2.5, 1.0, 1.0, 1.0, 1.2, 1.2), 2),
        (3, (2.0, 1.0, 1.0, 1.0, 1.6, 1.6), 5),
        # unless there are no more.
        (5, (1.0, 2.0, 1.0), 1),
        # Of equal means the first.
        (2, (1.0, 1.0, 1.0), 1),
        (2, (1.0, 2.0, 2.0, 2.0), 2),
        # What is not finite is never selected, nor is a mean that has it in it.
        (2, (1.0, 2.0, float("nan")), 1),
    ],
)
def test_the_largest_mean_is_selected(window: int, selections: tuple[float, ...], expected: int) -> None:
    assert selected(window, *selections) == expected


def test_a_fit_keeps_the_parameters_of_the_epoch_that_is_steadily_good(task: Task, scripted: Script) -> None:
    mistakes = (12, 12, 0, 12, 12, 4, 4, 4, 4, 12)
    momentary, steady = scripted(*mistakes), scripted(*mistakes)
    train(momentary, task, Training(epochs=10))
    progress = train(steady, task, Training(epochs=10, window=3))
    assert momentary.state_dict()["epochs_done"] == 3
    assert steady.state_dict()["epochs_done"] == 8  # the first epoch with three good ones
    assert progress.best_epoch == 7
    assert progress.selected == progress.history[7]


def test_patience_waits_for_the_mean(task: Task, scripted: Script) -> None:
    # Without a window the peak at epoch 1 is never reached again.
    mistakes = (12, 0, 12, 6, 5, 4, 3, 2, 1)
    assert len(train(scripted(*mistakes), task, Training(epochs=9, patience=4)).history) == 6
    assert len(train(scripted(*mistakes), task, Training(epochs=9, patience=4, window=3)).history) == 9


@pytest.mark.parametrize("window", [1, 4])
def test_fits_select_by_their_window_alone_together_and_resumed(data: Data, tmp_path: Path, window: int) -> None:
    def models() -> list[GMMD]:
        return [GMMD(training=Training(epochs=12, seed=seed, window=window)) for seed in (0, 1)]

    together = models()
    assert fit_all(together, data) == [None, None]
    for model, other in zip(models(), together, strict=True):
        model.fit(data)
        means = [model.history_.smoothed(i, window) for i in range(12)]
        assert model.epoch_ == other.epoch_ == means.index(max(means[window - 1 :]))

    def interrupt(record: EpochRecord) -> None:
        if record.epoch == 6:
            raise KeyboardInterrupt

    path = tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        models()[0].fit(data, callbacks=[interrupt], checkpoint=path)
    resumed, whole = models()[0].fit(data, checkpoint=path), models()[0].fit(data)
    assert resumed.epoch_ == whole.epoch_
    assert torch.equal(resumed.predict_proba(data), whole.predict_proba(data))


@pytest.mark.parametrize("window", [0, -1, 1.5, True])
def test_a_window_must_be_a_whole_number(window: int) -> None:
    with pytest.raises(ValueError, match=rf"'window' must be (at least 1|a whole number) \(got {window}\)"):
        Training(window=window)


def test_the_window_is_kept_in_a_file(data: Data, tmp_path: Path) -> None:
    model = GCN(training=Training(epochs=3, window=2)).fit(data)
    assert GCN.load(model.save(tmp_path / "model")).training.window == 2
