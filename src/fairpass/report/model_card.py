"""A model card in the form of Hugging Face: YAML for programs, then Markdown for people."""

import json
import math
import os
import re
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fairpass import __version__
from fairpass.files import finite, write_text
from fairpass.metrics import catalog
from fairpass.metrics.proportions import Estimate
from fairpass.plain_text import printable
from fairpass.report import headline
from fairpass.report.evidence import Evidence
from fairpass.report.identity import NOT_STATED, delivery_rows, stated
from fairpass.report.part import Part
from fairpass.report.text import ABSENT, environment, number

# The names of metrics in the field's `evaluate` library, where it has them.
_METRIC_TYPES = {"acc": "accuracy", "auc": "roc_auc", "f1": "f1"}
# What Markdown would read as more than text.
_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def write_model_card(evidence: Evidence, path: str | os.PathLike[str]) -> Path:
    """Write the card of the delivered model; it has no people in it."""
    return write_text(path, printable(render_card(evidence)) + "\n")


def render_card(evidence: Evidence) -> str:
    part = Part(evidence)
    made = environment().overlay()
    made.filters = {**made.filters, "text": as_text, "yaml": _yaml, "decimal": _decimal, "interval": _interval}
    return made.get_template("model_card.md").render(
        part=part,
        e=evidence,
        head=_head(part),
        facts=delivery_rows(evidence),
        stated=lambda key: stated(evidence, key),
        words=headline,
        version=__version__,
    )


def as_text(value: Any) -> Markup:
    """Return a value as Markdown that is text and nothing else, on one line; a list is joined by semicolons."""
    if value is None:
        return Markup(f"*{NOT_STATED}*")
    plain = (
        "; ".join(map(str, value)) if isinstance(value, list) else number(value) if isinstance(value, int) else value
    )
    for character, entity in {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.items():
        plain = str(plain).replace(character, entity)
    return Markup(_SPECIAL.sub(r"\\\1", " ".join(plain.split())))


def _yaml(value: Any) -> Markup:
    return Markup(json.dumps(value, ensure_ascii=False))  # JSON is YAML


def _decimal(value: float | None) -> str:
    return ABSENT if value is None or math.isnan(value) else f"{value:.3f}"


def _interval(found: Estimate) -> str:
    return ABSENT if math.isnan(found.value) else f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def _head(part: Part) -> dict[str, Any]:
    """Return the entries of the YAML head."""
    evidence = part.evidence
    metrics = [
        {"type": _METRIC_TYPES.get(metric.key, metric.key), "name": metric.title, "value": round(value / 100, 4)}
        for metric in catalog.METRICS
        if (value := part.chosen.value(metric)) is not None
    ]
    dataset = str(evidence.data["provenance"].get("title") or evidence.title)
    result = {
        "task": {"type": "other", "name": "node classification"},
        "dataset": {"type": "tabular", "name": dataset},
        "metrics": metrics,
    }
    head: dict[str, Any] = finite(
        {
            "library_name": "fairpass",
            "tags": ["fairness", "graph-neural-network", "node-classification", part.chosen.record["method"]],
            "metrics": sorted(set(_METRIC_TYPES.values())),
            "model-index": [{"name": evidence.title, "results": [result]}],
        }
    )
    return head
