"""The operations of a world, with real processes, against the same on one process."""

from typing import Any

import numpy as np
import pytest
import torch
from tests.distributed import cases
from tests.distributed.crew import crew

from fairpass.world import World, _uniform

SIZES = [3, 0, 4]


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    return crew(3, cases.sums, SIZES)


def test_sums_and_means_are_those_of_all_nodes(found: list[dict[str, Any]]) -> None:
    rows = torch.arange(7, dtype=torch.float64)[:, None].requires_grad_()
    loss = ((rows - World().mean(rows, 0)) ** 3).sum()
    (gradient,) = torch.autograd.grad(loss, rows)
    for each in found:
        assert each["mean"] == 3
        assert each["loss"] == pytest.approx(float(loss.detach()))
    np.testing.assert_allclose(np.concatenate([each["gradient"] for each in found]), gradient)


def test_comparisons_and_counts_are_those_of_all_nodes(found: list[dict[str, Any]]) -> None:
    for each, before in zip(found, (0, 3, 3), strict=True):
        assert each["bounds"] == [0, 6]
        assert each["count"] == 7
        assert each["before"] == before
        assert each["smallest"] == 5


def test_rows_are_gathered_in_the_order_of_the_processes(found: list[dict[str, Any]]) -> None:
    for each in found:
        assert each["gathered"] == list(range(7))
        assert each["flags"] == [False] * 3 + [True] * 4


def test_known_sizes_save_a_message(found: list[dict[str, Any]]) -> None:
    for each in found:
        assert each["sizes"] == SIZES
        assert (each["known sizes"], each["unknown sizes"]) == (1, 2)


def test_squared_distances_to_the_mean_are_those_of_all_nodes(found: list[dict[str, Any]]) -> None:
    rows = torch.arange(7, dtype=torch.float64)[:, None]
    expected = World().mean_square(cases.batch_of_points(rows)).tolist()
    assert expected[0] == pytest.approx(4 + 156)  # the variances of 0, 1, ..., 6 and of their squares
    for each in found:
        assert each["mean square"] == pytest.approx(expected, rel=1e-9)


def test_gradients_are_added_up(found: list[dict[str, Any]]) -> None:
    for each in found:
        assert each["weight"] == [6, 6]


def test_the_first_process_is_heard_by_all(found: list[dict[str, Any]]) -> None:
    for each in found:
        assert each["broadcast"] == b"first"
        assert each["nothing"] is None


def test_an_error_on_one_process_is_raised_on_all() -> None:
    assert crew(2, cases.disagree) == ["'x' must be right (process 1 says)"] * 2


def test_alone_everything_is_returned_as_it_is() -> None:
    alone, x = World(), torch.randn(4, 2)
    for same in (alone.total, alone.joint_loss, alone.largest, alone.smallest, alone.gather):
        assert same(x) is x
    assert (alone.count(3), alone.before(3), alone.agree(lambda: 5), alone.broadcast(b"x")) == (3, 0, 5, b"x")


def test_dropout_draws_uniform_numbers() -> None:
    drawn = _uniform(torch.arange(100_000), 12345)
    assert float(drawn.min()) >= 0
    assert float(drawn.max()) < 1
    counts = torch.histc(drawn, 20, 0, 1)
    assert float(((counts - 5000) ** 2 / 5000).sum()) < 43.8  # chi squared with 19 degrees of freedom, 0.1 %
    assert abs(float(torch.corrcoef(torch.stack([drawn[1:], drawn[:-1]]))[0, 1])) < 0.015
