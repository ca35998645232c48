"""The multi-layer perceptron: what the features say without the graph."""

from typing import ClassVar

from torch import Tensor

from fairpass.methods.base import NodeClassifier
from fairpass.methods.checks import check_at_least, check_dropout
from fairpass.nn import MLP
from fairpass.training import Program, Task, Training


class MLPClassifier(NodeClassifier):
    """Multi-layer perceptron on the features, trained with cross-entropy. It does not see the edges.

    The defaults are those of `GCN`, so that the difference between the two is what the graph adds.

    Args:
        num_layers: number of linear layers; with 1 it is logistic regression.
        hidden: width.
        dropout: between layers.
        training: settings of the training loop.
    """

    name: ClassVar[str] = "mlp"
    summary: ClassVar[str] = "multi-layer perceptron on the features, no graph, no fairness"
    per_member: ClassVar[tuple[str, ...] | None] = ()

    def __init__(
        self,
        *,
        num_layers: int = 2,
        hidden: int = 16,
        dropout: float = 0.5,
        training: Training | None = None,
    ) -> None:
        super().__init__(training=training)
        check_at_least(1, num_layers=num_layers, hidden=hidden)
        check_dropout(dropout)
        self.num_layers, self.hidden, self.dropout = num_layers, hidden, dropout

    def build(self, task: Task) -> Program:
        """Return the network."""
        return _Perceptron(
            MLP(
                task.num_features,
                task.num_classes,
                num_layers=self.num_layers,
                hidden_channels=self.hidden,
                dropout=self.dropout,
            )
        )


class _Perceptron(Program):
    def __init__(self, network: MLP) -> None:
        super().__init__()
        self.network = network

    @property
    def is_random(self) -> bool:
        return self.network.dropout > 0

    def forward(self, task: Task) -> Tensor:
        logits: Tensor = self.network(task.x)
        return logits
