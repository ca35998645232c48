import pytest
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data


@pytest.fixture(scope="session")
def graph() -> Data:
    return small_graph()
