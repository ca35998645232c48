"""The options of GMMD's message passing, declared once for the layer and for the classifier."""

from typing import Any, ClassVar, Literal

from fairpass.nn.convolution import Backbone
from fairpass.parameters import Choice, Declared, Dimension, LogUniform, parameter

Step = Literal["paper", "stable"]
Bandwidth = Literal["fixed", "adaptive"]


def weight_parameter(search: Dimension) -> Any:
    """Declare the weight of fairness, which is searched in different ranges for GMMD and GMMD-S."""
    return parameter(
        None,
        r"weight of fairness without units, :math:`16\lambda_f\alpha/\min_a N_a`, which means the same on every "
        "graph; by default 100, and 1 for GMMD-S",
        search,
        at_least=0,
        per_member=True,
    )


class GMMDOptions(Declared, kw_only=False):
    """Options of the message passing; the grid is the paper's."""

    K: int = parameter(2, "number of layers of message passing", at_least=1, grid=Choice(2))
    lambda_s: float = parameter(
        1.0,
        r"weight of smoothness, :math:`\lambda_s`; 0 leaves the graph out, and one layer is then as good as many",
        Choice(0.0, 0.5, 1.0, 2.0),
        Choice(0.0, 0.1, 0.5, 1.0, 2.0),
        at_least=0,
        per_member=True,
    )
    lambda_f: float | None = parameter(
        None,
        r"weight of fairness in the paper's units, :math:`\lambda_f`, instead of `weight`",
        at_least=0,
        grid=Choice(0.0, 0.1, 0.5, 1.0, 5.0, 10.0),
        per_member=True,
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
    )
    momentum: bool = parameter(True, "whether these steps have momentum, which makes each go further", before=False)
    sample: int | None = parameter(
        None,
        "number of nodes drawn from each group in each training pass, as in the paper; None: all nodes. Each "
        "keeps the weight `1/N_a` of its whole group",
        at_least=1,
        grid=Choice(100),  # for German; the paper has 200 for Bail and 6,000 for Credit
    )

    default_weight: ClassVar[float] = 100.0

    def check_parameters(self) -> None:
        """Raise `ValueError` if both weights are given; use the default weight if neither is."""
        if self.lambda_f is not None and self.weight is not None:
            raise ValueError(
                f"'weight' and 'lambda_f' must not be given together (got {self.weight} and {self.lambda_f})"
            )
        if self.lambda_f is None and self.weight is None:
            self.weight = self.default_weight
