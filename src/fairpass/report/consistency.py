"""Checks across entries that the schema cannot express.

Names refer to something, and parallel lists have the same length.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairpass.metrics import catalog
from fairpass.report.schema import Breakdown, Difference, GraphRecord, Method, Run, Table

if TYPE_CHECKING:
    from fairpass.report.evidence import Evidence

Faults = Iterator[tuple[str, str]]  # a place, and what must be there


def check_consistency(evidence: "Evidence") -> None:
    """Raise `ValueError` naming the first entry that contradicts another."""
    for place, needed in _faults(evidence):
        raise ValueError(f"'{place}' is wrong: it must {needed}")


def people_in(counts: Table) -> int:
    return sum(map(sum, counts))


def _faults(evidence: "Evidence") -> Faults:
    data, labels, names = evidence.data, evidence.data["labels"], [method["name"] for method in evidence.methods]
    if len(set(names)) < len(names):
        yield "methods", "have each name once"
    if evidence.chosen not in names:
        yield "chosen", "be the name of a method"
    if evidence.favourable is not None and evidence.favourable not in labels:
        yield "favourable", "be a label"
    yield from _of_splits(data)
    for i, method in enumerate(evidence.methods):
        yield from _of_method(f"methods.{i}", method, labels)
    tested = evidence.delivered["evaluation"]["n"] + data.get("left_out", 0)
    if tested > data["nodes"]:
        yield "data.nodes", "be at least the number of test nodes"
    for i, breakdown in enumerate(evidence.breakdowns):
        yield from _of_breakdown(f"breakdowns.{i}", breakdown, labels, tested)
    yield from _of_differences(evidence.differences, names)
    if any(each["name"] not in names for each in evidence.theory["methods"]):
        yield "theory.methods", "have names of methods"
    if evidence.neighbourhoods:
        yield from _of_neighbourhoods(evidence, names)


def _of_splits(data: GraphRecord) -> Faults:
    for i, split in enumerate(data["splits"]):
        cells = [each for each in split["cells"] if each is not None]
        if len(split["cells"]) != len(data["groups"]) or any(len(each) != len(data["labels"]) for each in cells):
            yield f"data.splits.{i}.cells", "have a row for each group and a column for each label"


def _of_differences(differences: Sequence[Difference], names: Sequence[str]) -> Faults:
    for i, difference in enumerate(differences):
        if difference["against"] not in names:
            yield f"differences.{i}.against", "be the name of a method"
        if not {metric.key for metric in catalog.SELECTION} <= difference["metrics"].keys():
            yield f"differences.{i}.metrics", "have every metric that models are selected by"


def _is_square(counts: Table, labels: Sequence[str]) -> bool:
    return len(counts) == len(labels) and all(len(row) == len(labels) for row in counts)


def _of_method(place: str, method: Method, labels: Sequence[str]) -> Faults:
    for i, run in enumerate(method["runs"]):
        yield from _of_run(f"{place}.runs.{i}", run, labels)
    if (found := method["thresholds"]) is not None:
        if len(labels) != 2:
            yield f"{place}.thresholds", "be null if there are more than two labels"
        if found["own"] not in found["thresholds"]:
            yield f"{place}.thresholds.own", "be one of the thresholds"
        for i, cell in enumerate(found["cells"]):
            if len(cell["counts"]) != len(found["thresholds"]) + 1:
                yield f"{place}.thresholds.cells.{i}.counts", "have a number below, between and above the thresholds"


def _of_run(place: str, run: Run, labels: Sequence[str]) -> Faults:
    if len(run["predicted"]) != len(labels):
        yield f"{place}.predicted", "have a number for each label"
    for i, confusion in enumerate(run["confusion"]):
        if not _is_square(confusion["counts"], labels):
            yield f"{place}.confusion.{i}.counts", "have a row and a column for each label"
    if sum(people_in(each["counts"]) for each in run["confusion"]) != run["evaluation"]["n"]:
        yield f"{place}.confusion", "have as many people as the evaluation"
    if any(each["label"] not in labels for each in run["histograms"]):
        yield f"{place}.histograms", "be about labels of the graph"
    if "epoch" not in run["history"] or len({len(column) for column in run["history"].values()}) > 1:
        yield f"{place}.history", "have columns of one length, 'epoch' among them"


def _of_breakdown(place: str, breakdown: Breakdown, labels: Sequence[str], tested: int) -> Faults:
    for i, group in enumerate(breakdown["groups"]):
        people = people_in(group["counts"])
        if not _is_square(group["counts"], labels):
            yield f"{place}.groups.{i}.counts", "have a row and a column for each label"
        if [each["label"] for each in group["scores"]] != list(labels):
            yield f"{place}.groups.{i}.scores", "be about each label"
        if any(each["above_median"] > people for each in group["scores"]):
            yield f"{place}.groups.{i}.scores", "be about at most as many people as the group has"
        if any(part["positives"] > part["people"] for each in group["scores"] for part in each["bins"]):
            yield f"{place}.groups.{i}.scores", "have bins with at most as many positives as people"
    if sum(people_in(group["counts"]) for group in breakdown["groups"]) + breakdown["not_told"] != tested:
        yield place, "be about all test nodes"


def _of_neighbourhoods(evidence: "Evidence", names: Sequence[str]) -> Faults:
    found, labels, groups = evidence.neighbourhoods, len(evidence.data["labels"]), len(evidence.data["groups"])
    if not {"methods", "cases"} <= found.keys():
        yield "neighbourhoods", "have 'methods' and 'cases', or be empty"
        return
    methods = set(found["methods"])
    if not {evidence.chosen} <= methods <= set(names):
        yield "neighbourhoods.methods", "have names of methods, that of the chosen one among them"
    for i, case in enumerate(found["cases"]):
        for person in (case["centre"], *case["neighbours"]):
            if person["predicted"].keys() != methods:
                yield f"neighbourhoods.cases.{i}", "have predictions of each method"
            if max(person["label"] or 0, *person["predicted"].values()) >= labels or (person["group"] or 0) >= groups:
                yield f"neighbourhoods.cases.{i}", "have labels and groups of the graph"
        if any(each["similarity"].keys() != methods for each in case["neighbours"]):
            yield f"neighbourhoods.cases.{i}", "have similarities by each method"
