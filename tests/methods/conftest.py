import pytest
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data

from fairpass.training import Task


@pytest.fixture(scope="module")
def data() -> Data:
    return small_graph()


@pytest.fixture(scope="module")
def task(data: Data) -> Task:
    return Task(data)
