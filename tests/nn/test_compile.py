"""`torch.compile` of a model with the layer inside: the same numbers, and one place where the graph is left.

The layer chooses its kernel sums by what the data are like, which no compiler can know in advance. It therefore runs
as it is, between the compiled parts of the model around it. The tests use the backend "aot_eager", which traces forward
and backward as the default one does and generates no code; one with the default backend is run where there is a
C++ compiler.
"""

import shutil
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from fairpass.datasets import synthetic
from fairpass.nn import GMMDPropagation, GMMDSPropagation
from fairpass.nn.propagation import Graph

# Raised inside the compiler, by what it imports.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


class Model(nn.Module):
    def __init__(self, features: int, propagation: GMMDPropagation) -> None:
        super().__init__()
        self.first, self.second, self.propagation = nn.Linear(features, 8), nn.Linear(8, 2), propagation

    def forward(self, x: Tensor, graph: Graph, sens: Tensor) -> Tensor:
        logits: Tensor = self.propagation(self.second(self.first(x).relu()), graph, sens)
        return logits.log_softmax(-1)


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.fixture(scope="module")
def data() -> Data:
    return synthetic(200, num_features=5)


def gradients(model: nn.Module, run: Callable[..., Tensor], data: Data, graph: Graph) -> list[Tensor]:
    """Return output and gradients of one pass."""
    model.zero_grad()
    out = run(data.x, graph, data.sens)
    torch.autograd.backward(out.square().mean())
    return [out.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)]


@pytest.mark.parametrize("kind", [GMMDPropagation, GMMDSPropagation])
@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("step", ["stable", "paper"])
def test_compiled_model_does_the_same(data: Data, kind: type[GMMDPropagation], prepared: bool, step: str) -> None:
    propagation = kind.paper(lambda_f=10.0) if step == "paper" else kind(fair_steps=2)
    model = Model(5, propagation)
    graph: Graph = propagation.prepare(data.edge_index, 200) if prepared else data.edge_index
    compiled = torch.compile(model, backend="aot_eager")
    for expected, found in zip(
        gradients(model, model, data, graph), gradients(model, compiled, data, graph), strict=True
    ):
        assert torch.equal(expected, found)


def test_the_layer_is_the_only_thing_left_out(data: Data) -> None:
    model = Model(5, GMMDPropagation())
    explained = torch._dynamo.explain(model)(data.x, data.edge_index, data.sens)
    assert explained.graph_break_count == 1
    assert explained.graph_count == 2


def test_another_graph_and_many_steps_need_no_new_compilation(data: Data) -> None:
    model = Model(5, GMMDPropagation(fair_steps=1))
    compiled = torch.compile(model, backend="aot_eager", dynamic=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for _ in range(5):
            gradients(model, compiled, data, data.edge_index)
            optimizer.step()
        other = synthetic(150, num_features=5, seed=1)
        assert torch.equal(
            compiled(other.x, other.edge_index, other.sens), model(other.x, other.edge_index, other.sens)
        )


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="the default backend needs a C++ compiler")
def test_default_backend(data: Data) -> None:
    model = Model(5, GMMDPropagation(fair_steps=2))
    compiled = torch.compile(model)
    for expected, found in zip(
        gradients(model, model, data, data.edge_index), gradients(model, compiled, data, data.edge_index), strict=True
    ):
        assert torch.allclose(expected, found, atol=1e-5)
