"""`report.json` and the model card: the page's figures, for programs and for other pages."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairpass.report import Evidence, write_model_card, write_report
from fairpass.report.figures import figure_tables
from fairpass.report.model_card import as_text, render_card


@pytest.fixture(scope="module")
def audit(hiring_evidence: Evidence, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    page = write_report([hiring_evidence], tmp_path_factory.mktemp("figures") / "report.html")
    document = json.loads(page.with_name("report.json").read_text())
    assert (document["kind"], document["format"]) == ("fairpass report", 1)
    (found,) = document["audits"]
    return dict(found)


def test_figures_are_flat_and_the_pages(audit: dict[str, Any], hiring_evidence: Evidence) -> None:
    rows = {(row["attribute"], row["group"]): row for row in audit["groups"]}
    for table in figure_tables(hiring_evidence):
        for row in table.rows:
            found = rows[table.attribute, row.group]
            assert (found["people"], found["selected"]) == (row.people, row.selected)
            assert found["selection_rate"] == pytest.approx(row.selection_rate.value)
            assert found["selection_rate_low"] == pytest.approx(row.selection_rate.low)
            assert all(value is None or isinstance(value, str | int | float) for value in found.values())
    metrics = {each["metric"]: each for each in audit["metrics"]}
    assert metrics["acc"]["value"] == pytest.approx(hiring_evidence.delivered["evaluation"]["acc"])
    assert metrics["acc"]["by_seed"] == pytest.approx([metrics["acc"]["value"]])
    assert {each["metric"] for each in audit["differences"]} >= {"acc", "auc", "delta_dp", "delta_eo"}


def test_small_groups_are_named_and_nothing_else(audit: dict[str, Any]) -> None:
    (whole,) = [each for each in audit["attributes"] if each["attribute"] == "sex × race"]
    assert whole["suppressed"] == ["female × asian", "male × asian"]
    assert not {row["group"] for row in audit["groups"]} & set(whole["suppressed"])
    assert all(row["people"] >= audit["data"]["min_group"] for row in (*audit["groups"], *audit["calibration"]))
    assert "PERSON-" not in json.dumps(audit)


def test_the_form_is_kept(audit: dict[str, Any]) -> None:
    assert list(audit) == [
        "title",
        "question",
        "made",
        "in_words",
        "warnings",
        "identity",
        "model",
        "data",
        "promise",
        "metrics",
        "differences",
        "attributes",
        "groups",
        "calibration",
    ]
    assert set(audit["identity"].values()) == {None}


def read_head(text: str) -> dict[str, Any]:
    """Return the entries of a card's head: one line each, with a value in JSON, which is YAML."""
    return {key: json.loads(value) for key, _, value in (line.partition(": ") for line in text.splitlines())}


def test_the_card_has_a_head_and_the_figures(hiring_evidence: Evidence, tmp_path: Path) -> None:
    text = write_model_card(hiring_evidence, tmp_path / "card.md").read_text()
    _, head, body = text.split("---\n", 2)
    about = read_head(head)
    assert about["library_name"] == "fairpass"
    assert "gmmd" in about["tags"]
    (result,) = about["model-index"][0]["results"]
    values = {each["type"]: each["value"] for each in result["metrics"]}
    assert values["accuracy"] == pytest.approx(hiring_evidence.delivered["evaluation"]["acc"], abs=1e-4)
    for wanted in (
        "## Uses",
        "## Bias, risks and limitations",
        "## Evaluation",
        "*not stated*",
        "No limit was asked for.",
    ):
        assert wanted in body
    (table, *_) = figure_tables(hiring_evidence)
    assert (
        f"| female | {table.rows[0].people} | {table.rows[0].selected} | {table.rows[0].selection_rate.value:.3f} ("
        in body
    )
    assert "PERSON-" not in text


def test_names_are_text_on_the_card(hard_evidence: Evidence) -> None:
    tricky = "![x](http://a.b/c) | <script>\n# `code` *bold*"
    text = render_card(replace(hard_evidence, title=tricky, identity={"purpose": tricky, "limits": [tricky]}))
    _, head, body = text.split("---\n", 2)
    assert read_head(head)["model-index"][0]["name"] == tricky
    assert "<script>" not in body
    assert "![x](" not in body
    assert as_text(tricky) == r"!\[x\](http://a.b/c) \| &lt;script&gt; \# \`code\` \*bold\*"
    (row,) = [line for line in body.splitlines() if line.startswith("| Purpose |")]
    assert row.replace(r"\|", "").count("|") == 3
