"""How things are called in tables, figures and sentences."""

from collections.abc import Iterable, Sequence

from fairpass.experiments.findings import Finding

METRIC_NAMES = {
    "AUC": "AUC",
    "F1": "F1",
    "ACC": "ACC",
    "DP": "ΔDP",
    "EO": "ΔEO",
    "balanced_accuracy": "BACC",
}


def span(values: Iterable[int]) -> str:
    """Return "5", or "2 to 5" if they differ."""
    low, *_, high = sorted([*(found := list(values)), *found])
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def seeds_in_words(findings: Iterable[Finding]) -> str:
    """Return over how many seeds the findings are."""
    found = span(len(finding.chosen.records) for finding in findings)
    return "one seed" if found == "1" else f"{found} seeds"


def epochs_in_words(findings: Iterable[Finding]) -> str:
    """Return for how many epochs the runs were trained."""
    epochs = [r["epochs"] for f in findings for r in f.chosen.records if r["method"] != "constant"]
    return f"{span(epochs)} epochs" if epochs else "no training"


def listed(words: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
