"""The kind of table that most items have: the five metrics of some methods, the paper's values beside ours."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from fairpass.experiments.findings import Finding
from fairpass.experiments.paper import Metrics
from fairpass.experiments.ranks import LOWER_IS_BETTER, METRICS, average_ranks
from fairpass.experiments.table import MISSING, PAPER, Entry, Table, emphasised, number, word
from fairpass.experiments.words import METRIC_NAMES, seeds_in_words

NEAR_CONSTANT = "†"
BALANCED = "balanced_accuracy"


@dataclass(frozen=True)
class MetricRow:
    """A row before it is put into words.

    Attributes:
        words: the first entries.
        finding: what was found; None if it was not run.
        paper: the paper's values.
        group: rows are compared with those of the same group.
        is_ranked: whether it takes part in the comparison.
    """

    words: tuple[str, ...]
    finding: Finding | None
    paper: Metrics | None = None
    group: str = ""
    is_ranked: bool = True


def metric_table(
    name: str, title: str, columns: tuple[str, ...], rows: Sequence[MetricRow], notes: Sequence[str] = ()
) -> Table:
    """Return a table of the five metrics, the balanced accuracy and the average rank on these rows."""
    with_paper = any(row.paper for row in rows)
    names, parts = list(columns), [[tuple(map(word, _words(row))) for row in rows]]
    for metric in METRICS:
        names.append(_arrow(metric))
        parts.append([(entry,) for entry in _column(rows, metric)])
        if with_paper:
            names.append(f"{METRIC_NAMES[metric]}{PAPER}")
            parts.append([(number(row.paper[metric][0] if row.paper else None),) for row in rows])
    names += [_arrow(BALANCED), "rank"]
    parts += [[(entry,) for entry in _column(rows, BALANCED)], [(entry,) for entry in _ranks(rows)]]
    found = [row.finding for row in rows if row.finding is not None and row.is_ranked]
    return Table(
        name,
        title,
        tuple(names),
        tuple(tuple(chain.from_iterable(pieces)) for pieces in zip(*parts, strict=True)),
        (*_legend(found), *notes),
        words=len(columns),
    )


def _words(row: MetricRow) -> tuple[str, ...]:
    marked = row.finding is not None and row.is_ranked and row.finding.chosen.is_near_constant
    return (*row.words[:-1], row.words[-1] + (NEAR_CONSTANT if marked else ""))


def _arrow(metric: str) -> str:
    return f"{METRIC_NAMES[metric]} {'↓' if metric in LOWER_IS_BETTER else '↑'}"


def _column(rows: Sequence[MetricRow], metric: str) -> list[Entry]:
    entries = [
        number(None) if row.finding is None else number(row.finding.mean(metric), std=row.finding.std(metric))
        for row in rows
    ]
    for group in {row.group for row in rows}:
        taking_part = [row.is_ranked and row.group == group for row in rows]
        entries = emphasised(entries, lowest=metric in LOWER_IS_BETTER, ranked=taking_part)
    return entries


def _ranks(rows: Sequence[MetricRow]) -> list[Entry]:
    tables: dict[str, dict[str, dict[str, float]]] = {}
    for i, row in enumerate(rows):
        if row.finding is not None and row.is_ranked and not any(map(math.isnan, row.finding.means.values())):
            tables.setdefault(row.group, {})[str(i)] = row.finding.means
    ranks = {name: rank for table in tables.values() for name, rank in average_ranks([table]).items()}
    entries = [number(ranks.get(str(i))) for i in range(len(rows))]
    for group in tables:
        entries = emphasised(entries, lowest=True, ranked=[row.group == group for row in rows])
    return entries


def _legend(found: Sequence[Finding]) -> list[str]:
    if not found:
        return [f"{MISSING}: not run."]
    notes = [
        f"On the test nodes, in percent, over {seeds_in_words(found)}. Bold: the best; italics (underlined in LaTeX): "
        "the second best; BACC: balanced accuracy; rank: the average place over the other five metrics."
    ]
    if any(finding.chosen.is_near_constant for finding in found):
        notes.append(f"{NEAR_CONSTANT} near constant: most runs predict nearly the same for all nodes.")
    return notes
