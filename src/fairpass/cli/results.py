"""Evaluations and comparisons as tables, with what to beware of in plain words."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from fairpass.cli.output import rows, section, table

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.metrics import Evaluation
    from fairpass.runs import Comparison, Row

_METRICS = {
    "auc": "AUC",
    "f1": "F1",
    "acc": "accuracy",
    "balanced_acc": "balanced accuracy",
    "delta_dp": "ΔDP, demographic parity",
    "delta_eo": "ΔEO, equal opportunity",
    "equalized_odds": "equalized odds",
}
_COLUMNS = {"AUC": "AUC", "F1": "F1", "ACC": "ACC", "DP": "ΔDP", "EO": "ΔEO"}
_SPLITS = {"train": "training", "val": "validation", "test": "test"}
# What is less than this is not seen in percent with one decimal.
_VISIBLE = 0.0005
_FAIRNESS = ("delta_dp", "delta_eo")


def title_of(data: "Data") -> str:
    """Return what a graph is called: a benchmark by its title, others by their tables."""
    provenance = data.provenance
    tables = [provenance[part]["source"] for part in ("nodes", "edges") if part in provenance]
    return str(provenance.get("title") or " and ".join(tables))


def show_evaluation(title: str, evaluation: "Evaluation", data: "Data", split: str) -> None:
    """Print how a classifier does on one split of a graph."""
    nodes = f"{evaluation.n:,} {_SPLITS[split]} nodes"
    section(f"{title}, on {nodes}", _metrics(evaluation))
    labels = {group.label for group in evaluation.groups}
    what = f"Groups and {next(iter(labels))!r}" if len(labels) == 1 else "Groups"
    section(f"{what}, in percent", _groups(evaluation, with_label=len(labels) > 1))
    notes = _notes(evaluation, *_most_frequent(data, split))
    section("What to know", rows(("-", Text(sentence)) for sentence in notes))


def _most_frequent(data: "Data", split: str) -> tuple[str, float]:
    """Return the label that most of a split's nodes have, and their share."""
    labels = data.y[data[f"{split}_mask"] & (data.y >= 0)]
    counts = labels.bincount()
    label = int(counts.argmax())
    return data.label_names[label], float(counts[label] / counts.sum())


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}"


def _metrics(evaluation: "Evaluation") -> Table:
    intervals = evaluation.intervals
    level = next((f"{100 * interval.level:g} % interval" for interval in intervals.values()), "")
    made = table("metric", "percent", *([level] if level else []), numbers=("percent", level))
    for attribute, name in _METRICS.items():
        cells = [_percent(getattr(evaluation, attribute))]
        if level:
            ends = intervals.get(attribute)
            cells.append(f"{_percent(ends.low)} to {_percent(ends.high)}" if ends else "-")
        made.add_row(name, *cells, style="bold" if attribute in _FAIRNESS else None)
    return made


def _groups(evaluation: "Evaluation", *, with_label: bool) -> Table:
    numbers = ("nodes", "true", "predicted", "TPR", "FPR", "accuracy")
    made = table("group", *(["label"] if with_label else []), *numbers, numbers=numbers)
    for group in evaluation.groups:
        shares = (
            group.positives / group.count if group.count else math.nan,
            group.selection_rate,
            group.true_positive_rate,
            group.false_positive_rate,
            group.accuracy,
        )
        names = [group.group, group.label] if with_label else [group.group]
        made.add_row(*map(Text, names), f"{group.count:,}", *map(_percent, shares))
    return made


def _notes(evaluation: "Evaluation", label: str, share: float) -> Iterable[str]:
    if evaluation.near_constant:
        yield "It is near constant: almost every node gets one label, which is fair, but of no use."
    relation = "more" if evaluation.acc > share else "not more"
    everybody = f"giving {label!r} to every node, which is right for {_percent(share)} %"
    yield f"It is {relation} accurate than {everybody}."
    for metric, happens in (("delta_dp", "is predicted"), ("delta_eo", "is found, where it is true,")):
        pair, gap = evaluation.worst_pair.get(metric), getattr(evaluation, metric)
        if pair is not None and gap >= _VISIBLE:
            points = f"{_percent(gap)} points"
            yield f"{pair.label!r} {happens} {points} more often for {pair.high!r} than for {pair.low!r}."


def show_comparison(title: str, comparison: "Comparison") -> None:
    """Print a comparison: a row for each method, and what to know of it below."""
    show_rows(title, comparison.rows)


def show_rows(title: str, methods: "Sequence[Row]", over: str = "seeds") -> None:
    """Print a row for each method, and what to know of it below.

    Args:
        title: what is shown.
        methods: one row for each.
        over: what the runs of a method differ in.
    """
    runs = max(len(row.seeds) for row in methods)
    numbers = f"mean ± standard deviation over {runs} {over}" if runs > 1 else "one seed"
    section(title, _table(methods), Text(f"{numbers}, in percent; rank: mean of the five", style="dim"))
    if notes := [(row.method, Text("; ".join(row.flags))) for row in methods if row.flags]:
        section("What to know", rows(notes))


def _table(methods: "Sequence[Row]") -> Table:
    numbers = (*_COLUMNS.values(), "rank")
    made = table("method", *numbers, numbers=numbers)
    made.padding = (0, 1, 0, 0)  # so that 80 columns are enough
    ranks = [row.rank for row in methods if row.rank is not None]
    for row in methods:
        best = row.rank is not None and row.rank == min(ranks)
        made.add_row(Text(row.method), *_cells(row), style="bold" if best else None)
    return made


def _cells(row: "Row") -> list[str | Text]:
    if not row.mean:
        return [Text("failed", style="red"), *("-" * len(_COLUMNS))]
    rank = "-" if row.rank is None else f"{row.rank:.1f}"
    return [*(_with_deviation(row.mean[name], row.std[name]) for name in _COLUMNS), rank]


def _with_deviation(mean: float, deviation: float) -> str:
    return f"{mean:.1f}" if math.isnan(deviation) else f"{mean:.1f} ±{deviation:.1f}"
