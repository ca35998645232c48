"""The figures of the delivered model, from the counts in its evidence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairpass.metrics.group_figures import FOUR_FIFTHS, GroupCounts, GroupFigures, WidestGap, group_figures, widest_gap
from fairpass.metrics.proportions import UNDEFINED, Estimate, proportion
from fairpass.report.consistency import people_in
from fairpass.report.evidence import Evidence
from fairpass.report.schema import Breakdown, Estimated, GroupScores, ScoredConfusion

# New York City's Local Law 144 lets an auditor leave categories with a smaller share of the people out of the ratios.
LEAST_SHARE = 0.02


@dataclass(frozen=True)
class ScoreBin:
    """People whose score is in one part of the range, and how many of them truly have the label."""

    low: float
    high: float
    people: int
    mean_score: float
    share: Estimate


@dataclass(frozen=True)
class Scores:
    """The scores of one group."""

    group: str
    mean_score: float
    share: float
    in_the_large: Estimate  # mean score minus share
    bins: tuple[ScoreBin, ...]


@dataclass(frozen=True)
class FigureTable:
    """The groups of one attribute, seen from one label. Rates over fewer than `min_group` people are undefined."""

    attribute: str
    label: str
    rows: tuple[GroupFigures, ...]
    scoring: tuple[GroupFigures, ...]  # with "scores above the median" in place of "selected"; may be empty
    scores: tuple[Scores, ...]  # may be empty
    gap: WidestGap | None  # of selection rates
    opportunity_gap: WidestGap | None  # of selection rates among people who have the label
    small: list[str]  # groups with fewer than `min_group` people, which are not shown
    partial: list[str]  # groups without the people of a small intersection
    unknown: int
    not_told: int
    min_group: int

    @property
    def people(self) -> int:
        return sum(row.people for row in self.rows)

    @property
    def reference(self) -> GroupFigures | None:
        return next((row for row in self.rows if row.is_reference), None)

    @property
    def adverse(self) -> list[GroupFigures]:
        """Groups whose impact ratio is below four fifths."""
        return [row for row in self.rows if row.impact_ratio.value < FOUR_FIFTHS]

    @property
    def in_doubt(self) -> list[GroupFigures]:
        """Those of them whose interval reaches four fifths."""
        return [row for row in self.adverse if row.impact_ratio.high >= FOUR_FIFTHS]


def figure_tables(evidence: Evidence) -> list[FigureTable]:
    """Return a table for each attribute and label: every attribute alone, then their intersection."""
    breakdowns = evidence.breakdowns or [_from_confusion(evidence)]
    first, *others = breakdowns
    return [_table(evidence, each, label) for each in (*others, first) for label in evidence.labels]


def widest(tables: Sequence[FigureTable]) -> FigureTable | None:
    """Return the table with the widest difference between selection rates; None if no groups can be compared."""
    compared = [table for table in tables if table.gap is not None]
    return max(compared, key=lambda table: table.gap.difference.value if table.gap else 0.0, default=None)


def of_all_groups(evidence: Evidence, tables: Sequence[FigureTable]) -> list[FigureTable]:
    """Return the tables of the groups as the model was given them: of the attribute, or of the intersection."""
    return list(tables[-len(evidence.labels) :])


def as_estimate(stored: Estimated) -> Estimate:
    value, low, high = (math.nan if each is None else each for each in stored)
    return Estimate(value, low, high)


def _from_confusion(evidence: Evidence) -> Breakdown:
    """Return the counts of evidence of an older version, which has no scores and may have small groups."""
    known = [each for each in evidence.delivered["confusion"] if each["group"] in evidence.data["groups"]]
    sizes = {each["group"]: people_in(each["counts"]) for each in known}
    told: list[ScoredConfusion] = [
        {**each, "scores": []} for each in known if sizes[each["group"]] >= evidence.min_group
    ]
    all_people = evidence.delivered["evaluation"]["n"]
    return {
        "attribute": "group",
        "groups": told,
        "small": [name for name, size in sizes.items() if size < evidence.min_group],
        "partial": [],
        "unknown": all_people - sum(sizes.values()),
        "not_told": all_people - sum(sizes[each["group"]] for each in told),
    }


def _table(evidence: Evidence, breakdown: Breakdown, label: str) -> FigureTable:
    place = evidence.data["labels"].index(label)
    counts, above, scores = [], [], []
    for group in breakdown["groups"]:
        confusion = group["counts"]
        own = GroupCounts(
            group=group["group"],
            people=people_in(confusion),
            positives=sum(confusion[place]),
            selected=sum(row[place] for row in confusion),
            true=confusion[place][place],
        )
        counts.append(own)
        for found in group["scores"]:
            if found["label"] == label:
                above.append(replace(own, selected=found["above_median"], true=0, positives=0))
                scores.append(_scores(own.group, found))
    rows = tuple(_told(row, evidence.min_group) for row in group_figures(counts, least_share=LEAST_SHARE))
    return FigureTable(
        attribute=breakdown["attribute"],
        label=label,
        rows=rows,
        scoring=group_figures(above, least_share=LEAST_SHARE),
        scores=tuple(scores),
        gap=widest_gap(counts, comparisons=len(evidence.labels)),
        opportunity_gap=widest_gap(
            [replace(each, people=each.positives, selected=each.true) for each in counts],
            comparisons=len(evidence.labels),
        ),
        small=breakdown["small"],
        partial=breakdown["partial"],
        unknown=breakdown["unknown"],
        not_told=breakdown["not_told"],
        min_group=evidence.min_group,
    )


def _told(row: GroupFigures, min_group: int) -> GroupFigures:
    """Return a group without the rates of fewer people than may be told."""
    sizes = {
        "false_positive_rate": row.people - row.positives,
        "false_negative_rate": row.positives,
        "precision": row.selected,
    }
    hidden: dict[str, Any] = {name: UNDEFINED for name, size in sizes.items() if size < min_group}
    return replace(row, **hidden)


def _scores(group: str, found: GroupScores) -> Scores:
    bins = tuple(
        ScoreBin(
            each["low"], each["high"], each["people"], each["mean_score"], proportion(each["positives"], each["people"])
        )
        for each in found["bins"]
    )
    return Scores(group, found["mean_score"], found["share"], as_estimate(found["in_the_large"]), bins)
