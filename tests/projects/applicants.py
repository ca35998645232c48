"""Tables as people have them: text ids, gaps, three groups, a rare label, a node without edges."""

from pathlib import Path

import numpy as np
import pandas as pd

SIZE = 180

CONFIG = """
name = "applicants"

[data]
nodes = "applicants.csv"
edges = "acquaintances.csv"
id = "applicant"
source = "applicant"
target = "knows"
label = "decision"

[groups]
sensitive = ["ethnicity"]
missing = "unknown"

[features]
drop = ["remarks"]
missing = "indicator"

[choice]
fairness = 0.5

[tuning]
methods = ["gmmd"]
budget = 2
epochs = 4

[training]
seeds = 2
"""


def applicants() -> pd.DataFrame:
    """People who apply for a loan: approved, declined or, rarely, referred to somebody else."""
    generator = np.random.default_rng(3)
    group = np.arange(SIZE) % 3
    income = generator.normal(42 - 4 * group, 8).round(1)
    decision = np.where(income + generator.normal(0, 3, SIZE) > 38, "approved", "declined").astype(object)
    decision[:18] = "referred"
    table = pd.DataFrame(
        {
            "applicant": [f"A-{i:03d}" for i in range(SIZE)],
            "income": income,
            "district": generator.choice(["north", "south", "west"], SIZE),
            "remarks": [f"note {i}" for i in range(SIZE)],
            "ethnicity": np.array(["Arda", "Belu", "Coro"], dtype=object)[group],
            "decision": decision,
        }
    )
    table.loc[[30, 60, 90], "income"] = np.nan
    table.loc[[31, 61], "ethnicity"] = None
    table.loc[[32, 62, 92], "decision"] = None
    return table


def acquaintances() -> pd.DataFrame:
    """Who knows whom; the last applicant knows nobody."""
    generator = np.random.default_rng(4)
    ends = generator.integers(0, SIZE - 1, (2, 400))
    return pd.DataFrame({"applicant": [f"A-{i:03d}" for i in ends[0]], "knows": [f"A-{i:03d}" for i in ends[1]]})


def write_project(folder: Path, config: str = CONFIG) -> Path:
    """Write the tables and a quick configuration, and return the path of the latter."""
    applicants().to_csv(folder / "applicants.csv", index=False)
    acquaintances().to_csv(folder / "acquaintances.csv", index=False)
    path = folder / "fairpass.toml"
    path.write_text(config)
    return path
