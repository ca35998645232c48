"""Adam for a population, against PyTorch's own for each member."""

import torch
from torch import Tensor, nn
from torch.optim import Adam

from fairpass.training import Training
from fairpass.training.population import MemberAdam

SETTINGS = [
    Training(learning_rate=0.01, weight_decay=0.0),
    Training(learning_rate=0.1, weight_decay=0.5),
    Training(learning_rate=0.003, weight_decay=1e-3),
]


class Together(nn.Module):
    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), nn.Parameter(bias)

    def loss(self, x: Tensor) -> Tensor:
        return ((x @ self.weight).tanh() + self.bias.unsqueeze(-2)).square().flatten(-2).sum(-1)


def start() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    return draw(3, 4, 2), draw(3, 2), draw(6, 4)


def alone(member: int, steps: int) -> Together:
    weight, bias, x = start()
    module = Together(weight[member], bias[member])
    settings = SETTINGS[member]
    optimizer = Adam(module.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.autograd.backward(module.loss(x))
        optimizer.step()
    return module


def test_every_member_is_pytorchs_adam() -> None:
    weight, bias, x = start()
    together = Together(weight.clone(), bias.clone())
    optimizer = MemberAdam(together, SETTINGS)
    for _ in range(20):
        optimizer.zero_grad()
        torch.autograd.backward(together.loss(x).sum())
        optimizer.step()
    for member in range(3):
        expected = alone(member, 20)
        torch.testing.assert_close(together.weight[member], expected.weight)
        torch.testing.assert_close(together.bias[member], expected.bias)


def test_some_members_go_on() -> None:
    weight, bias, x = start()
    together = Together(weight.clone(), bias.clone())
    optimizer = MemberAdam(together, SETTINGS)
    for step in range(10):
        if step == 4:
            rows = torch.tensor([0, 2])
            together = Together(together.weight.detach()[rows], together.bias.detach()[rows])
            optimizer.take(together, rows)
        optimizer.zero_grad()
        torch.autograd.backward(together.loss(x).sum())
        optimizer.step()
    for row, member in enumerate((0, 2)):
        torch.testing.assert_close(together.weight[row], alone(member, 10).weight)


def test_a_parameter_without_gradient_stays() -> None:
    weight, bias, x = start()
    together = Together(weight.clone(), bias.clone())
    optimizer = MemberAdam(together, SETTINGS)
    torch.autograd.backward((x @ together.weight).sum())
    optimizer.step()
    assert torch.equal(together.bias, bias)
    assert not torch.equal(together.weight, weight)
