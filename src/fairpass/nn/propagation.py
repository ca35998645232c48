r"""Fairness-aware message passing: GMMD and GMMD-S.

Both descend the objective

.. math::
    h(F) = \frac{\lambda_s}{2} \mathrm{tr}(F^\top \tilde L F) + \frac12 \|F - X_{in}\|_F^2 + \lambda_f h_f(F)

layer by layer, from `F = X_in`; `h_f` is the maximum mean discrepancy between the sensitive groups.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from fairpass.kernels import Discrepancy, Groups
from fairpass.kernels.backend import EPS, described
from fairpass.kernels.dispatch import Backend
from fairpass.kernels.mmd import KernelName
from fairpass.kernels.sums import SumOptions
from fairpass.nn.convolution import Attention, Backbone
from fairpass.nn.fairness import FairnessTerm, RecordedTerm, Reference, ReplayedTerm, Term, descend, draw, spread
from fairpass.nn.layers import as_kernel_argument
from fairpass.nn.operators import OperatorKind, SparseOperator
from fairpass.parameters import LARGEST_SEED, MOST_NODES, Choice, Declared, Dimension, LogUniform, parameter
from fairpass.world import world

Step = Literal["paper", "stable"]
Bandwidth = Literal["fixed", "adaptive"]
Graph = Tensor | SparseOperator
TermAt = Callable[[Tensor], Term]

_EPS = 1e-5  # the kernel sums' tolerance inside a layer; the measured error is some twenty times smaller
_LARGEST = 1e15  # squares of larger entries, added up over the nodes, may overflow in float32


_weight = partial(parameter, at_least=0, per_member=True)


def weight_parameter(search: Dimension) -> Any:
    """Declare the weight of fairness, which is searched in different ranges for GMMD and GMMD-S."""
    return _weight(
        None,
        r"weight of fairness without units, :math:`16\lambda_f\alpha/\min_a N_a`, which means the same on every "
        "graph; by default 100, and 1 for GMMD-S",
        search,
    )


class GMMDOptions(Declared, kw_only=False):
    """Options of the message passing, for the layer and for the classifier; the grid is the paper's."""

    K: int = parameter(2, "number of layers of message passing", at_least=1, limit=1000, grid=Choice(2))
    lambda_s: float = _weight(
        1.0,
        r"weight of smoothness, :math:`\lambda_s`; 0 leaves the graph out, and one layer is then as good as many",
        Choice(0.0, 0.5, 1.0, 2.0),
        Choice(0.0, 0.1, 0.5, 1.0, 2.0),
    )
    lambda_f: float | None = _weight(
        None,
        r"weight of fairness in the paper's units, :math:`\lambda_f`, instead of `weight`",
        grid=Choice(0.0, 0.1, 0.5, 1.0, 5.0, 10.0),
    )
    alpha: float = parameter(
        0.3,
        r"parameter of the kernel :math:`k(x, y) = \exp(-\alpha\|x-y\|^2)`",
        LogUniform(0.1, 2),
        Choice(0.1, 0.3, 0.7, 1.0),
        above=0,
        per_member=True,
    )
    weight: float | None = weight_parameter(LogUniform(1, 10_000))
    backbone: Backbone = parameter(
        "gcn",
        r'the smoothing operator: `"gcn"` :math:`\tilde A`; `"sage"`, the mean over the neighbours; `"gin"` '
        r":math:`A + (1+\epsilon) I`, whose rows the stable step divides by their sums, because sums over thousands of "
        'neighbours would outweigh the input; or `"gat"`, learnt attention over neighbours and self',
    )
    step: Step = parameter("stable", "how a layer descends the objective", grid=Choice("paper"))
    bandwidth: Bandwidth = parameter(
        "adaptive",
        '`"fixed"` uses `alpha` as it is, and a network can escape the discrepancy by scaling up; `"adaptive"` '
        "divides it by the spread of the representations, twice the mean squared distance to their mean",
        grid=Choice("fixed"),
    )
    fair_steps: int = parameter(
        4,
        "kernel steps `J` in each stable layer; more of them trade accuracy for fairness",
        Choice(2, 4, 6, 12),  # the time of an epoch grows with it
        at_least=0,
        limit=1000,
    )
    momentum: bool = parameter(True, "whether these steps have momentum, which makes each go further", before=False)
    sample: int | None = parameter(
        None,
        "number of nodes drawn from each group in each training pass, as in the paper; None: all nodes. Each "
        "keeps the weight `1/N_a` of its whole group",
        at_least=1,
        limit=MOST_NODES,
        grid=Choice(100),  # for German; the paper has 200 for Bail and 6,000 for Credit
    )

    default_weight: ClassVar[float] = 100.0

    def check_parameters(self) -> None:
        if self.lambda_f is not None and self.weight is not None:
            got = f"{self.weight} and {self.lambda_f}"
            raise ValueError(f"'weight' and 'lambda_f' must not be given together (got {got})")
        if self.lambda_f is None and self.weight is None:
            self.weight = self.default_weight


