"""A commented `fairpass.toml` from what was found in the tables: every choice explained, and there to be changed."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from fairpass.datasets.splits import PARTS
from fairpass.datasets.table_inspection import MAX_LEVELS, Inspection

_HEAD = """\
# What `fairpass run {file}` does. Written by `fairpass init`; guesses are marked, and all of it can be changed.
# A line that starts with # says something, or is a choice that was not made. Paths are relative to this file.

# What it is called: everything that is made goes into runs/{name}.
name = {name_text}
# What the audit is to find out, in your words: the report begins with it.
question = {question}
"""

_REST = """
[features]
# Every column without another role is a feature; numbers are scaled, texts become one column per value.
# These cannot be features, or should not be (what is known only after the decision, for example):
drop = {drop}
# Or name the only columns to use:
# use = []
# Missing values: "indicator" fills in the mean and adds a column that says where, "mean" only fills in,
# "drop" leaves such columns out, "error" refuses them.
missing = "indicator"
# "standard" (mean 0, variance 1), "minmax" (-1 to 1) or "none".
scale = "standard"
{split}
[choice]
# Fairness and accuracy are traded against each other; validation nodes choose among the settings tried.
# 0 is the most accurate, 1 the fairest, 0.5 in between. Also: fairpass run --fairness 0.8
fairness = 0.5
# Or the most accurate with a difference between groups of at most so much (DP: of the share that is predicted
# positive; EO: of the share of true positives that is found). With these, take the line above out.
# max_dp = 0.05
# max_eo = 0.05

[tuning]
# `fairpass methods` lists them; several share the budget.
methods = ["gmmd"]
# How long to try settings ("90s", "5m", "1h"), or a number of settings to try. A longer one later goes on from there.
budget = "5m"
# Each setting is trained for so many epochs, and so many times. More is slower, and less left to chance.
epochs = 100
seeds = 1
# What gmmd makes equal between groups: "dp", what is predicted for everybody; "eo", what is predicted for those whose
# label is the positive one; "odds", what is predicted for those of each label. Also: fairpass run --criterion eo
criterion = "dp"

[training]
# The chosen setting, and plain methods to compare it with, are trained so many times: means and deviations
# are over these. Logistic regression is always among them.
seeds = 3
reference = "gcn"

[predictions]
# "csv" or "parquet".
format = "csv"
"""


def template(
    found: Inspection,
    *,
    folder: str | os.PathLike[str] = ".",
    file: str = "fairpass.toml",
    text_encoding: str = "utf-8",
) -> str:
    """Return the text of a configuration file.

    Args:
        found: what `inspect_tables` found.
        folder: where the file will be; the paths of the tables are written relative to it.
        file: its name.
        text_encoding: of CSV files.
    """
    name = Path(found.nodes).stem
    label, sensitive = found.best("label"), found.best("sensitive")
    question = f"Are predictions of {label} alike for all groups of {sensitive}?" if label and sensitive else ""
    head = _HEAD.format(file=file, name=name, name_text=_text(name), question=_text(question))
    split = found.best("split")
    rest = _REST.format(drop=_text(found.unusable), split=_split(split))
    data = _data(found, Path(folder))
    if text_encoding != "utf-8":
        data.append(f"text_encoding = {_text(text_encoding)}")
    return "\n".join([head, *data, "", *_groups(found)]) + "\n" + rest


def _data(found: Inspection, folder: Path) -> list[str]:
    lines = ["[data]", f"nodes = {_text(_relative(found.nodes, folder))}  # {found.rows:,} rows"]
    if found.edges is not None:
        lines.append(f"edges = {_text(_relative(found.edges, folder))}  # {found.edge_rows:,} rows")
    else:
        lines += [
            "# There is no table of edges: nodes whose features are nearly as alike as nearest neighbours are joined.",
            '# The nearer to 1, the fewer edges. With a table of edges, take this out and write: edges = "edges.csv"',
            "similarity = 0.9",
        ]
    id = found.best("id")
    if id is not None:
        lines += [*_why(found, "id", "What edges refer to"), f"id = {_text(id)}"]
    else:
        lines += ["# Edges refer to nodes by row number, from 0. If a column has their ids:", '# id = "..."']
    if found.edges is not None:
        lines += ["# The two ends of an edge."]
        lines += [f"{role} = {_text(found.best(role))}" for role in ("source", "target") if found.best(role)]
    label = found.best("label")
    lines += ["", *_why(found, "label", "What is to be predicted; nodes without it stay in the graph, unlabelled")]
    if label is None:
        return [*lines, 'label = ""  # write here the column to predict']
    lines += [f"label = {_text(label)}"]
    content = found.column(label)
    if content.distinct == 2:
        lines += [
            f"# Which of its two values ({' or '.join(map(_text, content.examples))}) is the positive one, "
            "the one it is good or bad to get.",
            f"positive = {_text(max(content.examples))}",
        ]
    return lines


def _groups(found: Inspection) -> list[str]:
    sensitive = found.best("sensitive")
    lines = ["[groups]"]
    lines += _why(found, "sensitive", "The sensitive attribute. Several make intersections, such as female × black")
    if sensitive is None:
        lines += [
            "# No column has the name of a sensitive attribute.",
            'sensitive = ""  # write here whose groups to compare',
        ]
    else:
        lines += [f"sensitive = [{_text(sensitive)}]"]
    lines += [
        "# A number is cut into groups: so many of equal size, or at the numbers given.",
        "# For example: bins = { age = 3 } or bins = { age = [25, 60] }",
    ]
    if sensitive is not None and _is_continuous(found, sensitive):
        lines += [f"bins = {{ {_text(sensitive)} = 3 }}"]
    lines += [
        '# Groups with fewer labelled nodes than this are an "error", or together one group "other".',
        "min_size = 10",
        'small = "error"',
        '# A node without a sensitive value: "unknown" keeps it, in no group; "error" refuses it.',
        'missing = "unknown"',
        "# Whether the model may see the sensitive attribute itself.",
        "as_feature = false",
    ]
    return lines


def _split(column: str | None) -> str:
    parts = ", ".join(PARTS)
    if column is not None:
        return f"\n[split]\n# It says for each node which part it is in ({parts}).\ncolumn = {_text(column)}\n"
    return """
[split]
# Labelled nodes for training, validation and test, drawn at random so that labels and groups have their share in each.
fractions = [0.5, 0.25, 0.25]
seed = 0
# Or the column that says train, val or test:
# column = "..."
"""


def _why(found: Inspection, role: str, what: str) -> list[str]:
    """Return comments: what a role is, why this column was taken, and which others there are."""
    guesses = found.roles.get(role, ())
    lines = [f"# {what}."]
    if guesses:
        lines.append(f"# Why {guesses[0].column!r}: {guesses[0].reason}.")
    if guesses[1:]:
        lines.append(f"# Others: {', '.join(repr(guess.column) for guess in guesses[1:])}.")
    return lines


def _is_continuous(found: Inspection, column: str) -> bool:
    content = found.column(column)
    return content.kind == "number" and content.distinct > min(10, MAX_LEVELS)


def _relative(path: str, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return str(path)


def _text(value: str | Sequence[str] | None) -> str:
    """Return a value as TOML writes it; JSON's strings and lists of strings are TOML's, too."""
    return json.dumps(value, ensure_ascii=False)
