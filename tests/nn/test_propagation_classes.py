"""Five classes: a model with sliced sums is as fair as one that visits all pairs."""

import pytest
import torch
from torch import Tensor, nn

from fairpass.kernels import Discrepancy, Groups
from fairpass.kernels.dispatch import Backend
from fairpass.nn import GMMDPropagation, GMMDSPropagation, SparseOperator
from fairpass.nn.fairness import spread

CLASSES, NODES = 5, 400
every_variant = pytest.mark.parametrize("variant", [GMMDPropagation, GMMDSPropagation])


def planted(seed: int) -> tuple[Tensor, Tensor, Tensor, SparseOperator]:
    """Return features, labels, groups and a graph in which most edges join nodes of the same label and group."""
    random = torch.Generator().manual_seed(seed)
    sens = (torch.arange(NODES) % 10 < 4).long()
    shares = torch.tensor([[4.0, 3.0, 2.0, 1.0, 1.0], [1.0, 1.0, 2.0, 3.0, 4.0]])
    y = torch.multinomial(shares[sens], 1, generator=random).flatten()
    centres = 2 * torch.randn(CLASSES, CLASSES, generator=random)
    x = centres[y] + torch.randn(NODES, CLASSES, generator=random)
    likely = 0.02 * (y[:, None] == y) * (sens[:, None] == sens) + 0.005
    joined = (torch.rand(NODES, NODES, generator=random) < likely).triu(1)
    return x, y, sens, SparseOperator.from_edge_index((joined | joined.T).nonzero().T, NODES)


def discrepancy(points: Tensor, sens: Tensor) -> float:
    """Return the discrepancy with the Gaussian itself, at the bandwidth of the layers."""
    points = points.detach().double()
    alpha = 0.3 / float(spread(points, None))
    return float(Discrepancy(Groups.of(sens, torch.float64), backend="dense").value(points, alpha))


def trained(variant: type[GMMDPropagation], backend: Backend, fair_steps: int, seed: int) -> tuple[float, float, float]:
    """Return accuracy, largest difference of rates and discrepancy of a linear model, trained with the layers."""
    x, y, sens, graph = planted(seed)
    torch.manual_seed(seed)
    linear = nn.Linear(CLASSES, CLASSES - 1)
    readout = torch.linalg.qr(torch.cat([torch.ones(CLASSES, 1), torch.eye(CLASSES)[:, 1:]], 1)).Q[:, 1:].T
    layers = variant(backend=backend, fair_steps=fair_steps)
    optimizer = torch.optim.Adam(linear.parameters(), lr=0.05)
    for _ in range(30):
        F = layers(linear(x), graph, sens)
        loss = nn.functional.cross_entropy(F @ readout, y)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call] # torch's own
        optimizer.step()
    with torch.no_grad():
        F = layers(linear(x), graph, sens)
    chosen = (F @ readout).argmax(-1)
    rates = [torch.bincount(chosen[sens == group], minlength=CLASSES) / (sens == group).sum() for group in (0, 1)]
    accuracy = float((chosen == y).float().mean())
    return accuracy, float((rates[0] - rates[1]).abs().max()), discrepancy(F, sens)


@pytest.mark.parametrize("seed", range(2))
def test_a_trained_model_is_as_fair_as_with_all_pairs(seed: int) -> None:
    _, plain_parity, plain = trained(GMMDPropagation, "auto", 0, seed)
    accuracy, parity, exact = trained(GMMDPropagation, "tiled", 4, seed)
    found_accuracy, found_parity, found = trained(GMMDPropagation, "sliced", 4, seed)
    assert exact < plain / 10
    assert parity < plain_parity
    assert found == pytest.approx(exact, rel=0.05)
    assert found_parity == pytest.approx(parity, abs=0.02)
    assert found_accuracy == pytest.approx(accuracy, abs=0.02)


@every_variant
@pytest.mark.parametrize("groups", [2, 3])
def test_layers_move_the_nodes_nearly_as_with_all_pairs(variant: type[GMMDPropagation], groups: int) -> None:
    x, _, _, graph = planted(2)
    sens = torch.arange(NODES) % groups
    x = x[:, 1:] + 0.5 * sens[:, None]
    exact, found = (variant(backend=backend)(x, graph, sens) for backend in ("tiled", "sliced"))
    still = variant(fair_steps=0)(x, graph, sens)
    assert float((found - exact).norm()) < 0.02 * float((exact - still).norm())


@every_variant
def test_members_of_a_population_are_computed_as_if_alone(variant: type[GMMDPropagation]) -> None:
    x, _, sens, graph = planted(3)
    together = variant(backend="sliced")
    stack = torch.stack([x, 3 * x, x.flip(0)]).double()
    graph = SparseOperator.from_edge_index(torch.arange(NODES).repeat(2, 1), NODES, dtype=torch.float64)
    for row, alone in zip(together(stack, graph, sens), stack, strict=True):
        torch.testing.assert_close(row, together(alone, graph, sens))


def test_training_and_evaluation_agree() -> None:
    x, _, sens, graph = planted(4)
    layer = GMMDPropagation(backend="sliced")
    assert torch.equal(layer.train()(x, graph, sens), layer.eval()(x, graph, sens))


def test_more_directions_are_nearer_to_all_pairs() -> None:
    x, _, sens, graph = planted(5)
    x = x[:, 1:].double()
    graph = SparseOperator.from_edge_index(torch.arange(NODES).repeat(2, 1), NODES, dtype=torch.float64)
    exact = GMMDPropagation(backend="exact")(x, graph, sens)
    errors = [
        float((GMMDPropagation(backend="sliced", directions=count)(x, graph, sens) - exact).norm())
        for count in (12, 50, 400)
    ]
    assert errors == sorted(errors, reverse=True)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match=r"'directions' must be at least 1 \(got 0\)"):
        GMMDPropagation(directions=0)
    with pytest.raises(ValueError, match=r"'backend' must be one of .* \(got 'fft'\)"):
        GMMDPropagation(backend="fft")  # type: ignore[arg-type] # that is the point
