"""The tables of variants: other backbones, parts left out, and what each of our changes does."""

from fairpass.experiments import paper
from fairpass.experiments.findings import TITLES, Findings
from fairpass.experiments.table import Table
from fairpass.experiments.tables.metrics import MetricRow, metric_table

# What the paper's ablation calls our variants of its method.
PAPERS_ABLATION = {
    "paper's, full": "GMMD",
    "paper's, w/o smooth": "w/o smooth",
    "paper's, w/o fair": "w/o fair",
    "paper's, w/o both": "w/o both",
    "paper's, w/o sample": "w/o sample",
    "full": "w/o sample",
    "w/o smooth": "w/o smooth",
    "w/o fair": "w/o fair",
    "w/o both": "w/o both",
    "sampled": "GMMD",
}

_EPOCHS = {"validation": "selected", "last": "last"}


def backbones(findings: Findings) -> list[Table]:
    """Return the methods on GIN and GAT, a table for each data set."""
    tables = []
    for dataset in findings.datasets("backbones"):
        rows = [
            MetricRow(
                (backbone, label),
                findings.one("backbones", dataset, label, backbone=backbone),
                paper.BACKBONES[dataset][backbone].get(label),
                group=backbone,
            )
            for backbone in findings.positions("backbones", "backbone")
            for label in findings.labels("backbones", dataset)
        ]
        notes = ["The methods on one backbone are compared with each other."]
        if dataset == "german":
            notes.append("The paper's vanilla GIN has the same F1, ACC, ΔDP and ΔEO as its GCN in the main table.")
        title = f"{TITLES[dataset]}: other backbones"
        tables.append(metric_table(f"backbones-{dataset}", title, ("backbone", "method"), rows, notes))
    return tables


def ablation(findings: Findings) -> list[Table]:
    """Return GMMD with parts left out, a table for each data set."""
    tables = []
    for dataset in findings.datasets("ablation"):
        printed = paper.ABLATION.get(dataset, {})
        rows = [
            MetricRow(
                (label,),
                findings.one("ablation", dataset, label),
                printed.get(PAPERS_ABLATION.get(label, "")),
                group="paper's" if label.startswith("paper's") else "ours",
            )
            for label in findings.labels("ablation", dataset)
        ]
        notes = [
            "The first rows are GMMD as we recommend it, which uses all nodes: the paper's row beside 'full' is its "
            "w/o sample, and beside 'sampled' its full model. The other rows are GMMD as the paper defines it. Each "
            "half is compared within itself."
        ]
        title = f"{TITLES[dataset]}: parts left out"
        tables.append(metric_table(f"ablation-{dataset}", title, ("variant",), rows, notes))
    return tables


def beyond(findings: Findings) -> list[Table]:
    """Return what each of our changes does, at the selected and at the last epoch."""
    tables = []
    for dataset in findings.datasets("beyond"):
        rows = [
            MetricRow((_EPOCHS[epoch], label), findings.one("beyond", dataset, label, epoch=epoch), group=epoch)
            for epoch in findings.positions("beyond", "epoch")
            for label in findings.labels("beyond", dataset)
        ]
        notes = [
            "GMMD with one thing changed, at the epoch that validation selects and at the last one; the threshold is "
            "0.5 throughout. Rows of the same kind of epoch are compared with each other."
        ]
        title = f"{TITLES[dataset]}: what each of our changes does"
        tables.append(metric_table(f"beyond-{dataset}", title, ("epoch", "variant"), rows, notes))
    return tables
