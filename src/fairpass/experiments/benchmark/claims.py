"""The paper's claims about GMMD, checked on the benchmark: many splits, nine graphs, paired intervals."""

from collections.abc import Iterator, Mapping
from statistics import fmean

import pandas as pd

from fairpass.experiments.benchmark.results import BIASES, BenchmarkResults
from fairpass.experiments.benchmark.tables import OURS, rank_frame, symbol
from fairpass.experiments.cells import METRICS
from fairpass.experiments.inference import bootstrap_interval, mean_interval
from fairpass.experiments.item import CLOSE, Claim, Verdict, claim, require
from fairpass.metrics.catalog import BY_LABEL, UNFAIRNESS, UTILITY

SIMPLE, PLAIN = "gmmd-s", "gcn"
_UTILITY, _BIAS = ([metric.label for metric in metrics] for metrics in (UTILITY, UNFAIRNESS))

Tables = Mapping[str, pd.DataFrame]  # of a graph: the metrics of every row, by split


def benchmark_claims(found: BenchmarkResults) -> Iterator[Claim]:
    """Yield what the paper claims about its methods, and what the benchmark says of it on each graph."""
    tables = {graph: found.by_split(graph) for graph in found.protocol.graphs}
    yield claim("benchmark-ranks", {"average over the graphs": found}, _best_ranks)
    yield claim("benchmark-fairer", tables, _fairer_than_plain)
    rivals = [e.label for e in found.protocol.entries if e.is_fair and not e.method.startswith(OURS)]
    yield claim("benchmark-wins", {label: label for label in rivals}, _wins, tables)
    yield claim("benchmark-simple", tables, _simple)
    for bias in BIASES:
        graphs = {graph: graph for graph in found.protocol.graphs}
        yield claim("benchmark-effect", graphs, _effect, found, bias, bias=symbol(bias))


def _best_ranks(found: BenchmarkResults) -> Verdict:
    ranks = rank_frame(found, "criterion").mean().to_dict()
    ours = {name: ranks.pop(name) for name in (OURS, SIMPLE)}
    others = {name: rank for name, rank in ranks.items() if not str(name).startswith(OURS)}
    require(others)
    best = min(others, key=lambda name: others[name])
    words = " and ".join(f"{name} {rank:.1f}" for name, rank in ours.items())
    return max(ours.values()) < others[best], f"{words}; the best other row, {best}, {others[best]:.1f}"


def _difference(tables: Tables, name: str, other: str, metric: str) -> pd.Series:
    return (tables[name][metric] - tables[other][metric]).dropna()


def _fairer_than_plain(tables: Tables) -> Verdict:
    found = {bias: mean_interval(_difference(tables, OURS, PLAIN, bias)) for bias in BIASES}
    lost = -fmean(_difference(tables, OURS, PLAIN, metric).mean() for metric in _UTILITY)
    words = ", ".join(f"{symbol(bias)} {each.estimate:+.1f} ± {each.half:.1f}" for bias, each in found.items())
    cost = f"{abs(lost):.1f} points {'less' if lost > 0 else 'more'} utility"
    return all(each.high < 0 for each in found.values()) and lost <= CLOSE, f"{words}, {cost}"


def _wins(rival: str, tables: Mapping[str, Tables]) -> Verdict:
    wins = resolved = losses = cells = 0
    for each in tables.values():
        if not {OURS, rival} <= each.keys():
            continue
        for metric in METRICS:
            sign = 1 if BY_LABEL[metric].higher_is_better else -1
            interval = mean_interval(sign * _difference(each, OURS, rival, metric))
            cells += 1
            wins += interval.estimate > 0
            resolved += interval.low > 0
            losses += interval.high < 0
    require([None] * cells)
    return 2 * wins > cells, f"{wins} of {cells} cells, {resolved} resolved; {losses} resolved the other way"


def _simple(tables: Tables) -> Verdict:
    utility = fmean(_difference(tables, SIMPLE, OURS, metric).mean() for metric in _UTILITY)
    bias = fmean(_difference(tables, SIMPLE, OURS, metric).mean() for metric in _BIAS)
    return utility >= -CLOSE and bias <= CLOSE, f"utility {utility:+.1f}, bias {bias:+.1f}"


def _effect(graph: str, found: BenchmarkResults, bias: str) -> Verdict:
    """Check that the fair layers themselves lower a bias; for equal opportunity, those that aim at it."""
    label = OURS if bias == "DP" else f"{OURS} (eo)"
    entries = [entry for entry in found.protocol.entries if entry.label == label]
    require(entries)
    effects = found.effects(graph, entries[0])
    require(effects)
    interval = bootstrap_interval(effects[bias].dropna())
    return interval.high < 0, f"{interval.estimate:+.1f}, {interval.low:+.1f} to {interval.high:+.1f}"
