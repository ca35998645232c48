"""The table of the fronts' hypervolumes."""

from fairpass.experiments.findings import TITLES, Findings
from fairpass.experiments.fronts import Front, fronts, reference_point
from fairpass.experiments.table import Entry, Table, emphasised, number, word
from fairpass.experiments.words import METRIC_NAMES

_BIASES = ("DP", "EO")


def pareto(findings: Findings) -> list[Table]:
    """Return the hypervolume of each method's front, in accuracy and each kind of bias."""
    datasets = findings.datasets("pareto")
    labels = list(dict.fromkeys(label for d in datasets for label in findings.labels("pareto", d)))
    columns: list[list[Entry]] = []
    references = []
    for dataset in datasets:
        for bias in _BIASES:
            found = fronts(findings, dataset, bias)
            reference = reference_point(found)
            by_label = {front.label: front for front in found}
            entries = [number(_share(by_label.get(label), found, reference), 1) for label in labels]
            columns.append(emphasised(entries, lowest=False, ranked=[True] * len(labels)))
            where = f"ACC {reference[0]:.1f}, {METRIC_NAMES[bias]} {reference[1]:.1f}"
            references.append(f"{TITLES[dataset]} {where}")
    table = Table(
        "pareto",
        "Hypervolume of the fronts of accuracy against bias, in percent of the best possible",
        ("method", *(f"{TITLES[d]}: {METRIC_NAMES[bias]}" for d in datasets for bias in _BIASES)),
        tuple((word(label), *entries) for label, *entries in zip(labels, *columns, strict=True)),
        (
            "The area, on the test nodes, between a method's front and the reference point, divided by the rectangle "
            "from there to the best accuracy of any method without bias. Near-constant results do not count. "
            "Thresholds are the most accurate on validation, so that they do not hide what a method did.",
            f"Reference points, the worst of all results: {'; '.join(references)}.",
        ),
    )
    return [table]


def _share(front: Front | None, found: list[Front], reference: tuple[float, float]) -> float | None:
    if front is None:
        return None
    best = max(accuracy for each in found for accuracy, _ in each.points)
    whole = (best - reference[0]) * reference[1]
    return 100 * front.area(reference) / whole if whole > 0 else None
