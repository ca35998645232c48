"""`fairpass audit`: statistics of a graph and sources of bias, before any training."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.options import Result, command
from fairpass.cli.output import Cells, bullets, facts, rows, section, table, working
from fairpass.cli.results import percent, title_of

if TYPE_CHECKING:
    from fairpass.datasets import GraphArrays, GraphStatistics
    from fairpass.datasets.graph_gain import Gain, GraphGain

_STYLES = {"high": "bold red", "medium": "yellow", "low": "green"}
_LABELS_SHOWN = 5


@command
def audit(graph: GraphOptions) -> Result:
    data = graph.load_arrays()
    with working("Measuring"):
        from fairpass.datasets import describe, find_bias
        from fairpass.datasets.graph_gain import graph_gain

        statistics = describe(data, leakage_auc=True)
        findings = find_bias(statistics)
        gain = graph_gain(data)
    yield {
        "provenance": data.provenance,
        "statistics": statistics.to_dict(),
        "findings": [finding.to_dict() for finding in findings],
        "graph_gain": gain.to_dict(),
    }
    section(title_of(data), _facts(data, statistics))
    section("Groups", _groups(statistics))
    mixings = {"equal labels (H)": statistics.label_mixing, "equal groups (H_f)": statistics.sensitive_mixing}
    shares = {name: (each.homophily, each.expected, each.assortativity) for name, each in mixings.items()}
    lines = [[name, *(_number(share, ".3f") for share in each)] for name, each in shares.items()]
    section("Edges", table(("edges between", "share", "by chance", "assortativity"), lines))
    section("Do the edges help?", *_gain(gain))
    found = rows((Text(each.severity, style=_STYLES[each.severity]), Text(each.sentence)) for each in findings)
    severities = _counts(Counter[str](each.severity for each in findings))
    summary = Text(f"{len(findings)} checks: {severities}, by rules of thumb", style="dim")
    section("Where bias can come from", found, summary)
    if caveats := data.provenance.get("caveats"):
        section("What to know about this data set", bullets(caveats))


def _facts(data: "GraphArrays", statistics: "GraphStatistics") -> Table:
    from fairpass.datasets.graph import part_sizes

    provenance = data.provenance
    edges = {
        "undirected": statistics.edges,
        "self-loops removed": provenance.get("self_loops_removed", 0),
        "duplicates merged": provenance.get("duplicate_edges_merged", 0),
        "nodes isolated": statistics.isolated,
    }
    about = {
        "nodes": f"{statistics.nodes:,}",
        "edges": _counts(edges),
        "components": f"{statistics.components:,}, the largest with {statistics.largest_component:,} nodes",
        "features": f"{statistics.features:,}",
        "labels": _counts({**statistics.label_counts, "unlabelled": statistics.unlabelled}),
        "split": _counts(part_sizes(data)),
        "source": provenance["source"] if "title" in provenance else None,
        "licence": provenance.get("licence"),
    }
    return facts(about)


def _counts(counts: Mapping[str, int]) -> str:
    """Return "3 this, 4 that", without zeros."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "none"


def _number(value: float, form: str) -> str:
    """Return a number as text, and a dash for nan (a group without labels, no edges)."""
    return "-" if math.isnan(value) else format(value, form)


def _groups(statistics: "GraphStatistics") -> Table:
    labels = list(statistics.label_counts)
    # The second of two labels determines the first; a terminal has no room for many.
    shown = labels[1:] if len(labels) == 2 else labels[:_LABELS_SHOWN]
    columns = ("group", "nodes", "share", *(f"P({label})" for label in shown), "mean degree", "median", "max")
    lines: list[Cells] = []
    for group in statistics.groups:
        rates = [_number(group.label_rates[label], ".3f") for label in shown]
        degrees = (_number(group.degree_mean, ".1f"), _number(group.degree_median, "g"), f"{group.degree_max:,}")
        lines.append((Text(group.name), f"{group.size:,}", f"{group.size / statistics.nodes:.1%}", *rates, *degrees))
    if unknown := statistics.unknown_group:
        lines.append(("unknown", f"{unknown:,}", f"{unknown / statistics.nodes:.1%}"))
    return table(columns, lines)


def _gain(gain: "GraphGain") -> "list[Table | Text]":
    without, with_edges = gain.without, gain.with_edges
    if without is None or with_edges is None:
        return [Text(gain.sentence)]
    regressions = {"features alone": without, "and neighbours' means": with_edges}
    lines = [[name, *map(percent, (each.acc, each.auc, each.dp))] for name, each in regressions.items()]
    change = _number(100 * (with_edges.dp - without.dp), "+.1f")
    lines.append(["difference (95 %)", _difference(gain.acc), _difference(gain.auc), change])
    return [table(("logistic regression", "ACC", "AUC", "ΔDP"), lines), Text(gain.sentence)]


def _difference(gain: "Gain | None") -> str:
    return "-" if gain is None else f"{100 * gain.estimate:+.1f} ({100 * gain.low:.1f} to {100 * gain.high:.1f})"
