"""The benchmark's tables: metrics with intervals, differences from a reference, ranks, hypervolumes, effects."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import pandas as pd

from fairpass.experiments.benchmark.evidence import graph_gain, undominated
from fairpass.experiments.benchmark.protocol import Entry as Method
from fairpass.experiments.benchmark.results import BIASES, BenchmarkResults
from fairpass.experiments.cells import METRICS
from fairpass.experiments.inference import (
    Interval,
    bootstrap_interval,
    critical_difference,
    holm,
    mean_interval,
    paired_p_value,
)
from fairpass.experiments.tables import MISSING, Columns, Entry, Row, Table, detectable_on, emphasised, number, table
from fairpass.experiments.texts import TEXTS, listed
from fairpass.metrics.catalog import BY_LABEL
from fairpass.runs import ranks

HALF = "half of 95 % interval"
OURS, AUTO, OURS_EO = "gmmd", "gmmd (auto)", "gmmd (eo)"
_NOTES: Mapping[str, str] = TEXTS["benchmark"]


def symbol(metric: str) -> str:
    return BY_LABEL[metric].symbol


def titles(metric: str) -> str:
    return f"{symbol(metric)} {'↑' if BY_LABEL[metric].higher_is_better else '↓'}"


def metric_table(found: BenchmarkResults, graph: str) -> Table | None:
    """Return the metrics of every row on a graph: means over the splits, half of their intervals, and the rank."""
    tables = found.by_split(graph)
    if not tables:
        return None
    labels = list(tables)
    near = {label for label, each in tables.items() if each["near_constant"].mean() > 0.5}
    content: Columns = {"method": [f"{label}†" if label in near else label for label in labels]}
    for metric in METRICS:
        intervals = [mean_interval(tables[label][metric]) for label in labels]
        entries = [replace(number(each.estimate, 1, each.half), spread=HALF) for each in intervals]
        ranked = [label not in near for label in labels]
        lowest = not BY_LABEL[metric].higher_is_better
        content[titles(metric)] = emphasised(entries, lowest=lowest, groups=[r or None for r in ranked])
    places = _average_ranks({label: tables[label] for label in labels if label not in near})
    content["rank"] = emphasised([number(places.get(label), 1) for label in labels], lowest=True)
    content["s"] = [number(tables[label]["seconds"].mean(), 1) for label in labels]
    legend = [_NOTES["metrics"].format(splits=_count(tables))]
    legend += [limit.sentence] if (limit := detectable_on(graph, 0)) else []
    legend += [_NOTES["near_constant"]] if near else []
    failed = [f"{label} ({'; '.join(dict.fromkeys(why))})" for (g, label), why in found.failures.items() if g == graph]
    legend += [f"Failed: {'; '.join(failed)}."] if failed else []
    return table("benchmark", content, dataset=graph, legend=legend)


def _count(tables: Mapping[str, pd.DataFrame]) -> str:
    counts = sorted({len(each) for each in tables.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _average_ranks(tables: Mapping[str, pd.DataFrame]) -> dict[str, float]:
    means = pd.DataFrame({label: each[list(METRICS)].mean() for label, each in tables.items()}).T
    return {str(label): float(rank) for label, rank in ranks(means.dropna()).mean(axis=1).items()}


def difference_table(found: BenchmarkResults, graph: str, reference: str) -> Table | None:
    """Return each row's differences from a reference on the same splits, with intervals.

    Bold differences are those whose p-value, corrected by Holm's method for the number of rows, is below 5 %.
    """
    tables = found.by_split(graph)
    if reference not in tables:
        return None
    labels = [label for label in tables if label != reference]
    content: Columns = {"method": labels}
    for metric in METRICS:
        differences = [(tables[label][metric] - tables[reference][metric]).dropna() for label in labels]
        adjusted = holm([paired_p_value(each) for each in differences])
        entries = []
        for each, p in zip(differences, adjusted, strict=True):
            shown = signed(mean_interval(each))
            entries.append(replace(shown, emphasis="best" if p < 0.05 else ""))
        content[symbol(metric)] = entries
    return table("benchmark-differences", content, dataset=graph, reference=reference, splits=_count(tables))


def signed(interval: Interval, digits: int = 1) -> Entry:
    """Return an entry for a difference with half of its interval."""
    if math.isnan(interval.estimate):
        return Entry(MISSING)
    half = "" if math.isnan(interval.half) else f" ± {interval.half:.{digits}f}"
    std = None if math.isnan(interval.half) else interval.half
    return Entry(f"{interval.estimate:+.{digits}f}{half}", value=interval.estimate, std=std, spread=HALF)


def _with_ends(interval: Interval) -> Entry:
    """Return an entry for an effect with the ends of its interval, which need not be symmetric."""
    ends = "" if math.isnan(interval.half) else f" [{interval.low:+.1f}, {interval.high:+.1f}]"
    emphasis: Literal["", "best"] = "best" if interval.is_resolved else ""
    return Entry(f"{interval.estimate:+.1f}{ends}", emphasis, interval.estimate)


def rank_frame(found: BenchmarkResults, score: str, rule: str = "all") -> pd.DataFrame:
    """Return the rank of every row (columns) on every graph (rows) by a mean over the splits; 1 is the best.

    Only rows that are on all graphs and nowhere near constant take part.
    """
    whole = found.frame(rule)
    near = whole.groupby(["entry", "graph"])["near_constant"].mean().groupby("entry").max()
    whole = whole[whole["entry"].map(near) <= 0.5]
    means = whole.pivot_table(index="graph", columns="entry", values=score, aggfunc="mean").dropna(axis=1)
    is_lower = score in METRICS and not BY_LABEL[score].higher_is_better
    return means.rank(axis=1, ascending=is_lower)


def hypervolume_table(found: BenchmarkResults, bias: str) -> Table | None:
    """Return the area that each row's settings dominate in accuracy and a bias on every graph, and the average rank."""
    frame = hypervolume_frames(found)[bias]
    labels = [label for label in found.labels if label in frame.columns]
    if not labels:
        return None
    content: Columns = {"method": labels}
    for graph in frame.index:
        content[str(graph)] = emphasised([number(frame.loc[graph, label], 0) for label in labels], lowest=False)
    rank = frame.rank(axis=1, ascending=False).mean()
    content["rank"] = emphasised([number(rank[label], 1) for label in labels], lowest=True)
    return table(f"benchmark-hypervolume-{bias.lower()}", content)


