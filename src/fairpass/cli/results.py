"""Evaluations and comparisons as tables, with notes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from fairpass.cli import output
from fairpass.cli.output import Cells, bullets, rows, section, table

if TYPE_CHECKING:
    from fairpass.experiments.tables import Entry
    from fairpass.experiments.tables import Table as ResultTable
    from fairpass.metrics import Evaluation
    from fairpass.runs import Row, RunRecord

_SPLITS = {"train": "training", "val": "validation", "test": "test", "safety": "safety"}
_STYLES = {"": "", "best": "bold", "second": "italic"}
_VISIBLE = 0.0005  # smaller differences are 0.0 in percent with one decimal


def title_of(graph: Any) -> str:
    """Return the title of a benchmark, or the names of the tables."""
    provenance: Mapping[str, Any] = graph.provenance
    tables = [provenance[part]["source"] for part in ("nodes", "edges") if part in provenance]
    return str(provenance.get("title") or " and ".join(tables))


def percent(value: float) -> str:
    """Return a fraction in percent with one decimal, and a dash for nan."""
    return "-" if math.isnan(value) else f"{100 * value:.1f}"


def show_evaluation(
    title: str, evaluation: "Evaluation", split: str, counts: Sequence[int], label_names: Sequence[str]
) -> None:
    """Print the evaluation of a classifier on one split of a graph, which has so many nodes of each label."""
    from fairpass.metrics.detectable import detectable_by

    section(f"{title}, on {evaluation.n:,} {_SPLITS[split]} nodes", _metrics(evaluation))
    labels = {group.label for group in evaluation.groups}
    what = f"Groups and {next(iter(labels))!r}" if len(labels) == 1 else "Groups"
    section(f"{what}, in percent", _groups(evaluation, with_label=len(labels) > 1))
    most_frequent = max(range(len(counts)), key=lambda label: counts[label])
    share = counts[most_frequent] / sum(counts)
    limit = detectable_by(evaluation).in_words(_SPLITS[split])
    notes = [*_notes(evaluation, label_names[most_frequent], share), limit]
    section("What to know", bullets(notes))


def _metrics(evaluation: "Evaluation") -> Table:
    from fairpass.metrics.catalog import METRICS, UNFAIRNESS

    intervals = evaluation.intervals
    level = next((f"{100 * interval.level:g} % interval" for interval in intervals.values()), "")
    lines = []
    for metric in METRICS:
        ends = intervals.get(metric.key)
        interval = [f"{percent(ends.low)} to {percent(ends.high)}" if ends else "-"] if level else []
        lines.append([f"{metric.symbol}, {metric.title}", percent(getattr(evaluation, metric.key)), *interval])
    bold = [number for number, metric in enumerate(METRICS) if metric in UNFAIRNESS]
    return table(["metric", "percent", *([level] if level else [])], lines, bold=bold)


def _groups(evaluation: "Evaluation", *, with_label: bool) -> Table:
    label = ["label"] if with_label else []
    columns = ["group", *label, "nodes", "true", "predicted", "TPR", "FPR", "accuracy"]
    lines: list[Cells] = []
    for group in evaluation.groups:
        names = [Text(group.group), *([Text(group.label)] if with_label else [])]
        true = group.positives / group.count if group.count else math.nan
        rates = (true, group.selection_rate, group.true_positive_rate, group.false_positive_rate, group.accuracy)
        lines.append([*names, f"{group.count:,}", *map(percent, rates)])
    return table(columns, lines, words=label)


def _notes(evaluation: "Evaluation", label: str, share: float) -> Iterable[str]:
    if evaluation.near_constant:
        yield "It is near constant: almost every node gets the same label, which is fair but useless."
    relation = "more" if evaluation.acc > share else "not more"
    yield f"It is {relation} accurate than giving {label!r} to every node, which is right for {percent(share)} %."
    for metric, happens in (("delta_dp", "is predicted"), ("delta_eo", "is found, where it is true,")):
        pair, gap = evaluation.worst_pair.get(metric), getattr(evaluation, metric)
        if pair is not None and gap >= _VISIBLE:
            yield f"{pair.label!r} {happens} {percent(gap)} points more often for {pair.high!r} than for {pair.low!r}."


def show_rows(title: str, methods: "Sequence[Row]", runs_of: "Iterable[RunRecord]", over: str = "seeds") -> None:
    """Print a row for each method, and notes; `over` is what the runs of a method differ in."""
    from fairpass.metrics.catalog import SELECTION
    from fairpass.metrics.detectable import detectable_by

    runs = max(len(row.seeds) for row in methods)
    numbers = f"mean ± standard deviation over {runs} {over}" if runs > 1 else "one seed"
    best = min((row.rank for row in methods if row.rank is not None), default=None)
    bold = [number for number, row in enumerate(methods) if row.rank is not None and row.rank == best]
    lines: list[Cells] = []
    for row in methods:
        failed = [Text("failed", style="red"), *("-" * (len(SELECTION) - 1))]
        cells = [_mean(row, metric.label) for metric in SELECTION] if row.mean else failed
        lines.append([Text(row.method), *cells, "-" if row.rank is None else f"{row.rank:.1f}"])
    made = table(["method", *(metric.symbol for metric in SELECTION), "rank"], lines, bold=bold, narrow=True)
    legend = [f"{numbers}, in percent; rank: mean of the five"]
    legend += [detectable_by(run.evaluation).sentence for run in runs_of if run.evaluation is not None][:1]
    section(title, made, *(Text(each, style="dim") for each in legend))
    if notes := [(row.method, Text("; ".join(row.flags))) for row in methods if row.flags]:
        section("What to know", rows(notes))


def _mean(row: "Row", label: str) -> str:
    deviation = row.std[label]
    return f"{row.mean[label]:.1f}" + ("" if math.isnan(deviation) else f" ±{deviation:.1f}")


def show_table(shown: "ResultTable") -> None:
    """Print a table of results with its notes; in a narrow terminal, the paper's values below ours."""
    widths = [max([len(name), *(len(row[i].text) for row in shown.rows)]) for i, name in enumerate(shown.columns)]
    if sum(width + 1 for width in widths) + 2 > output.console.width:
        shown = shown.folded()
    lines = [[*map(_styled, row)] for row in shown.rows]
    made = table(shown.columns, lines, words=shown.columns[: shown.words], narrow=True)
    section(shown.title, made, *(Text(sentence, style="dim") for sentence in shown.notes))


def _styled(entry: "Entry") -> Text:
    first, *others = entry.text.split("\n")
    return Text("\n").join([Text(first, style=_STYLES[entry.emphasis]), *(Text(line, style="dim") for line in others)])
