"""The tables of the main comparison."""

from collections.abc import Callable, Iterable

from fairpass.experiments import paper
from fairpass.experiments.findings import TITLES, Findings
from fairpass.experiments.ranks import LOWER_IS_BETTER, METRICS, average_ranks, is_better
from fairpass.experiments.records import Record
from fairpass.experiments.table import Entry, Table, emphasised, number, word
from fairpass.experiments.tables.metrics import MetricRow, metric_table
from fairpass.experiments.words import METRIC_NAMES, listed

CONSTANT = "constant"
PAPERS = " (paper's)"


def main(findings: Findings) -> list[Table]:
    """Return a table for each data set, the average ranks, and how ours compare with the paper's best."""
    return [*(_of_dataset(findings, d) for d in findings.datasets("main")), ranks(findings), target(findings)]


def _of_dataset(findings: Findings, dataset: str) -> Table:
    rows = [
        MetricRow(
            (label,),
            findings.one("main", dataset, label),
            paper.MAIN[dataset].get(paper.method_of(label)),
            is_ranked=label != CONSTANT,
        )
        for label in findings.labels("main", dataset)
    ]
    notes = [
        "GMMD and GMMD-S are shown twice: as the paper defines them (sampled nodes, its step, a fixed bandwidth) and "
        "version 0.1 recommended them. Smoothing is the paper's GMMD with a fairness weight of 0. The constant "
        "classifier takes no rank."
    ]
    return metric_table(f"main-{dataset}", f"{TITLES[dataset]}: utility and bias", ("method",), rows, notes)


def main_ranks(findings: Findings, keep: Callable[[str], bool], *, informative: bool = False) -> dict[str, float]:
    """Return the average ranks of some methods over all data sets.

    Args:
        findings: of the main table.
        keep: which labels take part; the constant classifier never does.
        informative: whether results that are near constant are left out.
    """
    tables = []
    for dataset in findings.datasets("main"):
        labels = [label for label in findings.labels("main", dataset) if label != CONSTANT and keep(label)]
        if informative:
            found = {label: findings.one("main", dataset, label) for label in labels}
            labels = [label for label, finding in found.items() if finding and not finding.chosen.is_near_constant]
        tables.append(findings.means("main", dataset, labels))
    return average_ranks(tables)


def is_not_papers(label: str) -> bool:
    """Return whether a row is not one of the paper's variants of GMMD, when there is another."""
    return not label.endswith(PAPERS)


def is_not_recommended(label: str) -> bool:
    """Return whether a row is not what we recommend."""
    return label not in paper.OURS


def ranks(findings: Findings) -> Table:
    """Return the average ranks over all cells of the main table: ours and the paper's."""
    recomputed = average_ranks(map(paper.means, paper.MAIN.values()))
    ours = (
        main_ranks(findings, lambda _: True),
        main_ranks(findings, is_not_papers),
        main_ranks(findings, is_not_recommended),
        main_ranks(findings, lambda _: True, informative=True),
    )
    labels = list(dict.fromkeys(label for d in paper.MAIN for label in findings.labels("main", d) if label != CONSTANT))
    columns = [
        *([number(found.get(label)) for label in labels] for found in ours),
        *(
            [number(found.get(paper.method_of(label))) for label in labels]
            for found in (paper.RANKS["main"], recomputed)
        ),
    ]
    marked = [emphasised(column, lowest=True, ranked=[True] * len(labels)) for column in columns]
    datasets = findings.datasets("main")
    return Table(
        "main-ranks",
        "Average rank, the lower the better",
        (
            "method",
            "all rows",
            "GMMD as recommended",
            "GMMD as the paper's",
            "without near-constant",
            "paper, printed",
            "paper, recomputed",
        ),
        tuple((word(label), *entries) for label, *entries in zip(labels, *marked, strict=True)),
        (
            f"Over {5 * len(datasets)} cells: five metrics on {listed([TITLES[d] for d in datasets])}; ties share "
            "their place. All rows: GMMD and GMMD-S take part twice; then with one variant of them only, as in the "
            "paper; then without the results that are near constant. The paper's ranks are as printed, and recomputed "
            "from its numbers.",
        ),
    )


def target(findings: Findings) -> Table:
    """Return the recommended methods beside the better of the paper's two, in every cell."""
    rows, met = [], dict.fromkeys((*paper.OURS, "better"), 0)
    for dataset in findings.datasets("main"):
        found = findings.means("main", dataset, paper.OURS)
        for metric in METRICS:
            goal = paper.target(dataset, metric)
            values = {label: row[metric] for label, row in found.items()}
            if values:
                values["better"] = min(values.values()) if metric in LOWER_IS_BETTER else max(values.values())
            entries: list[Entry] = []
            for label in met:
                value = values.get(label)
                is_met = value is not None and not is_better(goal, value, metric)
                met[label] += is_met
                entries += [number(value), word("–" if value is None else "yes" if is_met else "no")]
            rows.append((word(TITLES[dataset]), word(METRIC_NAMES[metric]), number(goal), *entries))
    counts = [entry for label in met for entry in (word(""), word(f"{met[label]} of {len(rows)}"))]
    labels = [*paper.OURS, "better of both"]
    return Table(
        "main-target",
        "GMMD and GMMD-S as we recommend them against the better of the paper's two",
        ("data set", "metric", "paper's better", *(name for label in labels for name in (label, f"{label}: met"))),
        (*rows, (word("all"), word(""), word(""), *counts)),
        ("Met: at least as good as the better of the paper's GMMD and GMMD-S in this cell, to two decimals.",),
        words=2,
    )


def count_met(findings: Findings) -> tuple[int, int]:
    """Return in how many cells the better of our two meets the paper's, and of how many."""
    *cells, _ = target(findings).rows
    return sum(row[-1].text == "yes" for row in cells), len(cells)


def configurations(findings: Findings) -> list[Table]:
    """Return what validation chose for each method, as far as it is not the method's default."""
    rows = []
    for dataset in findings.datasets("main"):
        for finding in findings.of("main", dataset):
            if finding.cell.label == CONSTANT:
                continue
            candidates = list(finding.cell.candidates)
            place = f"{1 + candidates.index(finding.chosen.configuration)} of {len(candidates)}"
            record = finding.chosen.records[0]
            settings = ", ".join(_settings(record))
            rows.append((TITLES[dataset], finding.cell.label, place, record["scale"], settings or "defaults"))
    table = Table(
        "main-configurations",
        "What validation chose in the main table",
        ("data set", "method", "candidate", "features", "settings that are not the method's defaults"),
        tuple(tuple(map(word, row)) for row in rows),
        ("Candidates are compared by the mean of AUC + F1 + ACC - ΔDP - ΔEO on the validation nodes.",),
        words=5,
    )
    return [table]


def _settings(record: Record) -> Iterable[str]:
    from fairpass.methods import method

    default = method(record["method"])()
    for name, value in record["parameters"].items():
        if value != default.hyperparameters[name]:
            yield f"{name}={_in_words(value)}"
    usual = default.default_training().to_dict()
    for name, value in record["training"].items():
        if name not in ("seed", "device", "track_discrepancy") and value != usual[name]:
            yield f"{name}={_in_words(value)}"


def _in_words(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if value is None else str(value)
