"""Hostile tables, names and options: no traceback, nothing outside the directory, nothing that acts when shown."""

import csv
import io
import json
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
from tests.torture.materials import ROLES, TABLES, write_project
from tests.torture.reporting import Report, Setting
from tests.trial import Outcome, run

TEXTS = (
    *("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1,2)", "\t=1", '=HYPERLINK("http://x","y")'),
    *(
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "\x9b31m",
        "\x07",
        "\x08\x08",
        "\r\nx",
        "a\nb",
        "a\r=1",
        "\x00",
        "a\x00b",
    ),
    *(
        "a{b}",
        "{0}",
        "{{",
        "}",
        "%s%n",
        "%(x)s",
        "[red]x[/red]",
        "[/]",
        "[link=x]",
        ":smile:",
        "$HOME",
        "`id`",
        "$(id)",
    ),
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script>", "javascript:alert(1)", "&lt;", "]]>"),
    *('"', "'", '""', "\\", "\\n", "\\u0000", ",", ";", "a,b", 'a"b', "#", "//", "/*", "--", "'; DROP TABLE x; --"),
    *("..", ".", "../x", "/etc/passwd", "~", "con", "nul", "a/b", "a\\b", " ", "", "  a  ", "-", "--out", "-h"),
    *(
        "x" * 300,
        "x" * 70_000,
        "é",
        "ﷺ",
        "\u202eabc",
        "\u200b",
        "\ufeff",
        "a\u200fb",
        "\u061c",
        "\U000e0041",
        "\U0001f4a9",
        "e\u0301",
        "İ",
        "ß",
        "\u2028",
    ),
    *("1e300", "-1e300", "1e400", "NaN", "nan", "inf", "-inf", "Infinity", "1" + "0" * 400, "0x10", "1_000", "1e-320"),
    *("None", "null", "NA", "true", "True", "2020-01-01", "1,5", "1.234.567", "१२", "-0", "007", "1e5", "½"),
    *("hex", "zip", "rot13", "utf-16", ",,", "gcn,,gcn"),
)
# What JSON lines and Parquet have, and CSV has not; a Parquet file has values of one type in a column.
VALUES: dict[str, tuple[Any, ...]] = {
    "lists": (["a"], [], [["a", "b"], None], ["x" * 70_000]),
    "records": ({"a": 1}, {"a": None}),
    "bytes": (b"a", b"\xff\x00", b""),
    "integers": (10**400, -(10**400), 10**308, 10**30, 2**63, -(2**63) - 1),
    "dates": (date(9999, 12, 31), date(2262, 4, 12), date(1, 1, 1), date(1600, 2, 29)),
    "truth": (True, False),
}
COLUMNS = ("name", "age", "shoe", "town", "sex", "hired")
LENIENT = ("--missing", "mean", "--missing-sensitive", "unknown", "--dangling", "drop")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def trial(setting: Setting) -> Report:
    """Write hostile tables, and use them as a user would; or give hostile names to commands."""
    kind = setting.random.choice((tables, tables, typed, typed, names, settings, shapes))
    before = _outside(setting)
    report = kind(setting)
    report.counts[kind.__name__] += 1
    report.faults += [f"something was written outside: {each}" for each in sorted(_outside(setting) - before)]
    report.faults += [f"{file.name} has a formula: {cell!r}" for file, cell in formulas(setting.folder)]
    report.faults += [fault for outcome in report.outcomes for fault in unclear(outcome)]
    return report


