"""How long tables of 200,000 people with 20 columns and 2 million edges take, in seconds of processor time."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.result import Cell, Result, Table

# What the same took in version 0.1, as it was reported then.
OF_0_1 = {"init": 61.0, "from_tables, CSV": 8.8, "from_tables, Parquet": 4.5, "describe": 5.5}
ROUNDS = 3

_READ = """
import sys, time
from fairpass.datasets import describe, from_tables_arrays
import pandas, pyarrow.csv, pyarrow.parquet, scipy.sparse
start = time.process_time()
graph = from_tables_arrays(*sys.argv[1:3], id="person", label="hired", sensitive="sex")
middle = time.process_time()
describe(graph)
print(middle - start, time.process_time() - middle)
"""
_INIT = """
import contextlib, io, sys, time
from fairpass.cli.app import app
import pandas, pyarrow.csv, pyarrow.parquet, sklearn.linear_model
start = time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    app(["init", *sys.argv[1:3], "--out", sys.argv[3], "--force"], standalone_mode=False)
print(time.process_time() - start)
"""


def run(quick: bool) -> Result:
    people, friends = (20_000, 200_000) if quick else (200_000, 2_000_000)
    found: dict[str, list[float]] = {name: [] for name in OF_0_1}
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        write_tables(folder, people, friends)
        for _ in range(1 if quick else ROUNDS):
            for kind, ending in {"CSV": "csv", "Parquet": "parquet"}.items():
                read, described = _seconds(_READ, folder / f"people.{ending}", folder / f"friends.{ending}")
                found[f"from_tables, {kind}"].append(read)
                found["describe"].append(described)
            tables = folder / "people.csv", folder / "friends.csv"
            found["init"] += _seconds(_INIT, *tables, folder / "fairpass.toml")
    rows: list[dict[str, Cell]] = [
        {
            "what": name,
            "processor s": min(taken),
            "version 0.1": OF_0_1[name],
            "times as fast": OF_0_1[name] / min(taken),
        }
        for name, taken in found.items()
    ]
    return Result("tables", [Table(f"{people:,} people with 20 columns, {friends:,} edges: least of {ROUNDS}", rows)])


def write_tables(folder: Path, people: int, friends: int) -> None:
    """Write both tables as CSV and as Parquet: 16 columns of numbers, a category, ids, groups and labels."""
    generator = np.random.default_rng(0)
    names = np.array([f"p{number:07d}" for number in range(people)])
    sex = generator.choice(["female", "male"], people)
    nodes = pd.DataFrame(
        {
            "person": names,
            **{f"measure_{k}": generator.normal(size=people).round(4) for k in range(12)},
            **{f"count_{k}": generator.integers(0, 100, people) for k in range(4)},
            "region": generator.choice(["north", "south", "east", "west"], people),
            "sex": sex,
            "hired": np.where(generator.random(people) < 0.4 + 0.1 * (sex == "male"), "yes", "no"),
        }
    )
    edges = pd.DataFrame({end: names[generator.integers(0, people, friends)] for end in ("source", "target")})
    for name, table in {"people": nodes, "friends": edges}.items():
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet")


def _seconds(script: str, *arguments: Path) -> list[float]:
    """Return what a script prints, in a process of its own: what others imported or freed does not count."""
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]
