"""Whether a limit on unfairness holds for the people a model is used on, shown from a sample of them.

A model is within a limit on the people it was checked with, or it is not. That it is within the limit for others too
takes a margin, which depends on their number. So an answer is "shown" (it holds, and the chance of saying so wrongly is
at most 1 - confidence), "violated" (it does not hold, with the same chance of error), or "not shown".

The people must be a random sample of those the model is used on, and must have had no part in making or choosing it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, get_args

from fairpass.documents import STRICT, Count, validate
from fairpass.errors import DataError
from fairpass.files import finite
from fairpass.metrics.evaluation import is_near_constant
from fairpass.metrics.inputs import Names, Sample, Values
from fairpass.metrics.limits import LIMITS, Check, CheckedOn, Comparison, GroupCount, LimitKind, Verdict, check_limits

ASSUMPTION = (
    "The people checked are taken to be a random sample of those the model is used on. Nodes of a graph are not "
    "independent, but a random split makes them exchangeable. Nothing is said of people who differ from them, or of "
    "later times."
)
_CROSS_FITTED = (
    " Labels are few, so the check is about the way the model was made: for each fold of the people, another model was "
    "made in the same way from the other folds. The delivered model is taken to be like them."
)


@dataclass(frozen=True)
class Promise:
    """The answers for all limits that were asked for."""

    __pydantic_config__ = STRICT

    checks: tuple[Check, ...]
    confidence: float
    on: CheckedOn
    people: Count
    candidates: Count = 1  # models that were checked before one was taken
    warning: str = ""  # why the answers may mean little

    @property
    def verdict(self) -> Verdict:
        """The worst of the answers."""
        return max((check.verdict for check in self.checks), key=get_args(Verdict).index)

    @property
    def sentence(self) -> str:
        return " ".join([*(check.sentence for check in self.checks), *filter(None, [self.warning])])

    @property
    def assumption(self) -> str:
        return ASSUMPTION + (_CROSS_FITTED if self.on == "cross-fitting" else "")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; `from_dict` is the inverse."""
        checks = [{**asdict(each), "counts": [count._asdict() for count in each.counts]} for each in self.checks]
        words = {"verdict": self.verdict, "sentence": self.sentence, "assumption": self.assumption}
        plain: dict[str, Any] = finite({**words, **asdict(self), "checks": checks})
        return plain

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Promise":
        """Read what `to_dict` returned; raise `ValueError` if it is something else."""
        found = validate({each.name: values[each.name] for each in fields(cls) if each.name in values}, cls)
        if not found.checks:
            raise ValueError("'checks' must have an answer for a limit (got none)")
        return found


def check_promise(
    y: Values,
    pred: Values,
    *,
    sens: Values,
    limits: Mapping[str, float | None],
    confidence: float = 0.95,
    group_names: Names = None,
    label_names: Names = None,
    on: CheckedOn = "safety",
) -> Promise:
    """Check predictions for people who had no part in making or choosing the model.

    The tests are exact for two binomial samples (see `fairpass.metrics.two_rates`). A limit is shown if every pair of
    groups, in both directions and for every label, is shown to be within it, each with the confidence asked for: no
    correction is needed, because all of them must be within. It is violated if one pair is shown to be beyond it, with
    Bonferroni's correction for all pairs and limits. A near-constant model keeps most limits, so a warning says so.

    Args:
        y: Labels `[N]`.
        pred: Predicted labels `[N]`.
        sens: Groups `[N]`; people of unknown group (negative) do not count.
        limits: Some of `max_dp`, `max_eo` (largest difference, a fraction) and `min_impact_ratio` (smallest ratio of
            two groups' shares).
        confidence: How sure an answer other than "not shown" has to be.
        on: Which people these are.
    """
    if on not in get_args(CheckedOn):
        raise ValueError(f"'on' must be one of {', '.join(get_args(CheckedOn))} (got {on!r})")
    asked = check_limits(limits, confidence)
    if not asked:
        raise ValueError(f"'limits' must have at least one of {', '.join(LIMITS)} (got none)")
    sample = Sample(y, pred, sens, group_names, label_names)
    if len(sample.nodes.groups) < 2:
        raise DataError(f"'sens' must have two groups or more (got {len(sample.nodes.groups)})")
    people = int((sample.sens >= 0).sum())
    checks = tuple(
        Comparison(
            kind=LIMITS[name],
            limit=limit,
            error=1 - confidence,
            counts=list(group_counts(sample, LIMITS[name])),
            people=people,
            on=on,
            limits=len(asked),
        ).check()
        for name, limit in asked.items()
    )
    return Promise(checks, confidence, on, people, warning=_warning(sample))


def _warning(sample: Sample) -> str:
    if not is_near_constant(sample):
        return ""
    counts = sample.pred.bincount()
    label, share = sample.nodes.labels[int(counts.argmax())], 100 * float(counts.max()) / sample.nodes.count
    return (
        f"Beware: {label!r} is predicted for {share:.1f} % of these people. A model that decides alike for everybody "
        "keeps every limit on differences, and is of no use."
    )


def group_counts(sample: Sample, kind: LimitKind) -> Iterator[GroupCount]:
    """Yield for each label and group the people a limit is about, and how many of them are predicted so."""
    nodes, selected = sample.nodes, sample.counts.selected
    for place, c in enumerate(nodes.classes):
        for number, group in enumerate(nodes.groups):
            cells = selected[place, number], nodes.total[place, number]
            chosen, people = (int(each[1] if kind.among_positives else each.sum()) for each in cells)
            yield GroupCount(group, nodes.labels[c], chosen, people)
