"""The first screen in words: how many of a hundred people of each group are selected, and what the numbers can show."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairpass.metrics.group_figures import GroupCounts, WidestGap
from fairpass.metrics.proportions import Estimate
from fairpass.report.evidence import Evidence
from fairpass.report.figures import FigureTable, widest
from fairpass.report.text import listed, plural, points

_PLURALS = {"male": "men", "female": "women", "man": "men", "woman": "women"}
_MOST_GROUPS = 4  # in one sentence; of more, the pair that differs most
_FEW = 0.05  # rates below it are said with a decimal
# Metrics in a sentence about two models: key, name, and what more and less of it are called.
_CHANGES = (
    ("delta_dp", "difference between groups (ΔDP)", "larger", "smaller"),
    ("acc", "accuracy", "higher", "lower"),
)
_VERDICTS = {"shown": ("good", "shown"), "not shown": ("warn", "not shown"), "violated": ("bad", "violated")}
METRIC_WORDS = {
    "delta_dp": "difference in selection rates (demographic parity, ΔDP)",
    "delta_eo": "difference in how often a true label is found (equal opportunity, ΔEO)",
    "impact_ratio": "ratio of selection rates (impact ratio)",
}

CHECKED_ON = {
    "safety": "a safety set that no model was chosen on",
    "test": "the test people",
    "val": "the validation people",
    "cross-fitting": "by cross-fitting",
}


def people_of(group: str) -> str:
    """Return "men" for "male", and "people of group x" for most."""
    return _PLURALS.get(group.lower(), f"people of group {group}")


class Statement(NamedTuple):
    """Rates of the groups of an attribute in words, and what they can show."""

    rates: str
    gap: str


def statements(evidence: Evidence, tables: Sequence[FigureTable]) -> list[Statement]:
    """Return how many of a hundred people of each group are selected, for each attribute and their intersection."""
    size = len(evidence.labels)
    by_attribute = [tables[start : start + size] for start in range(0, len(tables), size)]
    found = [(table, table.gap) for table in map(widest, by_attribute) if table is not None]
    made = [Statement(_rates(table, gap, size), _gap(gap, size)) for table, gap in found if gap is not None]
    return made or [Statement("No two groups have enough people among the test nodes to be compared.", "")]


def _rates(table: FigureTable, gap: WidestGap, labels: int) -> str:
    shown = [(row.group, row.selection_rate.value) for row in table.rows]
    whole = len(shown) <= _MOST_GROUPS and labels == 1
    if not whole:
        shown = [(each.group, each.selected / each.people) for each in (gap.high, gap.low)]
    digits = 1 if min(rate for _, rate in shown) < _FEW else 0
    (group, rate), *others = shown
    first = f"f 100 {people_of(group)} {100 * rate:.{digits}f} are predicted “{table.label}”"
    rest = listed([f"of 100 {people_of(name)} {100 * rate:.{digits}f}" for name, rate in others])
    if whole:
        return f"O{first}, {rest}."
    where = f" is in “{table.label}”" if labels > 1 else ""
    among = f" among {plural(len(table.rows), 'group')} of {table.attribute}" if len(table.rows) > 2 else ""
    return f"The widest difference{among}{where}: o{first}, {rest}."


def _gap(gap: WidestGap, labels: int) -> str:
    """Return the widest difference between groups with its interval, or that these people cannot show one."""
    sizes, found, compared = _sizes(gap.high, gap.low), gap.difference, gap.pairs * labels
    ends = f"{points(found.low)} to {points(found.high)}"
    strict = "" if compared == 1 else f", widened because {compared} were compared"
    if not found.includes_zero:
        widest = "" if gap.pairs == 1 else "widest "
        return f"The {widest}difference is {points(found.value)} points (95 % interval {ends}{strict}), from {sizes}."
    doubt = (
        f"These {gap.high.people + gap.low.people:,} people cannot show a difference: {points(found.value)} points "
        f"were measured between {sizes}, and the 95 % interval, {ends}{strict}, includes no difference."
    )
    if gap.shown is None:
        return doubt
    other = gap.shown.difference
    where = _sizes(gap.shown.high, gap.shown.low)
    ends = f"{points(other.low)} to {points(other.high)}"
    return f"{doubt} A difference can be shown between {where}: {points(other.value)} points ({ends})."


def _sizes(high: GroupCounts, low: GroupCounts) -> str:
    return f"{high.people:,} {people_of(high.group)} and {low.people:,} {people_of(low.group)}"


def comparison_sentences(evidence: Evidence, rivals: Mapping[str, str]) -> list[str]:
    """Return how the delivered model differs from some others, given with a description each."""
    n, made = evidence.delivered["evaluation"]["n"], []
    for each in evidence.differences:
        if each["against"] in rivals:
            parts = [_change(each["metrics"][key], *words) for key, *words in _CHANGES]
            described = f"{each['against']}{rivals[each['against']]}"
            made.append(f"Compared with {described}, on the same {n:,} people: {'; '.join(filter(None, parts))}.")
    return made


def _change(values: Sequence[float | None], name: str, up: str, down: str) -> str:
    value, low, high = values
    if value is None or low is None or high is None:
        return ""
    if Estimate(value, low, high).includes_zero:
        ends = f"95 % interval {points(low)} to {points(high)}"
        return f"they cannot show a change of the {name} ({points(value)} points, {ends})"
    least, most = sorted((abs(low), abs(high)))
    way = up if value > 0 else down
    return f"the {name} is {points(abs(value))} points {way} (95 % interval {points(least)} to {points(most)})"


def verdict_of(promise: Mapping[str, Any]) -> tuple[str, str]:
    """Return the style of a verdict, and its word; a promise with a warning is never good."""
    style, word = _VERDICTS.get(promise["verdict"], ("warn", str(promise["verdict"])))
    return ("warn" if promise.get("warning") and style == "good" else style), word
