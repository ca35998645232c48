"""Your own tables: from two CSV files to a fair model, its evaluation, a stored model and predictions.

    python examples/own_tables.py [DIRECTORY]

Without a directory, everything goes to a temporary one that is removed at the end.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import fairpass

EPOCHS = int(os.environ.get("EPOCHS", "100"))
PEOPLE = 600


def write_tables(directory: Path) -> tuple[Path, Path]:
    """Write the tables of an invented company: who was promoted, and who works with whom."""
    random = np.random.default_rng(7)
    site = random.choice(["north", "south", "east"], PEOPLE, p=[0.5, 0.35, 0.15])
    skill = random.normal(size=PEOPLE)
    favour = pd.Series(site).map({"north": 0.9, "south": -0.3, "east": -0.9}).to_numpy()
    people = pd.DataFrame(
        {
            "person": [f"p-{number:04}" for number in range(PEOPLE)],
            "site": site,
            "years": random.integers(0, 30, PEOPLE),
            "review": (3 + skill + random.normal(0, 0.5, PEOPLE)).round(1),
            "degree": random.choice(["none", "bachelor", "master"], PEOPLE),
            "commute": (20 + 15 * favour + random.normal(0, 8, PEOPLE)).round(),  # tells much about the site
            "promoted": np.where(skill + favour + random.normal(0, 0.7, PEOPLE) > 0, "yes", "no"),
        }
    )
    people.loc[random.choice(PEOPLE, 30, replace=False), "review"] = None  # was on leave
    people.loc[random.choice(PEOPLE, 60, replace=False), "promoted"] = None  # not decided yet
    # Most work with people of their own site.
    one, other = random.integers(PEOPLE, size=(2, 8000))
    together = (site[one] == site[other]) | (random.random(8000) < 0.15)
    pairs = pd.DataFrame({"person": people["person"][one].array, "colleague": people["person"][other].array})
    paths = directory / "people.csv", directory / "colleagues.csv"
    people.to_csv(paths[0], index=False)
    pairs[together].to_csv(paths[1], index=False)
    return paths


def main(directory: Path) -> None:
    nodes, edges = write_tables(directory)

    # 1. Tables become a graph. Wrong input is an error that says what and where.
    data = fairpass.from_tables(
        nodes, edges, id="person", label="promoted", positive="yes", sensitive="site", missing="indicator", seed=1
    )
    print(f"{data.num_nodes} people, {data.num_edges // 2} pairs of colleagues, groups {', '.join(data.group_names)}")
    for finding in fairpass.find_bias(fairpass.describe(data))[:3]:
        print(f"  {finding.severity}: {finding.sentence}")

    # 2. A plain and a fair model; the validation nodes choose epoch and threshold.
    training = fairpass.Training(epochs=EPOCHS, weight_decay=0.01, threshold="balanced_accuracy")
    models = [fairpass.GCN(training=training), fairpass.GMMD(fair_steps=8, weight=1000, training=training)]
    for model in models:
        found = model.fit(data).evaluate(data)
        widest = found.worst_pair["delta_dp"]
        print(
            f"{model.name:5}  accuracy {found.acc:.3f}  DP {found.delta_dp:.3f} between {widest.high} and {widest.low}"
        )

    # 3. The model in one file, and what it says of everybody, the undecided included.
    path = models[1].save(directory / "model.safetensors")
    model = fairpass.load_model(path)
    predictions = pd.DataFrame(
        {
            "person": data.node_ids,
            "score": model.predict_proba(data)[:, 1],
            "predicted": [data.label_names[label] for label in model.predict(data)],
            "site": [data.group_names[group] for group in data.sens],
            "was known": (data.y >= 0).numpy(),
        }
    )
    predictions.to_csv(directory / "predictions.csv", index=False)
    print(predictions[~predictions["was known"]].head(3).to_string(index=False))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
