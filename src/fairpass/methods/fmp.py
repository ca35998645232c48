"""FMP: an MLP, then message passing whose layers take a primal-dual step towards equal mean predictions."""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from fairpass.kernels import Groups
from fairpass.methods import networks
from fairpass.methods.base import NodeClassifier
from fairpass.nn import MLP, SparseOperator
from fairpass.nn.calibration import GroupEstimator
from fairpass.nn.validation import check_buffers
from fairpass.parameters import Choice, Integers, LogUniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import ReferenceName, UnknownGroup, group_shares
from fairpass.world import world

Penalty = Literal["l2", "l1"]


class FMP(NodeClassifier):
    r"""Fair message passing (Jiang et al. 2022, `arXiv:2202.04187 <https://arxiv.org/abs/2202.04187>`_).

    :math:`F^{(0)} = H = \mathrm{MLP}(X)`, then `K` layers that descend

    .. math::
        \tfrac12 \|F - H\|^2 + \tfrac{\lambda_s}{2} \mathrm{tr}\big(F^\top (I - \tilde A) F\big)
        + \lambda_f \|D\, \mathrm{softmax}(F)\|_2^2 \;\text{ or }\; \lambda_f \|D\, \mathrm{softmax}(F)\|_1,

    trained with cross-entropy. :math:`D\,\mathrm{softmax}(F)` are the differences between the groups' mean
    predictions, one row for each pair of groups. With :math:`\gamma = 1/(1 + \lambda_s)`,
    :math:`\beta = 1/(2\gamma)` and :math:`g(u) = \nabla_F \langle u, D\,\mathrm{softmax}(F)\rangle`, a layer is

    .. math::
        Y &= \gamma H + (1 - \gamma) \tilde A F, &
        u &= (\gamma D D^\top)^+ D\, \mathrm{softmax}(Y), \\
        \bar u &= u + \beta D\, \mathrm{softmax}\big(Y - \gamma g(u)\big), &
        F' &= Y - \gamma g\big(\mathrm{prox}(\bar u)\big),

    where :math:`\mathrm{prox}(u) = \frac{2\lambda_f}{2\lambda_f + \beta} u` for `"l2"`, and clips each entry to
    :math:`[-\lambda_f, \lambda_f]` for `"l1"`. A clipped dual hardly moves any node of a large graph. The other step
    is mild, too: a softmax has slope 1/2 at most, so a layer removes at most about a quarter of a difference.
    """

    K: int = parameter(5, "number of message passing layers", Integers(1, 6), Choice(2, 5), at_least=1, limit=1000)
    lambda_f: float = parameter(
        3.0, "weight of fairness", LogUniform(0.1, 100), Choice(1.0, 3.0, 10.0, 30.0), at_least=0, per_member=True
    )
    lambda_s: float = parameter(
        3.0, "weight of smoothness", LogUniform(0.1, 10), Choice(1.0, 3.0), at_least=0, per_member=True
    )
    penalty: Penalty = parameter("l2", 'squared norm (`"l2"`) or sum of absolute values (`"l1"`) of the differences')
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout(0.0, searched=False)

    name = "fmp"
    summary = "message passing with a primal-dual step towards equal mean predictions"
    takes_edge_weights = True
    trains_in_parts = True
    stage = "in-processing"
    needs_groups = "prediction"
    switched_off: ClassVar[Mapping[str, Any]] = {"lambda_f": 0.0}
    recommended_training = Training(epochs=300, learning_rate=1e-3, weight_decay=1e-5)  # the authors'
    search_order = ("lambda_f", "lambda_s", "K")
    trains_alone = False

    def build(self, task: Task) -> Program:
        mlp = MLP(task.num_features, task.num_classes, self.num_layers, self.hidden, self.dropout)
        return _FairMessagePassing(mlp, FMPPropagation(self.K, self.lambda_f, self.lambda_s, self.penalty), task)


