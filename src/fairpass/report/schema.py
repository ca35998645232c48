"""The schema of evidence: every entry as plain values with bounds; `consistency.py` compares entries with each other.

Entries that a type of the library describes, such as an evaluation or the statistics of a graph, are read by that type
and kept as it writes them. So records of older versions get the entries of the current one.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, Protocol

from pydantic import AfterValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic asks for it before Python 3.12

from fairpass.datasets.bias import BiasCheck
from fairpass.datasets.graph_gain import GraphGain
from fairpass.datasets.statistics import GraphStatistics
from fairpass.documents import STRICT, Count, Values, validate, within_one
from fairpass.files import finite
from fairpass.metrics import Evaluation, GroupThresholds
from fairpass.metrics.promise import Promise

_record = with_config(STRICT)
_open_record = with_config(ConfigDict(**{**STRICT, "extra": "allow"}))

Fraction = Annotated[float, AfterValidator(within_one)]
Drawn = Annotated[float, Field(ge=-1e300, le=1e300)]  # what a chart can show
Positive = Annotated[int, Field(ge=1)]
Estimated = Annotated[list[float | None], Field(min_length=3, max_length=3)]  # a number and the ends of its interval
Table = list[list[Count]]  # people by true label (rows) and predicted label (columns)


class _Written(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def _as(build: Callable[[Values], _Written]) -> AfterValidator:
    """Let a type read plain values, and keep what it writes."""
    return AfterValidator(lambda values: finite(build(values).to_dict()))


@_record
class _ToldCount(TypedDict):
    """A `fairpass.metrics.limits.GroupCount`; its numbers are None if the group is too small to be shown."""

    group: str
    label: str
    selected: Count | None
    people: Count | None


@_open_record
class _Check(TypedDict):
    counts: list[_ToldCount]


@_open_record
class _Checks(TypedDict):
    checks: list[_Check]


def _promise(values: Values) -> Values:
    """Read a promise by its own type, which does not allow counts that are None."""
    stored = validate(values, _Checks)["checks"]
    told = [[each for each in check["counts"] if each["people"] is not None] for check in stored]
    checks = [{**check, "counts": counts} for check, counts in zip(stored, told, strict=True)]
    made = Promise.from_dict({**values, "checks": checks}).to_dict()
    return {**made, "checks": [{**a, "counts": b["counts"]} for a, b in zip(made["checks"], stored, strict=True)]}


PromiseRecord = Annotated[Values, AfterValidator(_promise)]


@_open_record
class DataFile(TypedDict):
    """A file that a graph was made from."""

    path: str
    sha256: NotRequired[str | None]


@_open_record
class Provenance(TypedDict, total=False):
    """Where a graph comes from; whoever makes a graph may add to it."""

    nodes: Any  # of tables: their name, and the digest of the file
    edges: Any
    files: list[DataFile] | None
    caveats: list[str] | None
    options: Values | None


@_record
class Split(TypedDict):
    """The nodes of one split, and how many of each group (rows) have each label; None for a small group."""

    name: str
    nodes: Count
    labelled: Count
    cells: list[list[Count] | None]


@_record
class GraphRecord(TypedDict):
    """The graph: where it comes from, its sizes and names, its splits."""

    provenance: Provenance
    fingerprint: str
    nodes: Annotated[int, Field(ge=1, le=10**12)]  # for more people, intervals of ratios are not computed reliably
    edges: Count
    features: Count
    labels: Annotated[list[str], Field(min_length=2)]
    groups: Annotated[list[str], Field(min_length=1)]
    small: NotRequired[list[str]]  # this and the next are missing in records of version 0.2 and earlier
    left_out: NotRequired[Count]
    splits: list[Split]


@_record
class Bias(TypedDict):
    """The graph before training."""

    statistics: Annotated[Values, _as(partial(validate, schema=GraphStatistics))]
    findings: list[Annotated[Values, _as(partial(validate, schema=BiasCheck))]]
    graph_gain: NotRequired[Annotated[Values, _as(GraphGain.from_dict)]]  # not in older records


@_record
class Confusion(TypedDict):
    """The people of one group."""

    group: str
    counts: Table


@_record
class Histogram(TypedDict):
    """The scores of one group for one label, in bins of equal width."""

    label: str
    group: str
    counts: list[Count]


@_record
class Run(TypedDict):
    """One fitted model on the test nodes."""

    seed: Count
    epoch: Count
    epochs: Count
    threshold: Fraction | None
    group_thresholds: NotRequired[Annotated[Values, _as(GroupThresholds.from_dict)] | None]  # not in older records
    evaluation: Annotated[Values, _as(Evaluation.from_dict)]
    predicted: list[Count]  # by label
    confusion: list[Confusion]
    histograms: list[Histogram]
    history: dict[str, list[Drawn | None]]  # columns of some epochs, `epoch` among them


@_record
class ThresholdCell(TypedDict):
    """The people of one group (None: all small groups together) with one label."""

    group: str | None
    label: Literal[0, 1]
    counts: list[Count]  # `counts[k]` people have a score above the first `k` thresholds only


@_record
class ThresholdCounts(TypedDict):
    """The counts behind the metrics at every threshold that the page offers."""

    thresholds: list[Fraction]
    own: Fraction
    cells: list[ThresholdCell]


@_record
class Method(TypedDict):
    """A method with its settings, warnings about it, and its runs, one for each seed."""

    name: str
    method: str
    summary: str
    is_reference: bool
    parameters: Values
    training: Values
    flags: list[str]
    thresholds: ThresholdCounts | None
    runs: Annotated[list[Run], Field(min_length=1)]


@_record
class TriedPoint(TypedDict):
    """A `fairpass.tuning.Point`, its place between utility and unfairness, and whether it was taken."""

    method: str
    parameters: Values
    training: Values
    validation: dict[str, Fraction | None]
    test: dict[str, Fraction | None] | None
    near_constant: bool
    utility: Fraction | None
    unfairness: Fraction | None
    front: bool
    chosen: bool


@_record
class Person(TypedDict):
    """A test node: labels and groups are indices, None if unknown; predictions are by method."""

    id: str
    label: Count | None
    group: Count | None
    predicted: dict[str, Count]


@_record
class Neighbour(Person):
    """A neighbour, and how similar it is to the centre by each method."""

    similarity: dict[str, Fraction]


@_record
class Case(TypedDict):
    """A test node with some of its neighbours."""

    centre: Person
    degree: Count
    neighbours: list[Neighbour]


@_record
class Neighbourhoods(TypedDict, total=False):
    """A few test nodes with their neighbours; empty unless people were to be included."""

    methods: list[str]
    cases: list[Case]


@_record
class Theorem(TypedDict):
    """A `fairpass.theory.Bound` on the graph."""

    theorem: str
    measured: float | None
    bound: float | None
    holds: bool
    ratio: float | None
    terms: dict[str, float | None]


@_record
class Distance(TypedDict):
    """How far apart the groups' logits are with one method; the bound is for two groups."""

    name: str
    mmd2: float
    similarity: float
    bound: float | None


