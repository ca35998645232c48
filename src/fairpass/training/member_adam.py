"""Adam for a population: each member has its own learning rate and weight decay."""

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor, nn

from fairpass.training.settings import Training

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class MemberAdam:
    """PyTorch's Adam, with a learning rate and a weight decay for each row of the parameters.

    Args:
        module: its parameters have a leading axis of members.
        trainings: the members' settings.
    """

    def __init__(self, module: nn.Module, trainings: Sequence[Training]) -> None:
        self.parameters = list(module.parameters())
        like = self.parameters[0]
        self._rates = like.new_tensor([training.learning_rate for training in trainings])
        self._decays = like.new_tensor([training.weight_decay for training in trainings])
        self._steps = 0
        self._means = [torch.zeros_like(p) for p in self.parameters]
        self._squares = [torch.zeros_like(p) for p in self.parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters by their gradients."""
        self._steps += 1
        unbias_mean, unbias_square = 1 - _BETA1**self._steps, sqrt(1 - _BETA2**self._steps)
        for parameter, mean, square in zip(self.parameters, self._means, self._squares, strict=True):
            if parameter.grad is None:
                continue
            rate, decay = _as_rows(self._rates, parameter), _as_rows(self._decays, parameter)
            gradient = parameter.grad + decay * parameter
            mean.lerp_(gradient, 1 - _BETA1)
            square.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
            parameter.sub_(rate / unbias_mean * (mean / (square.sqrt() / unbias_square + _EPSILON)))

    def take(self, module: nn.Module, rows: Tensor) -> None:
        """Go on with some of the members, whose parameters `module` has now."""
        self.parameters = list(module.parameters())
        self._rates, self._decays = self._rates[rows], self._decays[rows]
        self._means = [mean[rows] for mean in self._means]
        self._squares = [square[rows] for square in self._squares]


def _as_rows(values: Tensor, parameter: Tensor) -> Tensor:
    return values.reshape(-1, *[1] * (parameter.dim() - 1))
