"""FairINV: equal losses over environments that are inferred without any sensitive attribute."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fairpass.methods import networks
from fairpass.nn import GNN
from fairpass.nn.convolution import Backbone
from fairpass.parameters import LARGEST_RATE, Choice, LogUniform, parameter
from fairpass.training import Program, Task, Training
from fairpass.training.program import adam, cross_entropy

# One convolution and a linear layer, with nothing between them: one layer here.
_AUTHORS: dict[str, Any] = {
    "num_layers": 1,
    "dropout": 0.0,
    "partition_rate": 0.1,
    "reference_epochs": 500,
    "partition_epochs": 500,
}


class FairINV(networks.Published):
    r"""FairINV (Zhu et al. 2024, `arXiv:2406.13544 <https://arxiv.org/abs/2406.13544>`_).

    The groups are unknown. A reference model, the same network trained with cross-entropy, has logits :math:`z`. A
    second network divides the `n` training nodes into :math:`E` soft environments, so as to maximise how far the
    reference model is in each of them from the best scale of its logits:

    .. math::
        p = \mathrm{softmax}\big(\mathrm{linear}([\mathrm{GNN}(X, A), y])\big), \qquad
        \max_p\; \sum_{e=1}^{E} \Big(\frac1n \sum_i p_{ie}\, g_i\Big)^2, \qquad
        g_i = \frac{\partial\, \mathrm{CE}(w z_i, y_i)}{\partial w}\Big|_{w=1}
        = \sum_c \mathrm{softmax}(z_i)_c z_{ic} - z_{i y_i},

    with `g` shifted and scaled to mean 0 and variance 1 (see `standardised`). This is repeated with `T` new reference
    models, the number of `partitions`. Then the network is trained on the variance and the mean of the losses of all
    :math:`TE` environments,

    .. math::
        L = \frac1\alpha \mathrm{Var}_e(R_e) + \mathrm{Mean}_e(R_e), \qquad
        R_e = \frac{\sum_i p_{ie} \mathrm{CE}(z_i, y_i)}{\sum_i p_{ie}}.

    It is the paper's :math:`\mathrm{Var} + \alpha\, \mathrm{Mean}` divided by :math:`\alpha`, which changes nothing for
    Adam except how much the weight decay counts. So with one environment it is the plain network, bit by bit.
    Environments that hold less than one node are left out. More than two do not raise the penalty: the best partition
    parts the nodes by the sign of `g`, and further environments lose their nodes.
    """

    alpha: float = parameter(
        10.0, "weight of the mean loss against its variance", LogUniform(0.1, 100), Choice(0.1, 1.0, 10.0), above=0
    )
    environments: int = parameter(2, ":math:`E`, number of environments", at_least=1, limit=1000)
    partitions: int = parameter(3, "`T`, how often the nodes are divided into environments", at_least=1, limit=1000)
    partition_rate: float = parameter(
        0.01,
        "learning rate of the partition",
        LogUniform(0.01, 0.5),
        Choice(0.01, 0.1, 0.5),
        above=0,
        limit=LARGEST_RATE,
    )
    reference_epochs: int = parameter(
        200,
        "epochs of a reference model, trained with the same settings; at most as many as the training has",
        at_least=0,
    )
    partition_epochs: int = parameter(200, "steps of a partition; at most as many as the training has", at_least=0)
    backbone: Backbone = networks.backbone()
    num_layers: int = networks.num_layers()
    hidden: int = networks.hidden()
    dropout: float = networks.dropout()

    name = "fairinv"
    summary = "equal losses over environments that are inferred without any groups"
    takes_edge_weights = True
    stage = "in-processing"
    needs_groups = "never"
    switched_off: ClassVar[Mapping[str, Any]] = {"environments": 1}
    recommended_training = Training(epochs=1000, learning_rate=1e-2, weight_decay=1e-5)  # the authors'
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "german": _AUTHORS,
        "bail": _AUTHORS,
        "nba": {**_AUTHORS, "alpha": 1.0},
    }

    def build(self, task: Task) -> Program:
        return _Invariant(self._network(task), self)

    def _network(self, task: Task) -> GNN:
        return GNN(self.backbone, networks.widths(self, task), self.dropout)


class _Invariant(networks.Network):
    assignments: Tensor | None  # `p` of all partitions, `(n, TE)`

    def __init__(self, network: GNN, settings: FairINV) -> None:
        super().__init__(network)
        self.settings, self.rates = settings.with_params(), settings.learning_rates
        self.register_buffer("assignments", None)

    def prepare(self, task: Task, training: Training) -> None:
        # None of it takes more epochs than the training: the budget of a search is spent on those.
        if self.settings.environments == 1:
            return
        with _own_random_numbers():
            found = torch.cat([self._partition(task, training) for _ in range(self.settings.partitions)], 1)
        self.assignments = found[:, ~(found.sum(0) < 1)]  # nan, of a reference that diverged, stays to be noticed

    def _partition(self, task: Task, training: Training) -> Tensor:
        gradients = scale_gradients(_reference_logits(task, self.settings, training), task.train_labels)
        return learn_partition(task, standardised(gradients), self.settings, training)

    def loss(self, logits: Tensor, task: Task) -> Tensor:
        if self.assignments is None:
            return cross_entropy(logits, task)
        chosen = logits.index_select(0, task.train_nodes)
        losses = nn.functional.cross_entropy(chosen, task.train_labels, reduction="none")
        risks = losses @ self.assignments / self.assignments.sum(0)
        return risks.var(correction=0) / self.settings.alpha + risks.mean()


class Partition(nn.Module):
    """The network that divides the training nodes into environments."""

    def __init__(self, task: Task, settings: FairINV) -> None:
        super().__init__()
        width = settings.hidden
        self.encoder = GNN(settings.backbone, (task.num_features, *[width] * settings.num_layers), dropout=0.0)
        self.classifier = nn.Linear(width + task.num_classes, settings.environments)

    def forward(self, task: Task) -> Tensor:
        """Return the probability of each environment for each training node, `(n, E)`."""
        hidden = networks.encode(self.encoder, task.x, task).index_select(0, task.train_nodes)
        labels = nn.functional.one_hot(task.train_labels, task.num_classes).to(hidden)
        probabilities: Tensor = self.classifier(torch.cat([hidden, labels], 1)).softmax(1)
        return probabilities


def learn_partition(task: Task, gradients: Tensor, settings: FairINV, training: Training) -> Tensor:
    """Return soft environments of the training nodes, `(n, E)`, learnt to maximise the penalty."""
    network = Partition(task, settings).to(task.device)
    optimizer = adam(network, training.but(learning_rate=settings.partition_rate))
    for _ in range(min(settings.partition_epochs, training.epochs)):
        optimizer.zero_grad()
        torch.autograd.backward(-invariance_penalty(network(task), gradients))
        optimizer.step()
    with torch.no_grad():
        found: Tensor = network(task)
    return found


def scale_gradients(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the derivative of each node's cross-entropy with respect to a factor of its logits, at 1: `(n,)`."""
    return (logits.softmax(1) * logits).sum(1) - logits.gather(1, labels[:, None])[:, 0]


