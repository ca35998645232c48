"""The tables of measures other than the five metrics."""

from statistics import fmean

from fairpass.experiments import paper
from fairpass.experiments.findings import TITLES, Findings
from fairpass.experiments.table import MISSING, Entry, Table, number, word

_STATISTICS = {
    "nodes": ("nodes", 0),
    "edges": ("edges", 0),
    "features": ("features", 0),
    "label_homophily": ("H, labels", 3),
    "sensitive_homophily": ("H_f, groups", 3),
}


def stats(findings: Findings) -> list[Table]:
    """Return the data sets' statistics, as printed and as measured."""
    rows = []
    for dataset in findings.datasets("stats"):
        printed = paper.STATISTICS[dataset]
        finding = findings.one("stats", dataset, dataset)
        measured = statistics_of(finding.measured["statistics"]) if finding else {}
        for which, values in (("printed", printed), ("measured", measured)):
            entries = [number(values.get(name), digits) for name, (_, digits) in _STATISTICS.items()]
            rows.append((word(TITLES[dataset]), word(which), *entries))
    table = Table(
        "stats",
        "The data sets, printed in the paper and measured",
        ("data set", "", *(name for name, _ in _STATISTICS.values())),
        tuple(rows),
        (
            "Edges are undirected and counted once, without self-loops. H and H_f are the shares of edges that join "
            "equal labels and equal groups. The sizes that the paper prints for Credit and Bail are those of Citeseer "
            "and Pubmed; its edges of German count half of every self-loop.",
        ),
        words=2,
    )
    return [table]


def statistics_of(measured: dict[str, object]) -> dict[str, float]:
    """Return the statistics that the paper prints, of those that were measured."""
    found: dict[str, float] = {}
    for name in _STATISTICS:
        if name.endswith("_homophily"):
            mixing = measured[name.replace("homophily", "mixing")]
            value = mixing["homophily"] if isinstance(mixing, dict) else None
        else:
            value = measured[name]
        if isinstance(value, int | float):
            found[name] = float(value)
    return found


def theory(findings: Findings) -> list[Table]:
    """Return the bounds of both theorems beside what they bound."""
    rows = []
    for dataset in findings.datasets("theory"):
        for finding in findings.of("theory", dataset):
            found = finding.measured["theorems"]
            entries: list[Entry] = [number(found["nodes"], 0)]
            for name in ("4.1", "4.2"):
                entries += [_digits(found[name]["measured"]), _digits(found[name]["bound"])]
                entries.append(word("yes" if found[name]["holds"] else "no"))
            rows.append((word(TITLES[dataset]), word(finding.cell.label), *entries))
    table = Table(
        "theory",
        "Both theorems' bounds beside the measured values",
        (
            "data set",
            "read-out of",
            "nodes",
            *(f"{n}: {what}" for n in ("4.1", "4.2") for what in ("measured", "bound", "holds")),
        ),
        tuple(rows),
        (
            "Under the theorems' own assumptions: the features as representations, two layers, mean aggregation, unit "
            "weights. Theorem 4.1 needs a read-out matrix: the one whose logits are nearest to the trained model's. "
            "Theorem 4.2 does not depend on the model.",
        ),
        words=2,
    )
    return [table]


def _digits(value: float) -> Entry:
    return Entry(f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}", value=value)


def cases(findings: Findings) -> list[Table]:
    """Return how similar nodes of different groups are on average."""
    rows = []
    for dataset in findings.datasets("cases"):
        for finding in findings.of("cases", dataset):
            found = finding.measured["cases"]
            same, different = (found[name]["mean"] for name in ("same label", "different label"))
            difference = None if same is None or different is None else same - different
            entries = [number(value, 3) for value in (same, different, difference)]
            rows.append((word(TITLES[dataset]), word(finding.cell.label), *entries))
    table = Table(
        "cases",
        "Mean kernel similarity of nodes of different groups",
        ("data set", "method", "same label", "different label", "difference"),
        tuple(rows),
        (
            "Over 20,000 random pairs of nodes, one of either group: the Gaussian kernel of their logits, as wide as "
            "the logits of all nodes are spread.",
        ),
        words=2,
    )
    return [table]


def runtime(findings: Findings) -> list[Table]:
    """Return the time of an epoch for each method, and the paper's seconds."""
    datasets = findings.datasets("runtime")
    labels = list(dict.fromkeys(label for d in datasets for label in findings.labels("runtime", d)))
    rows = []
    for label in labels:
        entries: list[Entry] = []
        for dataset in datasets:
            time, reference = epoch_seconds(findings, dataset, label), epoch_seconds(findings, dataset, "GCN")
            entries += [
                number(None if time is None else 1000 * time, 1),
                number(None if time is None or reference is None else time / reference, 1),
                number(paper.SECONDS[dataset].get(paper.method_of(label)), 1),
            ]
        rows.append((word(label), *entries))
    machines = {
        f"{r['environment']['machine']} with {r['environment']['threads']} thread(s), torch {r['environment']['torch']}"
        for f in findings.of("runtime")
        for r in f.chosen.records
    }
    columns = [f"{TITLES[d]}: {what}" for d in datasets for what in ("ms per epoch", "× GCN", "paper, s")]
    table = Table(
        "runtime",
        "Training time",
        ("method", *columns),
        tuple(rows),
        (
            "The time of a whole training, alone on the machine, divided by its epochs; what EDITS does before it "
            "trains is part of it. The paper's are seconds on a V100 for as many epochs as gave the best results.",
            f"Measured on {' and '.join(sorted(machines)) or MISSING}.",
        ),
    )
    return [table]


def epoch_seconds(findings: Findings, dataset: str, label: str) -> float | None:
    """Return the time of an epoch; None if it was not measured."""
    finding = findings.one("runtime", dataset, label)
    if finding is None:
        return None
    records = finding.chosen.records
    return fmean(record["seconds"] / record["epochs"] for record in records)
