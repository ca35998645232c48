"""One limit on the difference between groups: the counts beside it, the tests, the answer, and the sentence."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal, NamedTuple

from scipy import stats

from fairpass.documents import STRICT, Count, Nan
from fairpass.metrics.two_rates import Tally, largest_difference, largest_ratio, p_value_below, smallest_ratio

Verdict = Literal["shown", "not shown", "violated"]  # from the best to the worst
CheckedOn = Literal["safety", "test", "cross-fitting"]

# How likely the limit would be shown with as many people as a "not shown" asks for.
_POWER = 0.8
# A smaller limit, or less room between it and what was measured, would take more people than there are.
_LEAST = 1e-6
_PEOPLE = {"safety": "people of the safety set", "test": "test people", "cross-fitting": "people by cross-fitting"}


class LimitKind(NamedTuple):
    """What a limit is about."""

    title: str
    metric: str  # its key in the catalogue, or "impact_ratio"
    among_positives: bool  # people who truly have the label, or everybody
    is_ratio: bool = False  # at least, instead of at most


LIMITS: Mapping[str, LimitKind] = {
    "max_dp": LimitKind("demographic parity", "delta_dp", among_positives=False),
    "max_eo": LimitKind("equal opportunity", "delta_eo", among_positives=True),
    "min_impact_ratio": LimitKind("impact ratio", "impact_ratio", among_positives=False, is_ratio=True),
}


class GroupCount(NamedTuple):
    """How many people of a group were selected: predicted to have the label."""

    group: str
    label: str
    selected: Count
    people: Count

    @property
    def tally(self) -> Tally:
        return Tally(self.selected, self.people)


@dataclass(frozen=True)
class Check:
    """The answer for one limit; rates and differences are fractions, None where undefined."""

    __pydantic_config__ = STRICT

    metric: str
    limit: float
    verdict: Verdict
    estimate: float | None  # the widest difference between two groups, or the smallest ratio; of a pair that was shown
    # to be beyond the limit, if there is one
    bound: Nan  # with the confidence asked for, every difference is at most this (a ratio: at least)
    low: float | None  # two-sided interval of the widest difference, whichever pair has it
    high: float | None
    high_group: str
    low_group: str
    label: str
    counts: tuple[GroupCount, ...]
    more_people: int | None  # about how many more are needed to show it; None: no number would do
    sentence: str


def check_limits(limits: Mapping[str, float | None], confidence: float = 0.95) -> dict[str, float]:
    """Return the limits that are given; raise `ValueError` in their own words if one is not a fraction."""
    for name, limit in limits.items():
        if name not in LIMITS:
            raise ValueError(f"there is no limit '{name}': it must be one of {', '.join(LIMITS)}")
        if limit is not None and not 0 < limit <= 1:
            raise ValueError(f"'{name}' must be above 0 and at most 1 (got {limit})")
        if limit is not None and limit < _LEAST:
            raise ValueError(f"'{name}' must be at least {_LEAST:g} (got {limit})")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"'confidence' must be at least 0.5 and below 1 (got {confidence})")
    return {name: limit for name, limit in limits.items() if limit is not None}


@dataclass(frozen=True)
class Comparison:
    """The groups' counts beside one limit."""

    kind: LimitKind
    limit: float
    error: float
    counts: Sequence[GroupCount]
    people: int
    on: CheckedOn
    limits: int = 1  # that are asked for together

    @property
    def pairs(self) -> list[tuple[GroupCount, GroupCount]]:
        """Both orders of every two groups, for each label."""
        labels = dict.fromkeys(count.label for count in self.counts)
        return [
            pair for label in labels for pair in permutations([each for each in self.counts if each.label == label], 2)
        ]

    def within(self, first: GroupCount, second: GroupCount, limit: float, error: float) -> bool:
        """Return whether `p_1 - p_0` (or `p_0 / p_1`) is shown to be within a limit."""
        if self.kind.is_ratio:
            return p_value_below(first.tally, second.tally, slope=1 / limit) <= error
        return p_value_below(first.tally, second.tally, shift=limit) <= error

    def beyond(self, first: GroupCount, second: GroupCount, error: float) -> bool:
        if self.kind.is_ratio:
            return p_value_below(second.tally, first.tally, slope=self.limit) <= error
        return p_value_below(first.tally.others, second.tally.others, shift=-self.limit) <= error

    def bound_of(self, first: GroupCount, second: GroupCount, error: float) -> float:
        measure: Callable[[Tally, Tally, float], float] = largest_difference
        if self.kind.is_ratio:
            first, second, measure = second, first, smallest_ratio
        return measure(first.tally, second.tally, error)

    def estimate_of(self, first: GroupCount, second: GroupCount) -> float:
        """Return how far apart two groups are; larger is worse also for a ratio, which is below 1 then."""
        high, low = first.tally.rate, second.tally.rate
        if math.isnan(high) or math.isnan(low):
            return -math.inf
        if self.kind.is_ratio:
            return 1 - low / high if high > 0 else -math.inf
        return high - low

    @property
    def measurable(self) -> bool:
        """Whether all groups have people; a ratio also needs somebody who is selected, for every label."""
        selected = {count.label for count in self.counts if count.selected}
        everywhere = selected == {count.label for count in self.counts}
        return all(count.people for count in self.counts) and (everywhere or not self.kind.is_ratio)

    def violations(self) -> Iterator[tuple[GroupCount, GroupCount]]:
        """Yield the pairs that are shown to be beyond the limit."""
        pairs = self.pairs
        # One pair, for one of the limits, is enough for the answer, so all of them share the error.
        error = self.error / (len(pairs) * self.limits)
        return (pair for pair in pairs if self.beyond(*pair, error))

    def verdict(self) -> Verdict:
        """Return the answer alone, which is quick: the bounds take most of the time."""
        if all(self.within(*pair, self.limit, self.error) for pair in self.pairs):
            return "shown"
        return "violated" if any(True for _ in self.violations()) else "not shown"

    def check(self) -> Check:
        pairs, ratio = self.pairs, self.kind.is_ratio
        verdict = self.verdict()
        shown, bound = verdict == "shown", self._bound(pairs, self.error)
        # The widest pair of all may be of two small groups, of whom nothing was shown.
        of_answer = list(self.violations()) if verdict == "violated" else pairs
        widest = max(of_answer, key=lambda pair: self.estimate_of(*pair))
        # The verdict is that of the tests; the search for the bound has a tolerance.
        if ratio:
            bound = max(bound, self.limit) if shown else min(bound, self.limit)
        else:
            bound = min(bound, self.limit) if shown else max(bound, self.limit)
        estimate: float | None = None
        ends: tuple[float, float] | tuple[None, None] = (None, None)
        if self.measurable:
            gap = self.estimate_of(*widest)
            estimate = 1 - gap if ratio else gap
            ends = self._interval(pairs, widest, estimate)
        more = self._more_people(pairs) if verdict == "not shown" else 0
        first, second = widest
        made = Check(
            metric=self.kind.metric,
            limit=self.limit,
            verdict=verdict,
            estimate=estimate,
            bound=bound,
            low=ends[0],
            high=ends[1],
            high_group=first.group,
            low_group=second.group,
            label=first.label,
            counts=tuple(self.counts),
            more_people=more,
            sentence="",
        )
        return replace(made, sentence=self._sentence(made))

    def _bound(self, pairs: Sequence[tuple[GroupCount, GroupCount]], error: float) -> float:
        """Return the worst bound over all pairs; most are only shown to be within that of another."""
        by_guess = sorted(pairs, key=lambda pair: -self._guess(*pair))
        bound = self.bound_of(*by_guess[0], error)
        for pair in by_guess[1:]:
            inside = bound > 0 if self.kind.is_ratio else bound < 1
            if inside and not self.within(*pair, bound, error):
                worse = min if self.kind.is_ratio else max
                bound = worse(bound, self.bound_of(*pair, error))
        return bound

    def _guess(self, first: GroupCount, second: GroupCount) -> float:
        """Return about how far apart two groups may be, for the order in which they are looked at."""
        a, b = first.tally, second.tally
        if not a.people or not b.people:
            return math.inf
        margin = 2 * math.sqrt(a.variance + b.variance)
        if self.kind.is_ratio:
            return 1 - max(b.smoothed - margin, 0.0) / min(a.smoothed + margin, 1.0)
        return a.smoothed - b.smoothed + margin

    def _interval(
        self, pairs: Sequence[tuple[GroupCount, GroupCount]], widest: tuple[GroupCount, GroupCount], estimate: float
    ) -> tuple[float, float]:
        """Return an interval of the widest true difference, or the smallest true ratio."""
        first, second = (count.tally for count in widest)
        # On the side of the limit no pair may be left out; on the other, this pair was picked among all of them.
        worst, picked = self._bound(pairs, self.error / 2), self.error / 2 / len(pairs)
        if self.kind.is_ratio:
            return min(worst, estimate), max(largest_ratio(second, first, picked), estimate)
        least = -largest_difference(second, first, picked)
        return max(min(least, estimate), 0.0), max(worst, estimate)

    def _more_people(self, pairs: Sequence[tuple[GroupCount, GroupCount]]) -> int | None:
        """Return about how many more people would show the limit, if the measured rates are the true ones."""
        z = float(stats.norm.ppf(1 - self.error) + stats.norm.ppf(_POWER))
        factor = 1.0
        for first, second in pairs:
            a, b = first.tally, second.tally
            if not a.people or not b.people:
                return None
            # p_1 - limit for a difference, r p_1 - p_0 for a ratio: what must be shown to be below zero.
            weight = self.limit if self.kind.is_ratio else 1.0
            room = (0.0 if self.kind.is_ratio else self.limit) - (weight * a.rate - b.rate)
            if room <= _LEAST:
                return None
            factor = max(factor, (z / room) ** 2 * (weight**2 * a.variance + b.variance))
        return _two_digits(max(1.0, self.people * (factor - 1)))

    def _sentence(self, found: Check) -> str:
        confident, where = f"with {100 * (1 - self.error):g} % confidence", f"on {self.people:,} {_PEOPLE[self.on]}"
        several = len({count.label for count in self.counts}) > 1
        # A limit is about every label, a violation and what was measured about one.
        share, of_any = self._share(repr(found.label)), self._share("any one label" if several else repr(found.label))
        value = "it cannot be measured"
        if self.kind.is_ratio:
            subject = f"{of_any} in one group is at least {self.limit:g} times that of any other"
            if found.estimate is not None:
                value = f"measured: {found.estimate:.2f}"
            most = f"{confident} at least {found.bound:.2f}"
            violated = f"{share} in {found.low_group!r} is below {self.limit:g} times that in {found.high_group!r}"
        else:
            points = f"{100 * self.limit:.1f} points"
            subject = f"{of_any} differs by at most {points} between groups"
            if found.estimate is not None:
                value = f"measured: {100 * found.estimate:.1f}"
            most = f"{confident} at most {100 * found.bound:.1f}"
            violated = f"{share} is more than {points} higher in {found.high_group!r} than in {found.low_group!r}"
        if found.verdict == "violated":
            return f"The limit is violated: {violated} ({value}, shown {confident}, {where})."
        of_label = f" for {found.label!r}" if several and found.estimate is not None else ""
        numbers = f"({value}{of_label}, {most}, {where})"
        if found.verdict == "shown":
            return f"It is shown that {subject} {numbers}."
        return f"It is not shown that {subject} {numbers}. {self._needed(found)}"

    def _share(self, label: str) -> str:
        return (
            f"the share of those with {label} who are predicted so"
            if self.kind.among_positives
            else (f"the share predicted {label}")
        )

    def _needed(self, found: Check) -> str:
        """Return what it would take to show a limit."""
        if empty := [count for count in self.counts if not count.people]:
            having = f" with {empty[0].label!r}" if self.kind.among_positives else ""
            return f"The check has nobody of {empty[0].group!r}{having}."
        if found.estimate is None:
            selected = {count.label for count in self.counts if count.selected}
            never = next(count.label for count in self.counts if count.label not in selected)
            return f"Nobody is predicted {never!r}, so there is no ratio."
        if found.more_people is None:
            return "More people would not help: what was measured is no better."
        needed = f"about {found.more_people:,} more labelled people in the check"
        return f"It would take {needed}, if the measured shares are the true ones."


def _two_digits(number: float) -> int:
    """Round up to two digits: more would look exact."""
    unit: int = 10 ** max(0, math.floor(math.log10(number)) - 1)
    return math.ceil(number / unit) * unit
