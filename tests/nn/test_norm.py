"""Normalisation over nodes: by the batch while training, by the fitted graph's statistics after it."""

import pytest
import torch
from torch import Tensor, nn

from fairpass.nn.layers import NodeNorm, node_norms, norm_statistics


def columns(nodes: int = 50) -> Tensor:
    return 3 + 2 * torch.randn(nodes, 4, generator=torch.Generator().manual_seed(0))


def test_is_pytorchs_batch_norm_of_the_whole_graph() -> None:
    x = columns()
    expected = nn.BatchNorm1d(4).train()(x)
    torch.testing.assert_close(NodeNorm(4)(x), expected)


def test_fitted_statistics_make_a_row_independent_of_the_others() -> None:
    norm, x = NodeNorm(4), columns()
    assert norm.is_empty
    with norm_statistics(norm, "keep"):
        expected = norm(x)
    assert not norm.is_empty
    with norm_statistics(norm, "fitted"):
        torch.testing.assert_close(norm(x), expected)
        torch.testing.assert_close(norm(x[:1]), expected[:1])
    with norm_statistics(norm, "batch"):
        assert torch.equal(norm(x[:1]), torch.zeros(1, 4))


def test_outside_the_context_it_is_the_batch_again() -> None:
    norm, x = NodeNorm(4), columns()
    with norm_statistics(norm, "keep"):
        norm(x)
    assert torch.equal(norm(x[:1]), torch.zeros(1, 4))
    with pytest.raises(ZeroDivisionError), norm_statistics(norm, "fitted"):
        raise ZeroDivisionError
    assert torch.equal(norm(x[:1]), torch.zeros(1, 4))


def test_without_kept_statistics_the_batch_is_used() -> None:
    norm, x = NodeNorm(4), columns()
    with norm_statistics(norm, "fitted"):
        torch.testing.assert_close(norm(x), NodeNorm(4)(x))


def test_all_of_a_module_are_found() -> None:
    module = nn.Sequential(NodeNorm(2), nn.Sequential(NodeNorm(3), nn.ReLU()))
    assert [len(norm.weight) for norm in node_norms(module)] == [2, 3]


@pytest.mark.parametrize("value", [None, torch.ones(3), torch.full((4,), float("nan"))])
def test_statistics_that_do_not_fit_are_refused(value: Tensor | None) -> None:
    norm = NodeNorm(4)
    norm.check()
    norm.mean, norm.scale = torch.ones(4), torch.ones(4)
    norm.check()
    norm.scale = value
    with pytest.raises(ValueError, match="'scale' must"):
        norm.check()
