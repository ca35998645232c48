from pathlib import Path

import numpy as np
import pandas as pd
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
def with_people(german: Data, models: Models) -> Evidence:
    return collect(german, models, title="With people", include_people=True)


@pytest.fixture(scope="session")
def page(evidence: Evidence, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([evidence], tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(scope="session")
def people_page(with_people: Evidence, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([with_people], tmp_path_factory.mktemp("people") / "report.html", include_people=True)


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


@pytest.fixture(scope="session")
def hiring() -> Data:
    """Two attributes, of which one value is rare: some intersections have few test nodes; ids that are easy to find."""
    generator = np.random.default_rng(0)
    n = 900
    sex = generator.choice(["female", "male"], n)
    race = generator.choice(["white", "black", "asian"], n, p=[0.7, 0.25, 0.05])
    skill = generator.normal(size=n) + 0.8 * (sex == "male")
    outcome = np.where(skill + generator.normal(size=n) > 0.4, "invited", "declined")
    ids = [f"PERSON-{number:04d}" for number in range(n)]
    known = pd.Series(race).where(generator.random(n) > 0.06)
    columns = {"id": ids, "sex": sex, "race": known, "skill": skill}
    edges = pd.DataFrame(generator.choice(ids, (2 * n, 2)), columns=["source", "target"])
    return fairpass.from_tables(
        pd.DataFrame({**columns, "outcome": outcome}),
        edges,
        label="outcome",
        positive="invited",
        sensitive=["sex", "race"],
        id="id",
        missing_sensitive="unknown",
        fractions=(0.4, 0.4, 0.2),
        seed=1,
    )


@pytest.fixture(scope="session")
def hiring_evidence(hiring: Data) -> Evidence:
    fitted = {name: [kind(training=TRAINING).fit(hiring)] for name, kind in (("gcn", GCN), ("gmmd", GMMD))}
    return collect(hiring, fitted, title="Hiring")