def hypervolume_frames(found: BenchmarkResults) -> dict[str, pd.DataFrame]:
    """Return for both kinds of bias the hypervolume of every row (columns) on every graph (rows)."""
    frames = {}
    for bias in BIASES:
        rows = {graph: found.hypervolumes(graph, bias) for graph in found.protocol.graphs}
        frame = pd.DataFrame.from_dict({graph: row for graph, row in rows.items() if row}, orient="index")
        frames[bias] = frame.drop(columns="constant", errors="ignore").dropna(axis=1)
    return frames


def summary_table(found: BenchmarkResults) -> Table | None:
    """Return one line for each method: ranks over the graphs, how often it is undominated, and what fairness does."""
    ranks = {bias: frame.rank(axis=1, ascending=False).mean() for bias, frame in hypervolume_frames(found).items()}
    graphs = [graph for graph in found.protocol.graphs if found.by_split(graph)]
    if not graphs or ranks["DP"].empty:
        return None
    places = {bias: [undominated(found, graph, bias) for graph in graphs] for bias in BIASES}
    entries = [entry for entry in found.protocol.entries if entry.label in ranks["DP"].index]
    rows: list[Row] = []
    for entry in sorted(entries, key=lambda entry: float(ranks["DP"][entry.label])):
        label, row = entry.label, dict[str, str | Entry](method=entry.label)
        for bias in BIASES:
            row[f"rank, {symbol(bias)}"] = number(ranks[bias][label], 1)
            free = sum(label in kept for kept, _ in places[bias])
            row[f"undominated, {symbol(bias)}"] = f"{free} of {len(graphs)}"
        for bias in BIASES:
            row[f"effect on {symbol(bias)}"] = _resolved(found, entry, bias, graphs) if entry.is_fair else MISSING
        rows.append(row)
    return table("benchmark-summary", rows, width=critical_difference(len(rows), len(graphs)))


def _resolved(found: BenchmarkResults, entry: Method, metric: str, graphs: Sequence[str]) -> str:
    """Return on how many graphs a method lowers, and raises, a bias against its own control with confidence."""
    effects = [each for graph in graphs if not (each := found.effects(graph, entry)).empty]
    intervals = [bootstrap_interval(each[metric].dropna()) for each in effects]
    lower, higher = sum(each.high < 0 for each in intervals), sum(each.low > 0 for each in intervals)
    return f"lower on {lower}, higher on {higher} of {len(intervals)}"


