"""`report.json`: the figures of the page for programs. Keys are only ever added; `format` changes if one changes."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairpass import __version__
from fairpass.documents import read_document, write_document
from fairpass.errors import DataError
from fairpass.files import finite
from fairpass.metrics import catalog
from fairpass.metrics.group_figures import GroupFigures
from fairpass.metrics.proportions import Estimate
from fairpass.report.evidence import Evidence
from fairpass.report.figures import FigureTable, as_estimate
from fairpass.report.identity import APPROVAL, FIELDS, data_files, stated
from fairpass.report.part import Part

KIND, FORMAT = "fairpass report", 1
_RATES = ("selection_rate", "impact_ratio", "false_positive_rate", "false_negative_rate", "precision")


def write_figures(evidences: Sequence[Evidence], path: str | os.PathLike[str]) -> Path:
    """Write the figures of some audits, one entry of `audits` each."""
    audits = [figures(evidence) for evidence in evidences]
    return write_document(path, {"kind": KIND, "format": FORMAT, "version": __version__, "audits": audits})


def are_figures(path: Path) -> bool:
    """Return whether a file has the figures of a report."""
    try:
        return bool(read_document(path, KIND, dict))
    except DataError:
        return False


def figures(evidence: Evidence) -> dict[str, Any]:
    """Return the figures of one audit as plain values: fractions, None where undefined or about too few people."""
    part = Part(evidence)
    run = evidence.delivered
    document = {
        "title": evidence.title,
        "question": evidence.question,
        "made": evidence.made,
        "in_words": part.sentences(),
        "warnings": part.chosen.record["flags"],
        "identity": {key: stated(evidence, key) for key in (*FIELDS, *APPROVAL)},
        "model": {
            "name": evidence.chosen,
            "method": part.chosen.record["method"],
            "choice": evidence.choice,
            "seed": run["seed"],
            "threshold": run["threshold"],
            "file": None if evidence.model_file is None else evidence.model_file["name"],
            "sha256": None if evidence.model_file is None else evidence.model_file["sha256"],
        },
        "data": {
            "fingerprint": evidence.data["fingerprint"],
            "files": data_files(evidence),
            "nodes": evidence.data["nodes"],
            "edges": evidence.data["edges"],
            "labels": evidence.data["labels"],
            "groups": evidence.data["groups"],
            "test_people": part.people,
            "min_group": evidence.min_group,
        },
        "promise": evidence.promise,
        "metrics": [_metric(part, metric) for metric in catalog.METRICS],
        "differences": [
            {"against": each["against"], "metric": key, **_named("difference", as_estimate(values))}
            for each in evidence.differences
            for key, values in each["metrics"].items()
        ],
        "attributes": [_attribute(table) for table in part.tables],
        "groups": [_group(table, place) for table in part.tables for place in range(len(table.rows))],
        "calibration": [
            {
                "attribute": table.attribute,
                "label": table.label,
                "group": scores.group,
                "low": each.low,
                "high": each.high,
                "people": each.people,
                "mean_score": each.mean_score,
                **_named("share", each.share),
            }
            for table in part.tables
            for scores in table.scores
            for each in scores.bins
        ],
    }
    plain: dict[str, Any] = finite(document)
    return plain


def _metric(part: Part, metric: catalog.Metric) -> dict[str, Any]:
    """Return a metric of the delivered model, its interval, and its values with other seeds."""
    low, high = part.chosen.interval(metric)
    value, each = part.chosen.value(metric), part.chosen.each(metric)
    ends = [None if end is None else end / 100 for end in (value, low, high)]
    seeds = [None if other is None else other / 100 for other in each]
    return {"metric": metric.key, "value": ends[0], "low": ends[1], "high": ends[2], "by_seed": seeds}


def _attribute(table: FigureTable) -> dict[str, Any]:
    reference = table.reference
    return {
        "attribute": table.attribute,
        "label": table.label,
        "people": table.people,
        "reference": None if reference is None else reference.group,
        "unknown": table.unknown,
        "suppressed": table.small,  # groups of fewer than min_group people
        "partial": table.partial,  # groups without the people of a small intersection
    }


def _group(table: FigureTable, place: int) -> dict[str, Any]:
    row: GroupFigures = table.rows[place]
    made: dict[str, Any] = {
        "attribute": table.attribute,
        "label": table.label,
        "group": row.group,
        "people": row.people,
        "positives": row.positives,
        "selected": row.selected,
        "is_reference": row.is_reference,
        "under_2_percent": row.excluded,
    }
    for rate in _RATES:
        made |= _named(rate, getattr(row, rate))
    if table.scores:
        scored, scores = table.scoring[place], table.scores[place]
        made["scored_above_median"] = scored.selected
        made |= _named("scoring_rate", scored.selection_rate) | _named("scoring_impact_ratio", scored.impact_ratio)
        made |= {"mean_score": scores.mean_score} | _named("calibration_in_the_large", scores.in_the_large)
    return made


def _named(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
