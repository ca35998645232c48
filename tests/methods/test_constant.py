import pytest
import torch
from tests.methods.ingredients import small_graph

from fairpass.methods import Constant


def test_the_constant_predicts_the_frequencies_of_known_labels() -> None:
    data = small_graph()
    seen = (data.train_mask | data.val_mask) & (data.y >= 0)
    model = Constant().fit(data)
    expected = torch.bincount(data.y[seen], minlength=2) / seen.sum()
    torch.testing.assert_close(model.predict_proba(data), expected.expand(150, 2))
    evaluation = model.evaluate(data)
    assert (evaluation.delta_dp, evaluation.delta_eo, evaluation.near_constant) == (0, 0, True)
    assert model.history_[0].loss == pytest.approx(-float((expected * expected.log()).sum()), rel=1e-4)