def tables(setting: Setting) -> Report:
    """Some cells, or names of columns, are hostile."""
    report, random, folder = Report(), setting.random, setting.folder
    write_project(folder)
    rows = [line.split(",") for line in (folder / "people.csv").read_text().splitlines()]
    column = random.randrange(len(COLUMNS))
    words = random.choices(TEXTS, k=random.randint(1, 3))
    renamed: dict[str, str] = {}
    if random.random() < 0.2:
        rows[0][column] = words[0]
    elif COLUMNS[column] == "name":
        for i in random.sample(range(1, len(rows)), 3):
            renamed[rows[i][0]] = f"{random.choice(words)}{random.choice(('', i))}"
            rows[i][0] = renamed[rows[i][0]]
    elif COLUMNS[column] in ("sex", "hired"):  # all cells with one value, so that it is a group of some size
        value = rows[1][column]
        rows = [[*row[:column], words[0] if row[column] == value else row[column], *row[column + 1 :]] for row in rows]
    else:
        for i in random.sample(range(1, len(rows)), random.choice((1, 5, 50))):
            rows[i][column] = random.choice(words)
    edges = [line.split(",") for line in (folder / "friends.csv").read_text().splitlines()]
    edges = [[renamed.get(each, each) for each in row] for row in edges]
    _write(folder / "people.csv", rows)
    _write(folder / "friends.csv", edges)
    roles = dict(zip(COLUMNS, rows[0], strict=True))
    asked = ["--id", roles["name"], "--label", roles["hired"], "--sensitive", roles["sex"]]
    given = ["--nodes", "people.csv", "--edges", "friends.csv", *asked, *random.choice(([], LENIENT))]
    report.add(run(["init", "people.csv", "friends.csv", "--out", "new.toml"], folder))
    if random.random() < 0.5:
        report.add(run(["audit", *given], folder))
    trained = report.add(run(["train", *given, "--epochs", "1", "--method", "gcn", "--out", "o"], folder))
    if trained.code == 0:
        model = "o/model.safetensors"
        report.add(run(["predict", model, *given, "--out", "predictions.csv"], folder))
    if random.random() < 0.3:
        (folder / "fairpass.toml").write_text(_toml(roles, random))
        report.add(run(["run", "fairpass.toml"], folder))
    return report


def typed(setting: Setting) -> Report:
    """Some cells of JSON lines or a Parquet file have values that no CSV file has."""
    report, random, folder = Report(), setting.random, setting.folder
    write_project(folder)
    kind, ending = random.choice(list(VALUES)), random.choice(("jsonl", "parquet"))
    sources = {name: pd.read_csv(folder / f"{name}.csv").astype(object) for name in ("people", "friends")}
    for name, table in sources.items():
        column = random.choice((*table.columns, "more", None))
        if column is not None and (name == "people" or random.random() < 0.3):
            given = table[column].tolist() if column in table else [None] * len(table)
            rows = {*random.sample(range(len(table)), random.choice((1, 5, len(table))))}
            table[column] = [random.choice(VALUES[kind]) if i in rows else cell for i, cell in enumerate(given)]
        _write_typed(table, folder / f"{name}.{ending}", sole=random.choice((True, False)))
    nodes, edges = f"people.{ending}", f"friends.{ending}"
    left_out = ["--drop", "more"] if "more" in sources["people"] and random.random() < 0.5 else []
    given = ["--nodes", nodes, "--edges", edges, *ROLES, *left_out, *random.choice(([], LENIENT))]
    report.add(run(["init", nodes, edges, "--out", "new.toml"], folder))
    audited = report.add(run(["audit", *given], folder))
    trained = report.add(run(["train", *given, "--epochs", "1", "--method", "gcn", "--out", "o"], folder))
    if trained.code == 0:
        report.add(run(["predict", "o/model.safetensors", *given, "--out", "predictions.csv"], folder))
    parts = report.add(run(["partition", nodes, edges, *given[4:], "--parts", "2", "--out", "parts"], folder))
    if ending == "parquet" and (parts.code == 0) != (audited.code == 0):
        report.faults.append(f"'audit' ends with {audited.code}, but 'partition' with {parts.code}")
    return report