def standardised(gradients: Tensor) -> Tensor:
    """Return the gradients with mean 0 and variance 1.

    A reference model at its best scale has mean 0. One that fits all its training nodes has gradients of one sign, and
    the penalty would be largest with all nodes in one environment. They are also tiny, less than the weight decay.
    """
    centred = gradients - gradients.mean()
    return centred / centred.square().mean().sqrt().clamp(min=torch.finfo(centred.dtype).tiny)


def invariance_penalty(assignments: Tensor, gradients: Tensor) -> Tensor:
    """Return the squared derivatives of the environments' losses with respect to the factor, summed."""
    return (gradients @ assignments / len(gradients)).square().sum()


def _reference_logits(task: Task, settings: FairINV, training: Training) -> Tensor:
    """Return the logits of a new reference model for the training nodes, `(n, C)`."""
    program = networks.Network(settings._network(task)).to(task.device)
    program.configure(training)
    for _ in range(min(settings.reference_epochs, training.epochs)):
        program.step(task)
    program.eval()
    with torch.no_grad():
        logits: Tensor = program(task)
    return logits.index_select(0, task.train_nodes)


@contextmanager
def _own_random_numbers() -> Iterator[None]:
    """Leave the random state as it was, so that the epochs draw the same numbers with and without a partition."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(torch.randint(2**62, ())))
        yield