class GMMDPropagation(GMMDOptions, nn.Module, kw_only=False):
    r"""The message passing of `"Fairness-aware Message Passing for Graph Neural Networks"
    <https://arxiv.org/abs/2306.11132>`_, exact over all nodes.

    One layer of the paper (`step="paper"`), with :math:`\gamma = 1/(1+\lambda_s)`, is

    .. math::
        F^{(k)} = \big((1-\gamma)(I - \tilde L) + 4\gamma\lambda_f\alpha P\big) F^{(k-1)} + \gamma X_{in},
        \qquad 4\alpha P F = -\nabla \mathrm{MMD}^2(F).

    Its step ignores the curvature of the fairness term: with a large :math:`\lambda_f` the groups jump past each other.
    `step="stable"` splits the layer: it smooths, :math:`Y = (1-\gamma)\tilde A F + \gamma X_{in}`, and then takes `J`
    gradient steps on :math:`\frac{1}{2\gamma}\|F - Y\|^2 + \lambda_f h_f(F)` from `F = Y`, each node with the step
    :math:`1/(1/\gamma + 16\lambda_f\alpha/N_a)` that its group's curvature allows. Every layer then lowers `h`: if
    smoothing raised the discrepancy by more than it gained, the layer takes one damped gradient step on `h` instead.

    Shapes:
        `x_in` `(N, c)`, `graph` (an `edge_index`, or what `prepare` returns), `sens` `(N,)` with the group of each node
        (negative: unknown, takes no part) or `Groups`, weighted or not -> `F^(K)` `(N, c)`.

    Example:
        >>> propagation = GMMDPropagation(K=2)
        >>> x_in, edge_index, sens = torch.randn(4, 2), torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 1, 0, 1])
        >>> propagation(x_in, edge_index, sens).shape
        torch.Size([4, 2])
    """

    sample_seed: int = parameter(
        0, "seed of the draw in evaluation mode, so that predictions are reproducible", at_least=0, limit=LARGEST_SEED
    )
    kernel: KernelName = parameter(
        "gaussian", '`"gaussian"`, or `"laplace"`, whose cost is quadratic in the number of nodes'
    )
    backend: Backend = parameter(
        "auto",
        "how Gaussian sums are computed, as for :func:`~fairpass.kernels.gauss_sum`. By default they are exact "
        "for up to three columns of `F`, and for few nodes; else sliced, with an error below 5 % of the message",
    )
    directions: int | None = parameter(None, "number of directions of sliced sums", at_least=1, limit=100_000)
    epsilon: float = parameter(0.0, "GIN's weight of a node itself")
    channels: int | None = parameter(None, 'number of columns of `F`, for `backbone="gat"`', at_least=1)

    # Parameters that are `per_member` may be tensors `(B, 1, 1)`: one value for each member of a population.
    simplified: ClassVar[bool] = False

    def __post_init__(self) -> None:
        nn.Module.__init__(self)
        super().__post_init__()
        if self.backbone == "gat" and self.channels is None:
            raise ValueError("'channels' must be given for backbone 'gat' (got None)")
        self.attention = Attention(self.channels) if self.backbone == "gat" and self.channels is not None else None

    @classmethod
    def paper(cls, lambda_f: float, **options: Any) -> "GMMDPropagation":
        """Return the paper's layer, which samples: `sample` is 100 on German, 200 on Bail and 6,000 on Credit."""
        return cls(lambda_f=lambda_f, **{"step": "paper", "bandwidth": "fixed", **options})

    def reset_parameters(self) -> None:
        """Draw the attention vector again; nothing else is learnt."""
        if self.attention is not None:
            self.attention.reset_parameters()

    def prepare(self, edge_index: Tensor, num_nodes: int, dtype: torch.dtype = torch.float32) -> SparseOperator:
        """Return the graph's operator, to be built once and passed to `forward`."""
        kind, epsilon = self.operator_kind, self.epsilon
        return SparseOperator.from_edge_index(edge_index, num_nodes, kind, epsilon=epsilon, dtype=dtype)

    @property
    def operator_kind(self) -> OperatorKind:
        """The kind of the operator that a layer multiplies with."""
        return "gin_mean" if self.backbone == "gin" and self.step == "stable" else self.backbone

    # Which kernel sums it takes depends on the data: a compiler leaves the layer as it is.
    @torch.compiler.disable  # type: ignore[untyped-decorator] # torch's own
    def forward(self, x_in: Tensor, graph: Graph, sens: Tensor | Groups, reference: Reference | None = None) -> Tensor:
        """Return `F^(K)`; with a `reference`, nodes move among those of it, and `sens` is `reference.groups(...)`."""
        self._check(x_in, graph)
        term_at = self._terms(self._groups(x_in, sens), reference)
        is_small = x_in.detach().abs().amax((-2, -1), keepdim=True) < _LARGEST
        usable = world().smallest(is_small.int()).bool()  # as whole numbers: a comparison may lose a nan
        if bool(usable.all()):
            return self._propagate(x_in, graph, term_at)
        # Training has diverged: nan tells so, and the other members of a population go on.
        return torch.where(usable, self._propagate(torch.where(usable, x_in, 0.0), graph, term_at), torch.nan)

    @torch.no_grad()
    def record(self, x_in: Tensor, graph: Graph, sens: Tensor | Groups, reference: Reference) -> None:
        """Record in `reference` what moves the nodes, so that others can move among them; without a batch axis."""
        self._check(x_in, graph)
        groups = self._groups(x_in, sens)
        term_at, layers = self._terms(groups), iter(reference)
        self._propagate(x_in, graph, lambda F: RecordedTerm(term_at(F), next(layers)))
        reference.scales = groups.scales.clone()

    def empty_reference(self) -> Reference:
        """Return a reference with room for the fields of these layers."""
        return Reference(self.K, 1 if self.step == "paper" else self.fair_steps + 1)

    def _check(self, x_in: Tensor, graph: Graph) -> None:
        is_dense = isinstance(x_in, Tensor) and x_in.layout == torch.strided and x_in.dim() >= 2 and x_in.numel() > 0
        if not is_dense or x_in.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"'x_in' must be a float32 or float64 tensor (N, c) (got {described(x_in)})")
        if self.attention is not None and (x_in.dim() != 2 or x_in.shape[-1] != self.attention.channels):
            expected = f"(N, {self.attention.channels}), with 'channels' columns"
            raise ValueError(f"'x_in' must have shape {expected} for attention (got {tuple(x_in.shape)})")
        if not isinstance(graph, Tensor | SparseOperator):
            raise ValueError(f"'graph' must be an edge_index or what 'prepare' returns (got {type(graph).__name__})")

    def _groups(self, x_in: Tensor, sens: Tensor | Groups) -> Groups:
        groups = sens.to(x_in) if isinstance(sens, Groups) else Groups.of(sens, x_in.dtype)
        if groups.membership.shape[-2] != x_in.shape[-2]:
            raise ValueError(f"'sens' must have {x_in.shape[-2]} entries (got {groups.membership.shape[-2]})")
        return groups

    def _terms(self, groups: Groups, reference: Reference | None = None) -> Callable[[Tensor], Any]:
        """Return a function that makes the fairness term of the next layer, at its `F`."""
        if reference is not None:
            replayed, layers = self._discrepancy(groups, _EPS), iter(reference)
            return lambda F: ReplayedTerm(next(layers), replayed)
        # Other nodes take part at each call in training, always the same in evaluation.
        drawn = draw(groups, self.sample, None if self.training else self.sample_seed)
        discrepancy = self._discrepancy(groups if drawn is None else groups.rows(drawn), _EPS)
        return lambda F: self._term(F, discrepancy, drawn)

    def _propagate(self, x_in: Tensor, graph: Graph, term_at: TermAt) -> Tensor:
        smooths = bool(self.lambda_s.any()) if isinstance(self.lambda_s, Tensor) else self.lambda_s > 0
        if self.step == "stable" and not smooths:
            # Every layer would start from `x_in` again and do the same; from `F = x_in` each step lowers `h`.
            if self.fair_steps == 0:
                return x_in
            term = term_at(x_in)
            size = 1 / (1 + term.curvature(x_in))
            return descend(x_in, size, 1.0, term, self.fair_steps, momentum=self.momentum).moved
        operator = self.prepare(graph, x_in.shape[-2], x_in.dtype) if isinstance(graph, Tensor) else graph
        F, smoothed = x_in, None
        for _ in range(self.K):
            F, smoothed = self._layer(F, smoothed, x_in, operator, term_at)
        return F

    def _layer(
        self, F: Tensor, smoothed: Tensor | None, x_in: Tensor, operator: SparseOperator, term_at: TermAt
    ) -> tuple[Tensor, Tensor | None]:
        # `smoothed` is the operator's product with `F`; returns it for the next `F` if it was needed.
        gamma = 1 / (1 + self.lambda_s)
        if smoothed is None:
            smoothed = self._smooth(F, operator)
        Y = torch.lerp(x_in, smoothed, 1 - gamma)
        if self.step == "paper":
            return Y - gamma * term_at(F).gradient(F)[0], None
        if self.fair_steps == 0:
            return Y, None
        term = term_at(Y)
        size = 1 / (1 / gamma + term.curvature(Y))
        moved, at_most, is_exact = descend(Y, size, gamma, term, self.fair_steps, momentum=self.momentum)
        # Only these operators come from an objective; attention and sums over neighbours do not.
        has_objective = self.backbone == "gcn" and operator.is_symmetric
        if not has_objective and not term.was_damped:
            return moved, None
        next_smoothed = self._smooth(moved, operator)
        with torch.no_grad():
            # h_s(F) - h_s(moved), the operator being symmetric.
            both = F + moved
            slope = torch.sub(both, x_in, alpha=2) + self.lambda_s * (both - smoothed - next_smoothed)
            gained = world().total(((F - moved) * slope).sum((-2, -1))) / 2
            lowered = term.stays_below(moved, at_most, F, gained, is_exact=is_exact)
        if bool(lowered.all()):
            return moved, next_smoothed
        damped = F - size * ((F - Y) / gamma + term.gradient(F)[0])
        return torch.where(lowered[..., None, None], moved, damped), None

    def objective(
        self, F: Tensor, x_in: Tensor, graph: SparseOperator, sens: Tensor, alpha: float, lambda_f: float
    ) -> Tensor:
        """Return `h(F)` of the paper's Eq. (fair-GSD), for a fixed kernel and a symmetric operator."""
        smoothness = (self.lambda_s * F * (F - graph @ F) + (F - x_in).square()).sum((-2, -1)) / 2
        return smoothness + lambda_f * self._discrepancy(Groups.of(sens, F.dtype)).value(F, alpha)

    def _discrepancy(self, groups: Groups, eps: float = EPS) -> Discrepancy:
        sums = SumOptions(eps=eps, backend=self.backend, directions=self.directions)
        return Discrepancy(groups, simplified=self.simplified, kernel=self.kernel, **sums)

    def _term(self, F: Tensor, discrepancy: Discrepancy, drawn: Tensor | None) -> FairnessTerm:
        alpha = torch.as_tensor(as_kernel_argument(self.alpha), dtype=F.dtype, device=F.device).expand(F.shape[:-2])
        if self.bandwidth == "adaptive":
            alpha = alpha / spread(F, drawn).clamp(min=torch.finfo(F.dtype).tiny ** 0.5)
        if self.weight is not None:
            stiffness = discrepancy.stiffness(alpha[..., None, None])
            lambda_f = torch.where(stiffness > 0, self.weight / stiffness, 0.0)  # 0 if there is nothing to compare
        else:
            lambda_f = torch.as_tensor(self.lambda_f, dtype=F.dtype, device=F.device).expand(*alpha.shape, 1, 1)
        return FairnessTerm(discrepancy, alpha, lambda_f, drawn)

    def _smooth(self, F: Tensor, operator: SparseOperator) -> Tensor:
        return operator @ F if self.attention is None else self.attention(F, operator)

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in GMMDOptions.declared}
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)
        return f"{type(self).__name__}({shown})"


class GMMDSPropagation(GMMDPropagation, kw_only=False):
    r"""The simplified message passing, GMMD-S: only the similarity between the groups is raised.

    .. math::
        h_f(F) = -\frac{2}{N_0 N_1} \sum_{i \in S_0} \sum_{j \in S_1} k(F_i, F_j), \qquad
        \tilde P_{ij} = +\frac{k(F_i, F_j)}{N_0 N_1} \text{ across groups, } 0 \text{ within,}

    with :math:`\tilde P_{ii} = -\sum_{m \ne i} \tilde P_{im}`. (The paper prints a minus across groups, against its own
    derivation.) Nothing holds the nodes of a group apart, so that a large `weight` draws all of them together.
    """

    simplified = True
    default_weight = 1.0