def _write_typed(table: pd.DataFrame, path: Path, *, sole: bool) -> None:
    """Write a table; columns that Parquet cannot have are text there, or, if there shall be a `sole` type, empty."""
    if path.suffix == ".jsonl":
        rows = [
            {name: None if pd.isna(cell) is True else cell for name, cell in row.items()}
            for row in table.to_dict("records")
        ]
        path.write_text("".join(f"{json.dumps(row, default=str)}\n" for row in rows))
        return
    for name in table.columns:
        kinds = {type(cell) for cell in table[name].dropna()} - {str}
        if sole and kinds and len(kinds | {str}) > 1:
            table[name] = table[name].where(table[name].map(lambda cell, kinds=kinds: type(cell) in kinds), None)
        try:
            pa.array(table[name], from_pandas=True)
        except (pa.ArrowException, OverflowError):
            table[name] = table[name].map(str, na_action="ignore")
    table.to_parquet(path)


def names(setting: Setting) -> Report:
    """Options have hostile values."""
    report, random, folder = Report(), setting.random, setting.folder / "inside"
    write_project(folder)
    text = random.choice([each for each in TEXTS if "\x00" not in each])  # no system passes that on
    inside = text if not _leaves(text) else "plain"
    parts = ["partition", "people.csv", "friends.csv", *ROLES, "--parts", "2", "--out", "parts"]
    command = random.choice(
        (
            ["train", *TABLES, "--epochs", "1", "--method", "gcn", "--out", inside],
            ["compare", *TABLES, "--methods", "logistic", "--seeds", "1", "--epochs", "1", "--out", f"{inside}.json"],
            ["tune", *TABLES, "--method", "logistic", "--trials", "1", "--seeds", "1", "--out", inside],
            ["train", text],
            ["train", *TABLES, "--method", text],
            ["train", *TABLES, "--set", f"{text}=1"],
            ["train", *TABLES, "--set", f"hidden={text}"],
            ["train", *TABLES, "--drop", text, "--epochs", "1"],
            ["train", *TABLES, "--positive", text, "--epochs", "1"],
            ["compare", *TABLES, "--methods", text],
            ["run", text],
            ["run", "fairpass.toml", "--step", text],
            ["predict", text, *TABLES],
            ["audit", *TABLES, "--text-encoding", text],
            ["audit", *TABLES, "--separator", text],
            ["init", "people.csv", "friends.csv", "--encoding", text, "--out", "x.toml"],
            [*parts, "--text-encoding", text],
            ["attribute", "gmmd", *TABLES, "--encoders", text, "--splits", "2", "--seeds", "1", "--epochs", "1"],
            ["tune", *TABLES, "--method", "logistic", "--trials", "1", "--seeds", "1", "--against", text],
            ["init", text, "friends.csv", "--out", "x.toml"],
            ["partition", text, "friends.csv", "--parts", "2", "--out", "parts"],
            ["report", text],
            ["evaluate", text, *TABLES],
            ["check", text, *TABLES, "--max-dp", "0.1"],
            ["audit", *TABLES, "--sensitive", text],
            ["benchmark", text],
            ["reproduce", text],
            ["attribute", text],
            ["methods", text],
            ["datasets", text],
            ["datasets", "fetch", text],
            ["tune", *TABLES, "--method", "logistic", "--trials", "1", "--seeds", "1", "--strategy", text],
            [text],
        )
    )
    report.add(run(command, folder))
    return report


def settings(setting: Setting) -> Report:
    """A settings file has hostile values."""
    report, random, folder = Report(), setting.random, setting.folder / "inside"
    write_project(folder)
    roles = {name: name for name in COLUMNS}
    (folder / "fairpass.toml").write_text(_toml(roles, random, random.choice(TEXTS)))
    report.add(run(["run", "fairpass.toml", *random.choice(([], ["--step", "load"], ["--step", "audit"]))], folder))
    beside = {each.name for each in folder.iterdir()} - {"people.csv", "friends.csv", "fairpass.toml", "runs"}
    report.faults += [f"something was written beside 'runs': {each!r}" for each in sorted(beside)]
    return report


