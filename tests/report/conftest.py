from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import fairpass
from fairpass.methods import GCN, GMMD, Constant, NodeClassifier
from fairpass.report import Evidence, collect, write_report
from fairpass.training import Training

TRAINING = Training(epochs=15)

Models = dict[str, list[NodeClassifier]]


@pytest.fixture(scope="session")
def german() -> Data:
    return fairpass.load("german")


@pytest.fixture(scope="session")
def models(german: Data) -> Models:
    """A few epochs of two methods; the threshold of one is chosen on validation, and so not a round number."""
    chosen = TRAINING.but(select="last", threshold="balanced_accuracy")
    return {
        "constant": [Constant().fit(german)],
        "gcn": [GCN(training=chosen).fit(german)],
        "gmmd": [GMMD(training=TRAINING.but(select="last", seed=seed)).fit(german) for seed in (0, 1)],
    }


@pytest.fixture(scope="session")
def evidence(german: Data, models: Models) -> Evidence:
    return collect(german, models, title="German credit", question="Men and women alike?", choice="By hand.")


@pytest.fixture(scope="session")
def page(evidence: Evidence, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([evidence], tmp_path_factory.mktemp("report") / "report.html")


NASTY_LABELS = ["<script>alert(1)</script>", "b & b", "c'\"</script>"]
NASTY_GROUPS = ["<img src=x onerror=alert(2)>", "y" * 40, "z"]


@pytest.fixture(scope="session")
def hard_graph() -> Data:
    """Three groups and three labels with names that want to be code; some nodes without label or group."""
    data = fairpass.synthetic(400, num_groups=3, group_fraction=0.3, seed=1)
    generator = torch.Generator().manual_seed(0)
    y, sens = data.y.clone(), data.sens.clone()
    y[torch.rand(400, generator=generator) < 0.33] = 2
    y[torch.rand(400, generator=generator) < 0.1] = -1
    sens[torch.rand(400, generator=generator) < 0.1] = -1
    data.y, data.sens, data.label_names, data.group_names = y, sens, NASTY_LABELS, NASTY_GROUPS
    return data


@pytest.fixture(scope="session")
def hard_evidence(hard_graph: Data) -> Evidence:
    fitted = {name: [kind(training=TRAINING).fit(hard_graph)] for name, kind in (("<b>gcn</b>", GCN), ("gmmd", GMMD))}
    return collect(hard_graph, fitted, title="</title><script>alert(3)</script>", question="<i>?</i>")
