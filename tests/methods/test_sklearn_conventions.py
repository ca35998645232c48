"""scikit-learn's conventions for estimators, kept by every method of the registry."""

import copy
from typing import Any

import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted
from tests.methods.ingredients import Kind, make
from torch_geometric.data import Data

from fairpass import methods
from fairpass.methods import FMP, GCN, GMMD, method, names
from fairpass.training import Training

every_method = pytest.mark.parametrize("kind", [method(name) for name in names()], ids=names())

# What the text of a classifier may name.
PUBLIC: dict[str, Any] = {**{name: getattr(methods, name) for name in dir(methods)}, "Training": Training}


@every_method
class TestEveryMethod:
    def test_arguments_are_stored_as_they_are(self, kind: Kind) -> None:
        training = Training(epochs=3, seed=5)
        model = kind(training=training)
        assert model.training is training
        assert training == Training(epochs=3, seed=5)
        given = {name: value for name, value in model.get_params(deep=False).items() if value is not None}
        again = kind(**given)
        assert all(again.get_params(deep=False)[name] is value for name, value in given.items())

    def test_clone_is_equal_and_apart(self, kind: Kind, data: Data) -> None:
        model = make(kind).fit(data)
        copied = clone(model)
        assert type(copied) is kind
        assert copied.get_params() == model.get_params()
        assert not hasattr(copied, "program_")
        copied.set_params(training__epochs=1)
        assert model.training.epochs > 1
        copied.set_params(training=model.training).fit(data)
        assert torch.equal(copied.predict_proba(data), model.predict_proba(data))

    def test_deep_parameters_contain_the_shallow_ones(self, kind: Kind) -> None:
        model = kind()
        shallow, deep = model.get_params(deep=False), model.get_params()
        assert shallow.items() <= deep.items()
        nested = {name.removeprefix("training__"): deep[name] for name in deep.keys() - shallow.keys()}
        assert nested == model.training.to_dict()

    def test_all_parameters_can_be_set_back(self, kind: Kind) -> None:
        model = make(kind)
        assert kind().set_params(**model.get_params()).get_params() == model.get_params()

    def test_the_text_of_a_classifier_makes_it_again(self, kind: Kind) -> None:
        assert repr(kind()) == f"{kind.__name__}()"
        model = make(kind).set_params(training__seed=4, training__threshold="f1")
        made = eval(repr(model), PUBLIC)
        assert made.get_params() == model.get_params()
        assert "seed=4" in repr(model)

    def test_wrong_names_and_values_change_nothing(self, kind: Kind) -> None:
        model = make(kind)
        before = copy.deepcopy(model.get_params())
        for wrong in ("wrong", "training__wrong", "training__epochs__more", "wrong__epochs"):
            with pytest.raises(ValueError, match=rf"'{wrong}' is not a parameter of {kind.__name__} \(it has .*epochs"):
                model.set_params(training__seed=9, **{wrong: 1})
        with pytest.raises(ValueError, match=r"'epochs' must be at least 1 \(got 0"):
            model.set_params(training__epochs=0, training__seed=9)
        assert model.get_params() == before

    def test_scikit_learn_knows_what_it_is(self, kind: Kind, data: Data) -> None:
        model = make(kind)
        assert is_classifier(model)
        assert get_tags(model).target_tags.required
        with pytest.raises(NotFittedError):
            check_is_fitted(model)
        check_is_fitted(model.fit(data))


def test_nested_settings_apply_to_a_training_of_the_same_call() -> None:
    model = GCN().set_params(training__seed=3, training=Training(epochs=7))
    assert model.training == Training(epochs=7, seed=3)


def test_a_grid_is_searched_as_in_scikit_learn(data: Data) -> None:
    grid = ParameterGrid({"weight": [0.0, 50.0], "training__learning_rate": [0.01], "training__epochs": [2]})
    base = GMMD(fair_steps=1)
    fitted = [clone(base).set_params(**point).fit(data) for point in grid]
    assert [model.weight for model in fitted] == [0.0, 50.0]
    assert {len(model.history_) for model in fitted} == {2}
    assert repr(base) == "GMMD(fair_steps=1)"


def test_what_was_fitted_stays_until_the_next_fit(data: Data) -> None:
    model = FMP(training=Training(epochs=2)).fit(data)
    before = model.predict_proba(data)
    model.set_params(K=1, training__epochs=1)
    assert torch.equal(model.predict_proba(data), before)
    assert len(model.history_) == 2
    assert len(model.fit(data).history_) == 1