class _FairMessagePassing(Program):
    duals: Tensor | None  # (K, pairs, c), those of the fitted graph
    scales: Tensor | None  # (G,), the weight of a node of each group

    def __init__(self, mlp: MLP, propagation: "FMPPropagation", task: Task) -> None:
        super().__init__()
        self.mlp, self.propagation = mlp, propagation
        self.num_features, self.num_classes, self.num_groups = task.num_features, task.num_classes, task.num_groups
        self.register_buffer("duals", None)
        self.register_buffer("scales", None)
        self.estimator = GroupEstimator()

    @property
    def is_random(self) -> bool:
        return self.mlp.dropout > 0

    def forward(self, task: Task) -> Tensor:
        return self._propagate(task, task.groups)[0]

    def _propagate(self, task: Task, groups: Groups, duals: Tensor | None = None) -> tuple[Tensor, Tensor]:
        gaps, H = GroupGaps(groups), self.mlp(task.x)
        moved: tuple[Tensor, Tensor] = self.propagation(H, task.operator("gcn"), gaps, duals)
        return moved

    @property
    def keeps_reference(self) -> bool:
        return self.duals is not None

    @torch.no_grad()
    def finish(self, task: Task) -> None:
        self.duals = self._propagate(task, task.groups)[1]
        self.scales = task.groups.scales.clone()
        self.estimator.take(task.group_estimator)

    def score(self, task: Task, reference: ReferenceName, unknown_group: UnknownGroup) -> Tensor:
        shares = group_shares(task, self.num_groups, unknown_group, self.estimator)
        if reference == "batch" or self.scales is None:
            return super().score(task, reference, unknown_group)
        return self._propagate(task, Groups.of_others(self.scales, shares), self.duals)[0]

    def check_state(self) -> None:
        super().check_state()
        self.estimator.check(self.num_groups, self.num_features)
        pairs = self.num_groups * (self.num_groups - 1) // 2
        duals = (self.propagation.K, pairs, self.num_classes)
        check_buffers(self, {"duals": duals, "scales": (self.num_groups,)})
        expected = next(self.mlp.parameters()).dtype
        for name in ("duals", "scales"):
            if getattr(self, name) is not None and getattr(self, name).dtype != expected:
                raise ValueError(f"'{name}' must be of type {expected} (got {getattr(self, name).dtype})")


class FMPPropagation(nn.Module):
    """The layers of :class:`FMP`, without learnt parameters."""

    per_member = FMP.per_member

    def __init__(self, K: int, lambda_f: float, lambda_s: float, penalty: Penalty = "l2") -> None:
        super().__init__()
        self.K, self.penalty = K, penalty
        self.lambda_f: float | Tensor = lambda_f
        self.lambda_s: float | Tensor = lambda_s

    @property
    def gamma(self) -> float | Tensor:
        return 1 / (1 + self.lambda_s)

    @property
    def beta(self) -> float | Tensor:
        return (1 + self.lambda_s) / 2

    def forward(
        self, H: Tensor, adjacency: SparseOperator, gaps: "GroupGaps", duals: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the representations after `K` layers, `(N, c)`, and the layers' duals, `(K, pairs, c)`.

        With `duals` of other nodes, these move the nodes instead of their own differences.
        """
        F, gamma, used = H, self.gamma, []
        for k in range(self.K):
            Y = gamma * H + (1 - gamma) * (adjacency @ F)
            u = self.dual(F, Y, gaps) if duals is None else duals[k]
            F = Y - gamma * gaps.gradient(u, _softmax(F))
            used.append(u)
        return F, torch.stack(used)

    def dual(self, F: Tensor, Y: Tensor, gaps: "GroupGaps") -> Tensor:
        u: Tensor = gaps.inverse @ gaps(_softmax(Y)) / self.gamma
        ahead = Y - self.gamma * gaps.gradient(u, _softmax(F))
        u = u + self.beta * gaps(_softmax(ahead))
        if self.penalty == "l1":
            limit = torch.as_tensor(self.lambda_f, dtype=u.dtype, device=u.device)
            return u.clamp(-limit, limit)
        return u * (2 * self.lambda_f / (2 * self.lambda_f + self.beta))


class GroupGaps:
    """`D`, the differences between the groups' means; `transposed` is `D'`, `inverse` the pseudo-inverse of `D D'`."""

    def __init__(self, groups: Groups) -> None:
        count = groups.membership.shape[1]
        low, high = torch.tensor(list(combinations(range(count), 2))).T
        identity = torch.eye(count, dtype=torch.float64)
        contrast = (identity[high] - identity[low]).to(groups.sizes.device)
        self.transposed = groups.membership @ contrast.T.to(groups.membership)
        # With more than two groups D D' is singular; its zeros are unmistakable in double precision.
        gram = (contrast / groups.sizes) @ contrast.T
        self.inverse = torch.linalg.pinv(gram, rtol=1e-9, hermitian=True).to(self.transposed)

    def __call__(self, values: Tensor) -> Tensor:
        return world().total(self.transposed.mT @ values)

    def gradient(self, u: Tensor, probabilities: Tensor) -> Tensor:
        """Return the gradient of `<u, D softmax(F)>` in `F`, `(N, c)`, given `softmax(F)`."""
        pull = self.transposed @ u
        return probabilities * (pull - (probabilities * pull).sum(-1, keepdim=True))


def _softmax(rows: Tensor) -> Tensor:
    # For tall, narrow matrices, PyTorch's softmax over columns is several times as fast as over rows.
    return rows.mT.softmax(-2).mT
