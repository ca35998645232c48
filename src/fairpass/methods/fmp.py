"""FMP: an MLP, then message passing with a primal-dual step towards equal mean predictions in each layer."""

from itertools import combinations
from typing import ClassVar, Literal, cast, get_args

import torch
from torch import Tensor, nn

from fairpass.kernels import Groups
from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_choice, check_dropout
from fairpass.nn import MLP, SparseOperator
from fairpass.nn.group_estimator import GroupEstimator
from fairpass.nn.validation import check_buffers
from fairpass.training import Program, Task, Training
from fairpass.training.scoring import ReferenceName, UnknownGroup, group_shares

Penalty = Literal["l2", "l1"]


class FMP(NodeClassifier):
    r"""Fair message passing (Jiang et al. 2022, `arXiv:2202.04187 <https://arxiv.org/abs/2202.04187>`_).

    :math:`X^{(0)} = H = \mathrm{MLP}(X)`, then `K` layers that descend

    .. math::
        \tfrac12 \|F - H\|^2 + \tfrac{\lambda_s}{2} \mathrm{tr}\big(F^\top (I - \tilde A) F\big)
        + \lambda_f \|D\, \mathrm{softmax}(F)\|_2^2 \;\text{ or }\; \lambda_f \|D\, \mathrm{softmax}(F)\|_1,

    trained with cross-entropy. :math:`D` has a row for each pair of groups, :math:`1/N_b` on the one and
    :math:`-1/N_a` on the other, so that :math:`D\,\mathrm{softmax}(F)` are the differences between their mean
    predictions; nodes of unknown group have a column of zeros. With :math:`\gamma = 1/(1 + \lambda_s)`,
    :math:`\beta = 1/(2\gamma)` and :math:`g(u) = \nabla_F \langle u, D\,\mathrm{softmax}(F)\rangle` at the
    layer's input, a layer is

    .. math::
        Y &= \gamma H + (1 - \gamma) \tilde A F, &
        u &= (\gamma D D^\top)^+ D\, \mathrm{softmax}(Y), \\
        \bar u &= u + \beta D\, \mathrm{softmax}\big(Y - \gamma g(u)\big), &
        F' &= Y - \gamma g\big(\mathrm{prox}(\bar u)\big),

    where :math:`\mathrm{prox}(u) = \frac{2\lambda_f}{2\lambda_f + \beta} u` for the squared norm (`"l2"`);
    for the other (`"l1"`) it clips each entry to :math:`[-\lambda_f, \lambda_f]`. A clipped dual moves no
    node further than about :math:`\lambda_f / N_a`, next to nothing on large graphs. The other step is mild,
    too: the slope of a softmax is at most 1/2, so it takes away at most about a quarter of a difference.

    What differs from the public code: it divides both halves of `D` by `N` instead of by each group's size,
    so that the rows are no differences of means; it writes `D` into the sensitive vector in place, so that
    later epochs and runs see another one; it takes the softmax in `g` at :math:`D^\top u`
    instead of at `F`, which is no gradient. More than two groups are not in the paper; for two, the
    pseudo-inverse is its :math:`1/(\gamma D D^\top)`. The message passing replaces a backbone: it has none.

    Args:
        K: layers of message passing.
        lambda_f: weight of fairness.
        lambda_s: weight of smoothness.
        penalty: `"l2"` for the squared norm of the differences, `"l1"` for the sum of their absolute values.
        num_layers: layers of the MLP.
        hidden: width of the MLP.
        dropout: in the MLP.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "fmp"
    per_member: ClassVar[tuple[str, ...] | None] = ("lambda_f", "lambda_s")
    summary: ClassVar[str] = "message passing with a primal-dual step towards equal mean predictions"

    def __init__(
        self,
        *,
        K: int = 5,
        lambda_f: float = 3.0,
        lambda_s: float = 3.0,
        penalty: Penalty = "l2",
        num_layers: int = 2,
        hidden: int = 16,
        dropout: float = 0.0,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_at_least(1, K=K, num_layers=num_layers, hidden=hidden)
        check_at_least(0, lambda_f=lambda_f, lambda_s=lambda_s)
        check_choice(get_args(Penalty), penalty=penalty)
        check_dropout(dropout)
        self.K, self.lambda_f, self.lambda_s, self.penalty = K, lambda_f, lambda_s, penalty
        self.num_layers, self.hidden, self.dropout = num_layers, hidden, dropout

    @classmethod
    def default_training(cls) -> Training:
        """Return the authors' settings."""
        return Training(epochs=300, learning_rate=1e-3, weight_decay=1e-5)

    def build(self, task: Task) -> Program:
        """Return MLP and message passing."""
        mlp = MLP(task.num_features, task.num_classes, self.num_layers, self.hidden, self.dropout)
        return _FairMessagePassing(mlp, FMPPropagation(self.K, self.lambda_f, self.lambda_s, self.penalty), task)


