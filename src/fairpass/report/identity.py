"""Who made the model, for what, and from which files: what a reader has to know to hold somebody responsible."""

from typing import Any

from fairpass.report.evidence import Evidence
from fairpass.report.text import listed

# The keys of `[report]` in a settings file, in the order of EU AI Act, Annex IV: what the system is and who answers for
# it, its purpose, the people it is about, how it is overseen and watched.
FIELDS = {
    "organisation": "Organisation",
    "author": "Author",
    "contact": "Contact",
    "model_version": "Version of the model",
    "purpose": "Purpose",
    "intended_use": "Intended use",
    "out_of_scope": "Not to be used for",
    "people_affected": "People affected",
    "oversight": "Human oversight",
    "monitoring": "Monitoring",
    "limits": "Known limits",
}
APPROVAL = {"approved_by": "Name", "approved_role": "Role", "approved_on": "Date"}
NOT_STATED = "not stated"


def stated(evidence: Evidence, key: str) -> str | list[str] | None:
    """Return what the settings say under a key; None if they say nothing."""
    value: Any = evidence.identity.get(key)
    return value or None


def identity_rows(evidence: Evidence) -> list[tuple[str, str | list[str] | None]]:
    return [(title, stated(evidence, key)) for key, title in FIELDS.items()]


def data_files(evidence: Evidence) -> list[dict[str, str]]:
    """Return name and SHA-256 of the files that the graph was made from."""
    provenance = evidence.data["provenance"]
    tables = [provenance[part] for part in ("nodes", "edges") if isinstance(provenance.get(part), dict)]
    found = [{"name": each.get("source", ""), "sha256": each.get("sha256")} for each in tables]
    found += [{"name": each["path"], "sha256": each.get("sha256")} for each in provenance.get("files") or ()]
    return [{"name": str(each["name"]), "sha256": str(each["sha256"])} for each in found if each["sha256"]]


def delivery_rows(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Return name, value and SHA-256 (if any) of what this page is about."""
    method, run = evidence.method(evidence.chosen), evidence.delivered
    seeds = [str(each["seed"]) for each in method["runs"][1:]]
    others = f"; seeds {listed(seeds)} were trained to see how much another training changes" if seeds else ""
    rows = [("Model", f"{evidence.chosen} ({method['summary']})", "")]
    rows.append(("Training", f"seed {run['seed']}, epoch {run['epoch']} of {run['epochs']}{others}", ""))
    if evidence.model_file is not None:
        rows.append(("Model file", evidence.model_file["name"], evidence.model_file["sha256"]))
    rows += [("Data file", each["name"], each["sha256"]) for each in data_files(evidence)]
    rows.append(("Audit made", f"{evidence.made}, with fairpass {evidence.versions.get('fairpass', '')}", ""))
    return rows
