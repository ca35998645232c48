"""What trials work on, and what they leave: small tables, a small project, and the parts of results that must agree."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

SIZE = 60
ROLES = ("--id", "name", "--label", "hired", "--sensitive", "sex")
TABLES = ("--nodes", "people.csv", "--edges", "friends.csv", *ROLES)
_PROJECT = """
name = "people"
[data]
nodes = "people.csv"
edges = "friends.csv"
id = "name"
label = "hired"
[groups]
sensitive = "sex"
[choice]
fairness = {fairness}
[tuning]
budget = {budget}
epochs = {epochs}
[training]
seeds = 1
"""
# Times, and what depends on them, on the place of a trial, or on how the work was divided.
_UNSTEADY = (
    "seconds",
    "modified",
    "path",
    "sha256",
    "made",
    "started",
    "environment",
    "seconds_per_epoch",
    "timestamp",
    "trained_together",  # how many runs were one population, which depends on what was left to do
)


def write_tables(folder: Path) -> None:
    """Write people and their friends, the same every time."""
    random = Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["name,age,shoe,town,sex,hired"]
    for i in range(SIZE):
        age, town = random.randint(20, 60), random.choice(("north", "south"))
        sex, hired = "mf"[i % 2], "yes" if random.random() < 0.3 + 0.4 * (age > 40) else "no"
        rows.append(f"p{i},{age},{36 + 5 * (i % 2) + random.randint(0, 3)},{town},{sex},{hired}")
    pairs = {(i, (i + random.randint(1, 20)) % SIZE) for i in range(SIZE) for _ in range(3)}
    edges = ["one,other", *(f"p{a},p{b}" for a, b in sorted(pairs))]
    (folder / "people.csv").write_text("\n".join(rows) + "\n")
    (folder / "friends.csv").write_text("\n".join(edges) + "\n")


def write_project(folder: Path, *, fairness: float = 0.5, budget: int = 2, epochs: int = 4) -> Path:
    write_tables(folder)
    path = folder / "fairpass.toml"
    path.write_text(_PROJECT.format(fairness=fairness, budget=budget, epochs=epochs))
    return path


def steady(value: Any) -> Any:
    """Return JSON without what differs between two equal runs, such as times; lists of runs in a fixed order."""
    if isinstance(value, dict):
        return {key: steady(each) for key, each in value.items() if key not in _UNSTEADY}
    if isinstance(value, list):
        plain = [steady(each) for each in value]
        return sorted(plain, key=_run) if all(isinstance(each, dict) and "seed" in each for each in plain) else plain
    return value


def _run(record: dict[str, Any]) -> tuple[str, str]:
    return str(record.get("method")), str(record["seed"])


def results(folder: Path, patterns: Iterable[str]) -> dict[str, Any]:
    """Return the content of files by their names: JSON as it is compared, other files by their digests."""
    found: dict[str, Any] = {}
    for path in sorted(each for pattern in patterns for each in folder.glob(pattern) if each.is_file()):
        name = str(path.relative_to(folder))
        if path.suffix == ".json":
            found[name] = steady(json.loads(path.read_text()))
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """Return where two results differ, in a few lines."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = sorted({*expected, *found}, key=str)
        lines = [differences(expected.get(key), found.get(key), f"{where}/{key}") for key in keys]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        lines = [differences(a, b, f"{where}[{i}]") for i, (a, b) in enumerate(zip(expected, found, strict=True))]
    else:
        same = expected == found or (expected != expected and found != found)  # nan
        return [] if same else [f"{where}: {str(expected)[:200]} became {str(found)[:200]}"]
    return [line for each in lines for line in each][:10]


def leftovers(folder: Path) -> list[str]:
    """Return temporary files, which nothing may leave after a success."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if is_temporary(path))


def is_temporary(path: Path) -> bool:
    return path.name.endswith((".tmp", ".lock", "-journal", "-wal")) or path.name == ".lock"
