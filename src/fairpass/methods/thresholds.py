"""A plain classifier whose decisions are made with a threshold for each group."""

from typing import ClassVar, Literal, get_args

from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_choice
from fairpass.methods.logistic import Logistic
from fairpass.training import Program, Task, Training
from fairpass.training.settings import Postprocess

Base = Literal["logistic", "mlp", "gcn", "gin", "gat", "sage"]


class Thresholds(NodeClassifier):
    """A plain method with thresholds for each group (Hardt et al. 2016, found by fairlearn).

    The scores are those of the base method, fitted as it would be alone. The decisions are made to meet
    `training.constraint` on the validation nodes, as with `postprocess="thresholds"` of any other method.

    **This treats people of different groups by different standards**, which is unlawful in places (in the United
    States, for example, as disparate treatment in credit and hiring), and the group of everybody must be known at
    prediction. See `fairpass.metrics.GroupThresholds`.

    Args:
        base: the plain method, with its defaults: `"logistic"`, `"mlp"`, `"gcn"`, `"gin"`, `"gat"` or `"sage"`.
        training: settings of the training loop, by default the base method's; `constraint` says which rates shall
            be equal.
    """

    name: ClassVar[str] = "thresholds"
    summary: ClassVar[str] = "a plain method with a threshold for each group, which must be known to predict"

    def __init__(self, *, base: Base = "logistic", training: Training | None = None) -> None:
        check_choice(get_args(Base), base=base)
        self.base: Base = base
        super().__init__(training=training if training is not None else self._plain().default_training())

    @classmethod
    def default_training(cls) -> Training:
        """Return the settings of the default base."""
        return Logistic.default_training()

    @property
    def postprocess(self) -> Postprocess:
        """Return `"thresholds"`, whatever `training` says."""
        return "thresholds"

    @property
    def trains_alone(self) -> bool:
        """Return whether the base method cannot be part of a population."""
        return self._plain().per_member is None

    def build(self, task: Task) -> Program:
        """Return the base method's program."""
        return self._plain()().build(task)

    def _plain(self) -> type[NodeClassifier]:
        from fairpass.methods.registry import method

        return method(self.base)