def shapes(setting: Setting) -> Report:
    """Tables of odd shapes: empty, without rows, with rows of different lengths, other encodings, no text at all."""
    report, random, folder = Report(), setting.random, setting.folder
    write_project(folder)
    name = random.choice(("people.csv", "friends.csv"))
    content = (folder / name).read_bytes()
    lines = content.splitlines()
    changed: bytes = random.choice(
        (
            *(b"", b"\n", b"\n\n\n", lines[0], lines[0] + b"\n", b"\x00" * 100, b"\xff\xfe", b"\xef\xbb\xbf" + content),
            *(content + content, content + lines[1] + b"\n", content.replace(b",", b""), content.replace(b",", b";")),
            *(content.replace(b"\n", b"\r"), content.decode().encode("utf-16"), content[: len(content) // 2 + 1]),
            *(content + b"a,b,c,d,e,f,g,h,i\n", content + b'"unclosed\n', content + b"," * 5000 + b"\n"),
            *(
                b"\n".join([lines[0], *[lines[1]] * 50]),
                b"\n".join(lines[:3]),
                random.randbytes(2000),
                b"PAR1" + content,
            ),
            *(
                b"a," * 20_000 + b"\n",
                b"\n".join([lines[0] + b"," + lines[0], *(each + b"," + each for each in lines[1:])]),
            ),
        )
    )
    (folder / name).write_bytes(changed)
    report.add(run(["init", "people.csv", "friends.csv", "--out", "new.toml"], folder))
    report.add(run(["train", *TABLES, "--epochs", "1", "--method", "gcn", "--out", "o"], folder))
    if random.random() < 0.3:
        parts = ["--id", "name", "--label", "hired", "--sensitive", "sex", "--parts", "2", "--out", "parts"]
        report.add(run(["partition", "people.csv", "friends.csv", *parts], folder))
    return report


def _write(path: Path, rows: list[list[str]]) -> None:
    made = io.StringIO()
    csv.writer(made, lineterminator="\r\n").writerows(rows)  # so that both marks are quoted within a cell
    path.write_text(made.getvalue(), errors="surrogatepass")


def _toml(roles: dict[str, str], random: Random, text: str | None = None) -> str:
    values: dict[str, Any] = {"name": "people", "id": roles["name"], "label": roles["hired"], "sensitive": roles["sex"]}
    if text is not None:
        values[random.choice(list(values))] = text
    quoted = {name: json.dumps(value) for name, value in values.items()}
    data = f'nodes = "people.csv"\nedges = "friends.csv"\nid = {quoted["id"]}\nlabel = {quoted["label"]}\n'
    rest = "[tuning]\nbudget = 1\nepochs = 1\n[training]\nseeds = 1\n"
    return f"name = {quoted['name']}\n[data]\n{data}[groups]\nsensitive = {quoted['sensitive']}\n{rest}"


def _leaves(text: str) -> bool:
    """Return whether a path is meant to leave the directory: that is for the user to say."""
    return text.startswith(("/", "..", "~"))


def _outside(setting: Setting) -> set[str]:
    """Return the files beside the trial's own folder."""
    return {each.name for each in setting.folder.parent.iterdir() if each.name != f"{setting.folder.name}.logs"}


def formulas(folder: Path) -> list[tuple[Path, str]]:
    """Return cells of written CSV files that a spreadsheet would compute; numbers are none."""
    found = []
    for path in {*folder.rglob("*.csv")} - {folder / "people.csv", folder / "friends.csv"}:
        with path.open(newline="") as file:
            csv.field_size_limit(10**7)
            for row in csv.reader(file):
                found += [(path, cell) for cell in row if cell.startswith(FORMULA) and not _is_number(cell)]
    return found


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def unclear(outcome: Outcome) -> list[str]:
    """Return what is wrong with how a command was refused: an error is 1 or 2, and has a sentence of bounded length."""
    if outcome.code not in (0, 1, 2, 3, 4):  # 3 and 4: a limit is not kept
        return [] if outcome.code is None else [f"it ends with {outcome.code}"]
    if outcome.code in (1, 2) and not outcome.stderr.strip() and not outcome.stdout.strip():
        return [f"it ends with {outcome.code} and says nothing"]
    return []
