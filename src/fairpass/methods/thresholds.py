"""A plain classifier whose decisions are made with one threshold per group."""

from typing import Literal

from fairpass.methods.base import NodeClassifier
from fairpass.parameters import Choice, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.settings import Postprocess

Base = Literal["logistic", "mlp", "gcn", "gin", "gat", "sage"]
_BASES = Choice("logistic", "mlp", "gcn", "sage")


class Thresholds(NodeClassifier):
    """A plain method with thresholds per group (Hardt et al. 2016, found by fairlearn).

    The scores are those of the base method. The decisions meet `training.constraint` on the validation nodes, as with
    `postprocess="thresholds"` of any other method.

    **This treats people of different groups by different standards**, which is unlawful in places (in the United
    States, for example, as disparate treatment in credit and hiring), and everybody's group must be known at
    prediction. See `fairpass.metrics.GroupThresholds`.
    """

    base: Base = parameter(
        "logistic", "the plain method, with its default parameters and training settings", _BASES, _BASES
    )

    name = "thresholds"
    summary = "a plain method with a threshold for each group, which must be known to predict"
    recommended_training = Training(epochs=1)  # of the default base

    def check_parameters(self) -> None:
        """Train as the base method does, unless settings are given."""
        if self.training is None:
            self.training = self._plain().default_training()

    @property
    def postprocess(self) -> Postprocess:
        return "thresholds"

    @property
    def trains_alone(self) -> bool:
        return not self._plain().joins_populations

    def build(self, task: Task) -> Program:
        return self._plain()().build(task)

    def _plain(self) -> type[NodeClassifier]:
        from fairpass.methods.registry import method

        return method(self.base)