def worth_table(found: BenchmarkResults) -> Table | None:
    """Answer for each graph: is GMMD worth it? How many rows are undominated, where is GMMD, and do the edges help?"""
    rows: list[Row] = []
    for graph in found.protocol.graphs:
        gain = graph_gain(found, graph)
        if gain is None:
            continue
        row: Row = {"graph": graph, "gain of the edges, ACC": signed(gain)}
        row["do they help?"] = "yes" if gain.low > 0 else "no, they cost" if gain.high < 0 else "not shown"
        for bias in BIASES:
            kept, beaten = undominated(found, graph, bias)
            row[f"front of ACC and {symbol(bias)}"] = listed([label for label, on_front in kept.items() if on_front])
            row[f"undominated, {symbol(bias)}"] = f"{len(kept)} of {len(kept) + len(beaten)}"
            for label in (OURS, AUTO) if bias == "DP" else (OURS_EO,):
                row[f"{label}, {symbol(bias)}"] = _place(label, kept, beaten)
        rows.append(row)
    return table("benchmark-worth", rows, words=len(rows[0])) if rows else None


def _place(label: str, kept: Mapping[str, bool], beaten: Mapping[str, Sequence[str]]) -> str:
    if label in kept:
        return "front" if kept[label] else "undominated"
    return f"dominated by {listed(list(beaten[label]))}" if label in beaten else MISSING


def undominated_table(found: BenchmarkResults, bias: str) -> Table | None:
    """Return for every row and graph whether another dominates it."""
    graphs = [graph for graph in found.protocol.graphs if found.by_split(graph)]
    if not graphs:
        return None
    places = {graph: undominated(found, graph, bias) for graph in graphs}
    rows: list[Row] = []
    for label in found.labels:
        row: Row = {"method": label}
        for graph, (kept, beaten) in places.items():
            place = _place(label, kept, beaten)
            by = len(beaten.get(label, ()))
            row[graph] = Entry(f"by {by}" if by else place, "best" if place == "front" else "")
        free = sum(label in kept for kept, _ in places.values())
        row["undominated"] = f"{free} of {sum(label in kept or label in beaten for kept, beaten in places.values())}"
        rows.append(row)
    return table(f"benchmark-undominated-{bias.lower()}", rows)


def effect_table(found: BenchmarkResults, metric: str) -> Table | None:
    """Return the effect of each fair row on a metric against its own control, on every graph."""
    fair = [entry for entry in found.protocol.entries if entry.is_fair]
    rows: list[Row] = []
    for entry in fair:
        row: Row = {"method": entry.label}
        resolved = total = 0
        for graph in found.protocol.graphs:
            effects = found.effects(graph, entry)
            if effects.empty:
                row[graph] = MISSING
                continue
            interval = bootstrap_interval(effects[metric].dropna())
            total += 1
            resolved += interval.is_resolved
            row[graph] = _with_ends(interval)
        row["resolved"] = f"{resolved} of {total}"
        rows.append(row)
    if not any(each[graph] != MISSING for each in rows for graph in found.protocol.graphs):
        return None
    return table(f"benchmark-effects-{metric.lower()}", rows)


def variance_table(found: BenchmarkResults) -> Table | None:
    """Return how much the split, the method and fairness itself move each metric, a median over rows and graphs."""
    rows: list[Row] = []
    whole = found.frame()
    if whole.empty:
        return None
    for metric in METRICS:
        by_row = whole.groupby(["graph", "entry"])[metric]
        split = by_row.std().median()
        method = whole.groupby(["graph", "entry"])[metric].mean().groupby("graph").std().median()
        effects = []
        for entry in found.protocol.entries:
            for graph in found.protocol.graphs if entry.is_fair else ():
                each = found.effects(graph, entry)
                effects += [] if each.empty else [abs(each[metric].mean())]
        effect = pd.Series(effects, dtype=float).median()
        rows.append(
            {
                "metric": symbol(metric),
                "between splits": number(split),
                "between methods": number(method),
                "|method - control|": number(effect),
            }
        )
    return table("benchmark-variance", rows)


def budget_table(found: BenchmarkResults) -> Table:
    """Return the settings of every row, as far as they are not the method's defaults."""
    rows: list[Row] = []
    for entry in found.protocol.entries:
        settings = []
        for each in entry.settings:
            values = {**each.parameters, **each.training}
            shown = {k: v for k, v in values.items() if k not in ("threshold", "track_discrepancy")}
            settings.append(", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in shown.items()))
        rows.append({"row": entry.label, "settings": "; ".join(settings) or "defaults"})
    return table("benchmark-budget", rows, words=2)


def all_tables(found: BenchmarkResults, reference: str) -> list[Table]:
    """Return all tables that there are results for, the answer first."""
    graphs: Sequence[str] = found.protocol.graphs
    made = [summary_table(found), worth_table(found), *(undominated_table(found, bias) for bias in BIASES)]
    made += [hypervolume_table(found, bias) for bias in BIASES]
    made += [metric_table(found, graph) for graph in graphs]
    made += [effect_table(found, metric) for metric in ("DP", "EO", "ACC")]
    made += [variance_table(found), *(difference_table(found, graph, reference) for graph in graphs)]
    return [*(each for each in made if each is not None), budget_table(found)]
