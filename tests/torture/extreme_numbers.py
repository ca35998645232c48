"""Extreme numbers for every parameter and option: refused in a sentence, or a finished run; no hang."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tests.torture.hostile import unclear
from tests.torture.materials import ROLES, SIZE, TABLES, write_project
from tests.torture.reporting import Report, Setting
from tests.trial import run

NUMBERS = (
    *("0", "-0.0", "-1", "1", "2", "0.5", "-1e-9", "1e-9", "1e-300", "5e-324", "1e-45", "1e38", "3.5e38", "1e300"),
    *("1e308", "1e309", "inf", "-inf", "nan", str(2**31), str(2**63), str(2**70), str(10**20), "1" + "0" * 400),
    *("1000000", "1000000000", "3.0", "1e5", "", "x", "none", "١", "1,5", "0x10"),
)
OPTIONS = {
    "train": ("--seed", "--epochs", "--learning-rate", "--weight-decay", "--patience", "--threshold", "--split-seed"),
    "compare": ("--seeds", "--jobs", "--epochs", "--learning-rate", "--patience"),
    "tune": ("--seeds", "--trials", "--budget", "--jobs", "--epochs"),
    "partition": ("--parts", "--memory", "--max-levels", "--split-seed"),
    "run": ("--fairness", "--max-dp", "--max-eo", "--min-impact-ratio", "--confidence", "--budget", "--epochs"),
    "evaluate": ("--bootstrap", "--max-levels", "--split-seed", "--similarity"),
    "check": ("--max-dp", "--max-eo", "--min-impact-ratio", "--confidence", "--split-seed"),
    "audit": ("--max-levels", "--split-seed", "--similarity"),
}
# Keys of the settings file, by their sections.
KEYS = {
    "choice": ("fairness", "max_dp", "max_eo", "min_impact_ratio", "confidence"),
    "tuning": ("budget", "epochs", "seeds"),
    "training": ("seeds",),
    "features": ("max_levels",),
    "groups": ("min_size", "bins"),
    "split": ("seed", "fractions"),
    "report": ("min_group",),
}
# Enormous but allowed work: it is cut short by a limit of its own, and not part of this.
_WORK = ("epochs", "--epochs", "--trials", "--budget", "--seeds", "--jobs")
_MOST_WORK = 1000


def trial(setting: Setting) -> Report:
    report, random, folder = Report(), setting.random, setting.folder
    write_project(folder, budget=1, epochs=1)
    number = random.choice(NUMBERS)
    drawn = random.random()
    if drawn < 0.2:
        command = _settings(folder, random, number)
    elif drawn < 0.35:
        command = _column(folder, random, number)
    elif drawn < 0.7:
        method, name = random.choice(parameters())
        if name in _WORK and _is_work(number):
            number = "0"
        command = ["train", *TABLES, "--method", method, "--epochs", "2", "--set", f"{name}={number}", "--out", "o"]
    else:
        kind = random.choice(list(OPTIONS))
        option = random.choice(OPTIONS[kind])
        if option in _WORK and _is_work(number):
            number = "-1"
        if kind in ("evaluate", "check"):
            report.add(run(["train", *TABLES, "--epochs", "1", "--method", "gcn", "--out", "o"], folder))
        command = [*_base(kind, option), option, number]
    report.add(run(command, folder))
    report.counts["numbers"] += 1
    for outcome in report.outcomes:
        report.faults += unclear(outcome)
    return report


def _base(kind: str, option: str) -> list[str]:
    few = [] if option == "--epochs" else ["--epochs", "1"]
    once = [] if option == "--seeds" else ["--seeds", "1"]
    if kind == "train":
        return ["train", *TABLES, *few]
    if kind == "compare":
        return ["compare", *TABLES, "--methods", "gcn", *few, *once, "--out", "R.json"]
    if kind == "tune":
        trials = [] if option in ("--trials", "--budget") else ["--trials", "1"]
        return ["tune", *TABLES, "--method", "gcn", *few, *once, *trials, "--out", "t"]
    if kind == "partition":
        parts = [] if option == "--parts" else ["--parts", "2"]
        return ["partition", "people.csv", "friends.csv", *ROLES, *parts, "--out", "parts"]
    if kind in ("evaluate", "check"):
        limits = ["--max-dp", "0.9"] if kind == "check" and option != "--max-dp" else []
        return [kind, "o/model.safetensors", *TABLES, *limits]
    return ["audit", *TABLES] if kind == "audit" else ["run", "fairpass.toml"]


def _settings(folder: Path, random: Random, number: str) -> list[str]:
    """Give an extreme number to a key of the settings file."""
    section = random.choice(list(KEYS))
    key = random.choice(KEYS[section])
    number = "0" if section in ("tuning", "training") and _is_work(number) else number
    value = random.choice((number or '""', f'"{number}"', f"[{number}]"))
    path = folder / "fairpass.toml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(f"{key} =")]
    if f"[{section}]" not in lines:
        lines.append(f"[{section}]")
    lines.insert(lines.index(f"[{section}]") + 1, f"{key} = {value}")
    path.write_text("\n".join(lines))
    return ["run", "fairpass.toml"]


def _column(folder: Path, random: Random, number: str) -> list[str]:
    """Put an extreme number into one cell of a column, into every other one, or into all."""
    path, every = folder / "people.csv", random.choice((SIZE, 2, 1))
    header, *rows = (line.split(",") for line in path.read_text().splitlines())
    changed = [[row[0], number if i % every == 0 else row[1], *row[2:]] for i, row in enumerate(rows)]
    path.write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in (header, *changed)))
    scale = random.choice((["--missing", "mean"], ["--missing", "indicator"], []))
    return ["train", *TABLES, *scale, "--method", random.choice(("gcn", "gmmd")), "--epochs", "2", "--out", "o"]


def _is_work(number: str) -> bool:
    """Return whether a number of things to do would keep a command busy for long, as it should."""
    try:
        return float(number) > _MOST_WORK
    except ValueError:
        return False


@cache
def parameters() -> tuple[tuple[str, str], ...]:
    """Return every method with every parameter that is, or may be, a number."""
    return tuple(_numeric())


def _numeric() -> Iterator[tuple[str, str]]:
    from fairpass.methods import method, names
    from fairpass.parameters import alternatives

    for name in names():
        for each in method(name).declared.values():
            kinds: tuple[Any, ...] = alternatives(each.hint)
            if each.name != "training" and (int in kinds or float in kinds):
                yield name, each.name
