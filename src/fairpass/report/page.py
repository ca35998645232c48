"""One self-contained HTML page from evidence: it makes no network requests."""

import os
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import write_text
from fairpass.report import sections
from fairpass.report.evidence import Evidence
from fairpass.report.overview import Part
from fairpass.report.templating import environment


def write_report(evidences: Sequence[Evidence], path: str | os.PathLike[str]) -> Path:
    """Write one page; several pieces of evidence follow each other on it."""
    return write_text(path, render(evidences))


def render(evidences: Sequence[Evidence]) -> str:
    """Return the page: the same evidence gives the same page."""
    if not evidences:
        raise DataError("'evidences' must hold at least one (got none)")
    templates = Path(__file__).parent / "templates"
    style, script = (Markup((templates / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    return (
        environment()
        .get_template("page.html")
        .render(
            parts=[Part(evidence, f"r{place}") for place, evidence in enumerate(evidences, 1)],
            sections=sections.SECTIONS,
            style=style,
            script=script,
            version=__version__,
        )
    )
