"""A PyTorch Geometric model of your own, with fair message passing as its last layer.

    python examples/pyg_layer.py

The model is an ordinary `torch.nn.Module` and so is its training loop. `GMMDPropagation` is used like any layer of
PyG; in addition to features and edges it takes the groups. Nothing else changes.
"""

import os

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

import fairpass

EPOCHS = int(os.environ.get("EPOCHS", "100"))


class Classifier(nn.Module):
    """GraphSAGE, and above it fair message passing on the logits."""

    def __init__(self, features: int, hidden: int, classes: int, fair_steps: int) -> None:
        super().__init__()
        self.conv = SAGEConv(features, hidden)
        self.head = nn.Linear(hidden, classes)
        self.propagate = fairpass.GMMDPropagation(K=2, weight=1000, fair_steps=fair_steps)

    def forward(self, data: Data) -> Tensor:
        """Return the logits of all nodes."""
        logits = self.head(self.conv(data.x, data.edge_index).relu())
        return self.propagate(logits, data.edge_index, data.sens)


def train(model: nn.Module, data: Data) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=0.01)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        logits = model(data)
        cross_entropy(logits[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model: nn.Module, data: Data) -> fairpass.Evaluation:
    scores = model.eval()(data).softmax(-1)[:, 1]
    test = data.test_mask
    return fairpass.evaluate(data.y[test], scores[test], sens=data.sens[test])


def main() -> None:
    data = fairpass.load("german")
    for title, fair_steps in (("without fairness", 0), ("with fairness", 8)):
        torch.manual_seed(0)
        model = Classifier(data.num_features, 16, 2, fair_steps)
        train(model, data)
        found = evaluate(model, data)
        print(f"{title:16}  AUC {100 * found.auc:.1f}  ACC {100 * found.acc:.1f}  DP {100 * found.delta_dp:.1f}")


if __name__ == "__main__":
    main()