class _FairMessagePassing(Program):
    """An MLP and message passing.

    Buffers, kept of the fitted graph: `duals`, what each layer multiplies the groups' contrasts with,
    `(K, pairs, c)`; and `scales`, what a node of each group counts.
    """

    duals: Tensor | None
    scales: Tensor | None

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
        logits, _ = self.propagation(self.mlp(task.x), task.operator("gcn"), GroupGaps(task.groups))
        return cast("Tensor", logits)

    @property
    def keeps_reference(self) -> bool:
        return self.duals is not None

    @torch.no_grad()
    def finish(self, task: Task) -> None:
        _, self.duals = self.propagation(self.mlp(task.x), task.operator("gcn"), GroupGaps(task.groups))
        self.scales = task.groups.scales.clone()
        self.estimator.take(task.group_estimator)

    def score(self, task: Task, reference: ReferenceName, unknown_group: UnknownGroup) -> Tensor:
        """Return the logits of nodes that are moved by the fitted graph's differences, or by their own."""
        shares = group_shares(task, self.num_groups, unknown_group, self.estimator)
        if reference == "batch" or self.scales is None:
            return super().score(task, reference, unknown_group)
        gaps = GroupGaps(Groups.of_others(self.scales, shares))
        logits, _ = self.propagation(self.mlp(task.x), task.operator("gcn"), gaps, self.duals)
        return cast("Tensor", logits)

    def check_state(self) -> None:
        super().check_state()
        self.estimator.check(self.num_groups, self.num_features)
        pairs = self.num_groups * (self.num_groups - 1) // 2
        shapes = {"duals": (self.propagation.K, pairs, self.num_classes), "scales": (self.num_groups,)}
        check_buffers(self, shapes)


class FMPPropagation(nn.Module):
    """The message passing of :class:`FMP`; it has no parameters to learn."""

    per_member = ("lambda_f", "lambda_s")

    def __init__(self, K: int, lambda_f: float, lambda_s: float, penalty: Penalty = "l2") -> None:
        super().__init__()
        self.K, self.penalty = K, penalty
        self.lambda_f: float | Tensor = lambda_f
        self.lambda_s: float | Tensor = lambda_s

    @property
    def gamma(self) -> float | Tensor:
        """Return the step size."""
        return 1 / (1 + self.lambda_s)

    @property
    def beta(self) -> float | Tensor:
        """Return the dual step size."""
        return (1 + self.lambda_s) / 2

    def forward(
        self, H: Tensor, adjacency: SparseOperator, gaps: "GroupGaps", duals: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the representations after `K` layers, `(N, c)`, and the layers' duals, `(K, pairs, c)`.

        With `duals` of other nodes the nodes are moved by these, and not by their own differences.
        """
        F, gamma, used = H, self.gamma, []
        for layer in range(self.K):
            Y = gamma * H + (1 - gamma) * (adjacency @ F)
            u = self.dual(F, Y, gaps) if duals is None else duals[layer]
            F = Y - gamma * gaps.gradient(u, _softmax(F))
            used.append(u)
        return F, torch.stack(used)

    def dual(self, F: Tensor, Y: Tensor, gaps: "GroupGaps") -> Tensor:
        """Return the dual that moves `Y` so that the groups' mean predictions are closer, with gradients at `F`."""
        u = gaps.inverse @ gaps(_softmax(Y)) / self.gamma
        ahead = Y - self.gamma * gaps.gradient(u, _softmax(F))
        return self._prox(u + self.beta * gaps(_softmax(ahead)))

    def _prox(self, u: Tensor) -> Tensor:
        if self.penalty == "l1":
            limit = torch.as_tensor(self.lambda_f, dtype=u.dtype, device=u.device)
            return u.clamp(-limit, limit)
        return u * (2 * self.lambda_f / (2 * self.lambda_f + self.beta))


class GroupGaps:
    """`D`: the difference between the groups' means, a row for each pair of groups.

    Attributes:
        transposed: `D'`, `(N, pairs)`.
        inverse: pseudo-inverse of `D D'`, `(pairs, pairs)`.
    """

    def __init__(self, groups: Groups) -> None:
        count = groups.membership.shape[1]
        low, high = torch.tensor(list(combinations(range(count), 2))).T
        identity = torch.eye(count, dtype=torch.float64)
        contrast = (identity[high] - identity[low]).to(groups.sizes.device)
        self.transposed = groups.membership @ contrast.T.to(groups.membership)
        # With more than two groups D D' is singular; in double precision its zeros are plain to see.
        gram = (contrast / groups.sizes) @ contrast.T
        self.inverse = torch.linalg.pinv(gram, rtol=1e-9, hermitian=True).to(self.transposed)

    def __call__(self, values: Tensor) -> Tensor:
        """Return `D values`, `(pairs, c)`."""
        return self.transposed.mT @ values

    def gradient(self, u: Tensor, probabilities: Tensor) -> Tensor:
        """Return the gradient of `<u, D softmax(F)>` in `F`, `(N, c)`, given `softmax(F)`."""
        pull = self.transposed @ u
        return probabilities * (pull - (probabilities * pull).sum(-1, keepdim=True))


def _softmax(rows: Tensor) -> Tensor:
    # Of tall, narrow matrices PyTorch takes a column's softmax several times as fast as a row's.
    return rows.mT.softmax(-2).mT
