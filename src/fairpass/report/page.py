"""One HTML page from evidence: everything is inside it, and it asks nobody for anything."""

import json
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.report import figures, summary
from fairpass.report.evidence import Evidence
from fairpass.report.words import number, percent, plural

_TEMPLATES = "templates"


def write_report(evidences: Sequence[Evidence], path: str | os.PathLike[str]) -> Path:
    """Write one page with everything that was found; several pieces of evidence follow each other on it."""
    return write_text(path, render(evidences))


def render(evidences: Sequence[Evidence]) -> str:
    """Return the page: the same evidence gives the same page."""
    if not evidences:
        raise DataError("'evidences' must hold at least one (got none)")
    environment = _environment()
    page = environment.get_template("page.html")
    return page.render(
        parts=[_part(evidence, f"r{place}") for place, evidence in enumerate(evidences, 1)],
        style=Markup(_source("page.css")),
        script=Markup(_source("page.js")),
        version=__version__,
    )


def _part(evidence: Evidence, uid: str) -> dict[str, Any]:
    """Return what the template needs of one piece of evidence."""
    rows = summary.overviews(evidence)
    chosen = next(row for row in rows if row.name == evidence.chosen)
    return {
        "uid": uid,
        "evidence": evidence,
        "rows": rows,
        "chosen": chosen,
        "plain": next((row for row in rows if row.name == summary.plain_method(evidence)), None),
        "sentences": summary.sentences(evidence),
        "cost": summary.cost_of_choice(evidence),
        "binary": len(evidence.data["labels"]) == 2,
        "metrics": summary.SHOWN,
        "figures": {
            "metrics": figures.metric_figures(rows, chosen.name),
            "scores": {row.name: figures.score_figures(row) for row in rows if row.number >= 0},
            "tradeoff": figures.tradeoff_figures(evidence, rows),
            "curves": figures.curve_figures(rows, chosen.name),
        },
        "legends": {
            "points": figures.method_keys(rows, chosen.name, line=False),
            "lines": figures.method_keys([row for row in rows if row.number >= 0], chosen.name, line=True),
            "groups": figures.group_keys(evidence),
        },
        "interactive": _interactive(evidence, rows),
    }


def _interactive(evidence: Evidence, rows: Sequence[summary.Overview]) -> dict[str, Any]:
    """Return what the page's own program needs: counts by threshold, and the neighbourhoods."""
    return {
        "chosen": evidence.chosen,
        "labels": evidence.data["labels"],
        "groups": evidence.data["groups"],
        "thresholds": {row.name: row.record["thresholds"] for row in rows if row.record["thresholds"]},
        "neighbourhoods": evidence.neighbourhoods,
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fairpass.report", _TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "number": number, "plain": _plain}
    environment.globals["plural"] = plural
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "sort_keys": False, "ensure_ascii": False}
    return environment


def _source(name: str) -> str:
    return (Path(__file__).parent / _TEMPLATES / name).read_text(encoding="utf-8")


def _plain(value: Any) -> str:
    """Return a setting or a piece of provenance as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
