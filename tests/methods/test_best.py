"""`encoder="auto"`: validation chooses among candidates; the choice survives files and interruptions."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from tests.methods.ingredients import changed, small_graph
from torch_geometric.data import Data

from fairpass.errors import DataError, ModelFileError
from fairpass.methods import GCN, GMMD, GMMDS, NodeClassifier, load_model
from fairpass.methods.gmmd import AUTO
from fairpass.runs import fit_all
from fairpass.training import DivergedError, EpochRecord, History, Training

TRAINING = Training(epochs=3, window=2, track_discrepancy=False)


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph(100)


@pytest.fixture(scope="module")
def fitted(data: Data) -> GMMD:
    return auto().fit(data)


def auto(**options: Any) -> GMMD:
    return GMMD(**{"encoder": "auto", "training": TRAINING, **options})


def header_of(path: Path) -> dict[str, Any]:
    with safe_open(path, "pt") as file:
        header: dict[str, Any] = json.loads(file.metadata()["fairpass"])["header"]
    return header


class Stop:
    """A callback that raises after so many epochs of all candidates."""

    def __init__(self, after: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.left, self.error = after, error

    def __call__(self, record: EpochRecord) -> None:
        self.left -= 1
        if not self.left:
            raise self.error


def same(one: NodeClassifier, other: NodeClassifier, data: Data) -> bool:
    return (
        one.history_ == other.history_
        and one.epoch_ == other.epoch_
        and one.chosen_ == other.chosen_
        and one._header["candidates"] == other._header["candidates"]
        and torch.equal(one.predict_proba(data), other.predict_proba(data))
    )


def test_the_candidate_with_the_best_smoothed_score_is_chosen(data: Data, fitted: GMMD) -> None:
    candidates = [GMMD(training=TRAINING, **changes).fit(data) for changes in AUTO]
    scores = [model.history_.smoothed(model.epoch_, 2) for model in candidates]
    best = candidates[scores.index(max(scores))]
    # Then another scale of the features, for the best of them.
    rescaled = GMMD(**{**best.get_params(deep=False), "scale": "minmax"}).fit(data)
    scores.append(rescaled.history_.smoothed(rescaled.epoch_, 2))
    if scores[-1] > max(scores[:-1]):
        best = rescaled
    assert fitted.chosen_ == best.hyperparameters
    assert fitted.encoder == "auto"
    assert fitted.epoch_ == best.epoch_
    assert fitted.history_ == best.history_
    assert fitted.selected_ == best.selected_
    assert torch.equal(fitted.predict_proba(data), best.predict_proba(data))
    found = fitted._header["candidates"]
    assert [one["score"] for one in found] == sorted(scores, reverse=True)
    assert {(one["encoder"], one["lambda_s"], one["scale"]) for one in found} == {
        (model.encoder, model.lambda_s, model.scale) for model in (*candidates, rescaled)
    }


@pytest.mark.parametrize("kind", [GMMD, GMMDS])
def test_the_choice_is_kept_in_a_file(data: Data, tmp_path: Path, kind: type[GMMD]) -> None:
    model = kind(encoder="auto", criterion="eo", training=TRAINING).fit(data)
    path = model.save(tmp_path / "model")
    loaded = load_model(path)
    assert type(loaded) is kind
    assert loaded.hyperparameters == model.hyperparameters
    assert same(loaded, model, data)
    header = header_of(path)
    assert header["parameters"]["encoder"] == "auto"
    assert header["chosen"] == model.chosen_
    assert len(header["candidates"]) == len(AUTO) + 1
    assert header["chosen"].items() <= header["candidates"][0].items()
    # A loaded one can be fitted again, and chooses the same.
    assert same(loaded.fit(data), model, data)


class Chooser(GMMD):
    """Chooses among the candidates that a test gives it."""

    offered: Sequence[NodeClassifier] = ()

    def candidates(self, best: NodeClassifier | None, number: int) -> Sequence[NodeClassifier]:
        return () if number else self.offered


def test_of_equals_the_first_is_chosen(data: Data) -> None:
    chooser = Chooser(training=TRAINING)
    # Without smoothing the number of layers plays no part.
    chooser.offered = [GMMD(lambda_s=0.0, K=K, training=TRAINING) for K in (3, 1, 2)]
    chooser.fit(data)
    scores = [one["score"] for one in chooser._header["candidates"]]
    assert len(set(scores)) == 1
    assert [one["K"] for one in chooser._header["candidates"]] == [3, 1, 2]
    assert chooser.chosen_ is not None
    assert chooser.chosen_["K"] == 3


def test_a_candidate_that_diverges_is_passed_over(data: Data, tmp_path: Path) -> None:
    chooser = Chooser(training=TRAINING)
    diverging = TRAINING.but(learning_rate=1e30, select="last")
    chooser.offered = [GMMD(training=diverging), GMMD(K=3, training=TRAINING)]
    chooser.fit(data, checkpoint=tmp_path / "fit")
    assert [one["K"] for one in chooser._header["candidates"]] == [3]
    assert not list(tmp_path.iterdir())


def test_a_scale_that_was_asked_for_is_not_changed(data: Data) -> None:
    model = auto(scale="standard").fit(data)
    assert {one["scale"] for one in model._header["candidates"]} == {"standard"}
    assert len(model._header["candidates"]) == len(AUTO)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("after", [1, 3, 8, 17])  # epochs, of 18 in all
def test_an_interrupted_choice_goes_on_to_the_same_result(
    data: Data, fitted: GMMD, tmp_path: Path, after: int, error: type[BaseException]
) -> None:
    path = tmp_path / "fit"
    with pytest.raises(error):
        auto().fit(data, callbacks=[Stop(after, error)], checkpoint=path)
    names = {file.name for file in tmp_path.iterdir()}
    done = (after - 1) // 3  # candidates
    assert {f"fit-{k}.safetensors" for k in range(done)} | {f"fit-{done}"} == names
    rest = History()
    resumed = auto().fit(data, callbacks=[rest.append], checkpoint=path)
    assert len(rest) <= 18 - 3 * done  # no candidate is fitted twice
    assert same(resumed, fitted, data)
    assert not list(tmp_path.iterdir())


def test_a_whole_choice_leaves_no_files(data: Data, fitted: GMMD, tmp_path: Path) -> None:
    assert same(auto().fit(data, checkpoint=tmp_path / "fit"), fitted, data)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: auto(hidden=8), r"must be a candidate of this very fit .*remove it to start again"),
        (lambda: auto(training=TRAINING.but(seed=1)), r"must be a candidate of this very fit"),
        (lambda: GMMDS(encoder="auto", training=TRAINING), r"must hold a GMMDS model \(got one of method 'gmmd'\)"),
    ],
)
def test_what_another_choice_left_behind_is_refused(data: Data, tmp_path: Path, other: Any, message: str) -> None:
    path = tmp_path / "fit"
    with pytest.raises(KeyboardInterrupt):
        auto().fit(data, callbacks=[Stop(5)], checkpoint=path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    epochs = History()
    with pytest.raises(ModelFileError, match=message):
        other().fit(data, callbacks=[epochs.append], checkpoint=path)
    assert not epochs
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_choice_on_another_graph_and_foreign_files_are_refused(data: Data, tmp_path: Path) -> None:
    path, finished = tmp_path / "fit", tmp_path / "fit-0.safetensors"
    GMMD(encoder="linear", lambda_s=0.0, training=TRAINING).fit(small_graph(100, seed=1)).save(finished)
    with pytest.raises(ModelFileError, match=r"fit-0.safetensors' must be a candidate of this very fit"):
        auto().fit(data, checkpoint=path)
    GCN(training=TRAINING).fit(data).save(finished)
    with pytest.raises(ModelFileError, match=r"must hold a GMMD model \(got one of method 'gcn'\)"):
        auto().fit(data, checkpoint=path)
    finished.write_text("no model")
    with pytest.raises(ModelFileError, match="must be a fairpass model file"):
        auto().fit(data, checkpoint=path)


def test_if_every_candidate_diverges_that_is_the_error(data: Data, tmp_path: Path) -> None:
    training = TRAINING.but(learning_rate=1e30, select="last")
    with pytest.raises(DivergedError, match="a smaller 'learning_rate' may help"):
        auto(training=training).fit(data, checkpoint=tmp_path / "fit")
    assert not list(tmp_path.iterdir())


def test_a_criterion_without_labels_is_refused_before_any_candidate(data: Data) -> None:
    lacking = changed(data, val_mask=data.val_mask & ~((data.y == 0) & (data.sens == 1)))
    epochs = History()
    with pytest.raises(DataError, match=r"got none of label '0' in group '1'"):
        auto(criterion="odds").fit(lacking, callbacks=[epochs.append])
    assert not epochs


def test_several_choices_may_be_fitted_with_others(data: Data, fitted: GMMD) -> None:
    mixed = [auto(), GMMD(training=TRAINING), GMMD(training=TRAINING.but(seed=1))]
    assert mixed[0].trains_alone
    assert fit_all(mixed, data) == [None] * 3
    assert same(mixed[0], fitted, data)


def test_without_a_choice_nothing_is_chosen(data: Data) -> None:
    assert GMMD(training=TRAINING).fit(data).chosen_ is None
