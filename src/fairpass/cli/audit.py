"""`fairpass audit`: a graph's statistics and where bias can come from, before any training."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.option_groups import with_option_groups
from fairpass.cli.output import JsonFlag, examples, print_json, rows, section, table, working

if TYPE_CHECKING:
    from fairpass.datasets import GraphArrays, GraphStatistics
    from fairpass.datasets.bias import BiasCheck
    from fairpass.datasets.graph_gain import Gain, GraphGain

EXAMPLES = examples(
    {
        "A benchmark, with the sensitive attribute left out of the features": (
            "fairpass audit german --drop-sensitive"
        ),
        "Your own tables": (
            "fairpass audit --nodes people.csv --edges friends.csv --id name --label hired --sensitive sex"
        ),
        "For another program": "fairpass audit german --json > audit.json",
    }
)

_STYLES = {"high": "bold red", "medium": "yellow", "low": "green"}
_LABELS_SHOWN = 5


@with_option_groups
def audit(graph: GraphOptions, as_json: JsonFlag = False) -> None:
    """Show a graph's statistics, whether its edges help, and where bias can come from, before any training.

    Logistic regressions without and with the features of a node's neighbours tell
    on the validation nodes whether the edges help. Each finding is a sentence with
    a number. Its severity follows rules of thumb: it says where to look, and does
    not replace looking.
    """
    data = graph.load_arrays()
    with working("Measuring"):
        from fairpass.datasets import describe, find_bias
        from fairpass.datasets.graph_gain import graph_gain

        statistics = describe(data, leakage_auc=True)
        findings = find_bias(statistics)
        gain = graph_gain(data)
    if as_json:
        document = {
            "provenance": data.provenance,
            "statistics": statistics.to_dict(),
            "findings": [finding.to_dict() for finding in findings],
            "graph_gain": gain.to_dict(),
        }
        print_json(document)
        return
    section(_title(data.provenance), _facts(data, statistics))
    section("Groups", _groups(statistics))
    section("Edges", _edges(statistics))
    section("Do the edges help?", *_gain(gain))
    section("Where bias can come from", _findings(findings), _summary(findings))
    if caveats := data.provenance.get("caveats"):
        section("What to know about this data set", rows(("-", Text(caveat)) for caveat in caveats))


def _title(provenance: dict[str, Any]) -> str:
    tables = [provenance[part]["source"] for part in ("nodes", "edges") if part in provenance]
    return str(provenance.get("title") or " and ".join(tables))


def _facts(data: "GraphArrays", statistics: "GraphStatistics") -> Table:
    provenance = data.provenance
    splits = {part: int(getattr(data, f"{part}_mask").sum()) for part in ("train", "val", "test")}
    edges = {
        "undirected": statistics.edges,
        "self-loops removed": provenance.get("self_loops_removed", 0),
        "duplicates merged": provenance.get("duplicate_edges_merged", 0),
        "nodes isolated": statistics.isolated,
    }
    facts = {
        "nodes": f"{statistics.nodes:,}",
        "edges": _counts(edges.items()),
        "components": f"{statistics.components:,}, the largest with {statistics.largest_component:,} nodes",
        "features": f"{statistics.features:,}",
        "labels": _counts([*statistics.label_counts.items(), ("unlabelled", statistics.unlabelled)]),
        "split": _counts(splits.items()),
        "source": provenance["source"] if "title" in provenance else None,
        "licence": provenance.get("licence"),
    }
    return rows((name, Text(fact)) for name, fact in facts.items() if fact)


def _counts(counts: Iterable[tuple[str, int]]) -> str:
    """Return "3 this, 4 that", without what there is none of."""
    return ", ".join(f"{count:,} {name}" for name, count in counts if count) or "none"


def _number(value: float, form: str) -> str:
    """Return a number as text; one that is not defined (a group without labels, no edges) as a dash."""
    return "-" if math.isnan(value) else format(value, form)


def _groups(statistics: "GraphStatistics") -> Table:
    labels = list(statistics.label_counts)
    # Of two labels the second says it all; a terminal has no room for many.
    shown = labels[1:] if len(labels) == 2 else labels[:_LABELS_SHOWN]
    numbers = ("nodes", "share", *(f"P({label})" for label in shown), "mean degree", "median", "max")
    made = table("group", *numbers, numbers=numbers)
    for group in statistics.groups:
        made.add_row(
            Text(group.name),
            f"{group.size:,}",
            f"{group.size / statistics.nodes:.1%}",
            *(_number(group.label_rates[label], ".3f") for label in shown),
            _number(group.degree_mean, ".1f"),
            _number(group.degree_median, "g"),
            f"{group.degree_max:,}",
        )
    if statistics.unknown_group:
        made.add_row("unknown", f"{statistics.unknown_group:,}", f"{statistics.unknown_group / statistics.nodes:.1%}")
    return made


def _edges(statistics: "GraphStatistics") -> Table:
    numbers = ("share", "by chance", "assortativity")
    made = table("edges that join", *numbers, numbers=numbers)
    mixings = {"equal labels (H)": statistics.label_mixing, "one group (H_f)": statistics.sensitive_mixing}
    for name, mixing in mixings.items():
        shares = (mixing.homophily, mixing.expected, mixing.assortativity)
        made.add_row(name, *(_number(share, ".3f") for share in shares))
    return made


def _gain(gain: "GraphGain") -> "list[Table | Text]":
    """Return the two regressions and their difference as a table, and what it means in a sentence."""
    if gain.without is None or gain.with_edges is None:
        return [Text(gain.sentence)]
    numbers = ("ACC", "AUC", "ΔDP")
    made = table("logistic regression", *numbers, numbers=numbers)
    for name, scores in {"features alone": gain.without, "and neighbours' means": gain.with_edges}.items():
        made.add_row(name, *(_number(100 * value, ".1f") for value in (scores.acc, scores.auc, scores.dp)))
    change = _number(100 * (gain.with_edges.dp - gain.without.dp), "+.1f")
    made.add_row("difference (95 %)", _difference(gain.acc), _difference(gain.auc), change)
    return [made, Text(gain.sentence)]


def _difference(gain: "Gain | None") -> str:
    """Return a difference in percentage points and its interval."""
    if gain is None:
        return "-"
    return f"{100 * gain.estimate:+.1f} ({100 * gain.low:.1f} to {100 * gain.high:.1f})"


def _findings(findings: "Sequence[BiasCheck]") -> Table:
    return rows(
        (Text(finding.severity, style=_STYLES[finding.severity]), Text(finding.sentence)) for finding in findings
    )


def _summary(findings: "Sequence[BiasCheck]") -> Text:
    counts = Counter[str](finding.severity for finding in findings)
    return Text(f"{len(findings)} checks: {_counts(counts.items())}, by rules of thumb", style="dim")