@_record
class Theory(TypedDict):
    """The theorems' bounds beside what they bound, with a note where they do not apply."""

    alpha: float
    theorems: list[Theorem]
    note: str
    methods: list[Distance]


@_record
class ScoreBin(TypedDict):
    """People whose score is in one part of the range; `fairpass.metrics.group_figures.CalibrationBin`."""

    low: Fraction
    high: Fraction
    people: Positive
    mean_score: Fraction
    positives: Count


@_record
class GroupScores(TypedDict):
    """The scores of one group for one label."""

    label: str
    above_median: Count
    mean_score: Fraction
    share: Fraction
    in_the_large: Estimated
    bins: list[ScoreBin]


@_record
class ScoredConfusion(Confusion):
    """The people of one group, and their scores for each label."""

    scores: list[GroupScores]


@_record
class Breakdown(TypedDict):
    """The people that the delivered model was tested on, by one attribute; see `breakdown.py`."""

    attribute: str
    groups: list[ScoredConfusion]
    small: list[str]
    partial: list[str]
    unknown: Count
    not_told: Count


@_record
class Difference(TypedDict):
    """The metrics of the delivered model minus those of another."""

    against: str
    metrics: dict[str, Estimated]


@_record
class ModelFile(TypedDict):
    """The file of the delivered model."""

    name: str
    sha256: str


Identity = dict[str, str | list[str] | None]
