"""The page: one file that asks nobody for anything, in which names are names and never code."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from statistics import stdev

import pytest
from jinja2 import ChoiceLoader, DictLoader
from torch_geometric.data import Data

from fairpass.datasets.graph_gain import GraphGain, graph_gain
from fairpass.errors import DataError
from fairpass.methods import NodeClassifier
from fairpass.metrics import Metric, catalog
from fairpass.metrics.catalog import BY_LABEL
from fairpass.report import Evidence, collect, write_report
from fairpass.report import page as page_module
from fairpass.report.page import Section, render
from fairpass.report.part import Part
from fairpass.report.schema import Bias, TriedPoint
from fairpass.report.text import environment

Models = dict[str, list[NodeClassifier]]

REQUESTS = re.compile(
    r"""(?:src|href|action|poster|data)\s*=\s*["']?\s*(?:https?:)?//"""
    r"""|url\(|@import|fetch\(|XMLHttp|import\(|<link(?! rel="icon" href="data:,")""",
    re.IGNORECASE,
)


class Outline(HTMLParser):
    """The tags of a page, its ids, and the targets of its links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name == "href" and (value or "").startswith("#"):
                self.targets.append((value or "")[1:])
            if name.startswith("on"):
                self.handlers.append(name)


def test_page_asks_nobody_for_anything(page: Path) -> None:
    text = page.read_text()
    assert REQUESTS.findall(text) == []
    assert "default-src 'none'" in text
    assert len(text.encode()) < 500_000


def test_same_evidence_same_page(evidence: Evidence, page: Path) -> None:
    assert render([evidence]) == page.read_text()


def test_it_says_what_matters(evidence: Evidence, page: Path) -> None:
    text = page.read_text()
    for wanted in (
        evidence.data["fingerprint"],
        "Men and women alike?",
        "By hand.",
        "predicts the same for every node",
        "CC BY 4.0",
        "Gender is a proxy",
        evidence.bias["graph_gain"]["sentence"],
        *Part(evidence).sentences(),
    ):
        assert wanted in text
    assert re.match(r"Of 100 men \d+ are predicted “good customer”, of 100 women \d+\.", Part(evidence).sentences()[0])
    assert Part(evidence).sentences()[-1].startswith("Compared with gcn, which has no fairness term, on the same 250 ")


def test_whether_the_edges_help(evidence: Evidence, german: Data) -> None:
    gain = graph_gain(german)
    assert evidence.bias["graph_gain"] == gain.to_dict()
    text = render([evidence])
    assert gain.acc is not None
    assert f"95 % interval {100 * gain.acc.low:.1f} to {100 * gain.acc.high:.1f}" in text
    reason = replace(
        evidence, bias=evidence.bias | {"graph_gain": GraphGain(reason="the graph has no edges").to_dict()}
    )
    assert "Whether the edges help was not measured: the graph has no edges." in render([reason])
    older: Bias = {"statistics": evidence.bias["statistics"], "findings": evidence.bias["findings"]}
    assert "Do the edges help?" not in render([replace(evidence, bias=older)])


def test_links_lead_to_sections(page: Path) -> None:
    outline = Outline(page.read_text())
    assert len(set(outline.ids)) == len(outline.ids)
    assert set(outline.targets) <= set(outline.ids)
    assert outline.tags.count("h1") == 1
    assert outline.tags.count("section") == len(page_module.SECTIONS) - 1  # nobody is looked at closely


def test_names_are_never_code(hard_evidence: Evidence) -> None:
    text = render([hard_evidence])
    outline = Outline(text)
    # The style, the program, and the data: nothing else came in.
    assert outline.tags.count("script") == 2
    assert outline.handlers == []
    assert "img" not in outline.tags
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(3)" in text
    assert "There are 3 labels" in text
    for wrong in ("<script>alert", "<img src", "<b>gcn", "<i>?"):
        assert wrong not in text


def test_data_for_the_program_can_be_read(hard_evidence: Evidence) -> None:
    text = render([hard_evidence])
    (data,) = re.findall(r'<script type="application/json" class="interactive">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)["labels"] == hard_evidence.data["labels"]


def test_several_on_one_page(evidence: Evidence, hard_evidence: Evidence, tmp_path: Path) -> None:
    text = write_report([evidence, hard_evidence], tmp_path / "both.html").read_text()
    outline = Outline(text)
    assert outline.tags.count("article") == 2
    assert len(set(outline.ids)) == len(outline.ids)
    assert "<title>2 audit reports</title>" in text


def test_no_evidence_no_page(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'evidences' must hold at least one"):
        write_report([], tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_one_method_has_nothing_to_compare_with(evidence: Evidence) -> None:
    alone = replace(evidence, methods=[evidence.method("gmmd")], differences=[])
    assert Part(alone).comparisons() == []
    assert 'class="second"' not in render([alone])


def test_numbers_are_those_of_the_delivered_model(evidence: Evidence) -> None:
    rows = {row.name: row for row in Part(evidence).rows}
    acc, dp = BY_LABEL["ACC"], BY_LABEL["DP"]
    each = [100 * run["evaluation"]["acc"] for run in evidence.method("gmmd")["runs"]]
    assert rows["gmmd"].value(acc) == pytest.approx(each[0])
    assert rows["gmmd"].each(acc) == pytest.approx(each)
    assert rows["gmmd"].deviation(acc) == pytest.approx(stdev(each))
    assert rows["gcn"].deviation(acc) is None
    low, high = rows["gmmd"].interval(dp)
    assert low is not None
    assert high is not None
    assert low <= (rows["gmmd"].value(dp) or 0) <= high
    assert [row.number for row in rows.values()] == [-1, 0, 1]
    text = render([evidence])
    assert "All numbers are of the delivered model: gmmd, seed 0." in text
    assert f"Trained with 1 other seed, accuracy was {each[1]:.1f}" in text


@pytest.mark.parametrize(
    ("utility", "unfairness", "words"),
    [
        (0.80, 0.30, "no other one that was tried is more useful"),
        (0.75, 0.10, "it gives up 5.0 points, and gains 20.0 points of fairness"),
        (0.75, 0.40, "it gives up 5.0 points, and is no fairer"),
    ],
)
def test_cost_of_the_choice(evidence: Evidence, utility: float, unfairness: float, words: str) -> None:
    best: TriedPoint = {
        "method": "gmmd",
        "parameters": {"weight": 1},
        "training": {},
        "validation": {},
        "test": None,
        "near_constant": False,
        "utility": 0.8,
        "unfairness": 0.3,
        "front": True,
        "chosen": False,
    }
    chosen: TriedPoint = {**best, "utility": utility, "unfairness": unfairness, "front": False, "chosen": True}
    unmeasured: TriedPoint = {**best, "utility": None}
    tuned = replace(evidence, points=[unmeasured, best, chosen])
    text = render([tuned])
    assert words in text
    assert "2 configurations, on validation" in text
    without = render([evidence])
    assert "No tuning results came with this evidence" in without
    assert "On validation the chosen configuration" not in without


def test_a_section_is_a_template_and_an_entry(evidence: Evidence, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(part: Part) -> dict[str, object]:
        return {"count": len(part.rows)}

    loader = environment().loader
    assert loader is not None
    template = "<p>{{ plural(own.count, 'method') }} on {{ e.title }}</p>"
    monkeypatch.setattr(environment(), "loader", ChoiceLoader([DictLoader({"counted.html": template}), loader]))
    monkeypatch.setattr(page_module, "SECTIONS", [*page_module.SECTIONS, Section("counted", "How many", build)])
    text = render([evidence])
    assert '<h2 id="r1-counted">How many</h2>\n<p>3 methods on German credit</p>' in text
    outline = Outline(text)
    assert "r1-counted" in outline.targets
    assert outline.tags.count("section") == len(page_module.SECTIONS) - 1


def test_a_metric_of_the_catalogue_has_a_column(
    evidence: Evidence, german: Data, models: dict[str, list[NodeClassifier]], monkeypatch: pytest.MonkeyPatch
) -> None:
    share = Metric(
        "selected", "SEL", "share selected", lambda counts: counts.selected.sum((-1, -2, -3)) / counts.total.sum()
    )
    monkeypatch.setattr(catalog, "METRICS", (*catalog.METRICS, share))
    text = render([collect(german, {"gcn": models["gcn"]}, title="x")])
    assert 'title="share selected: higher is better">SEL</button>' in text
    found = models["gcn"][0].evaluate(german).positive_rate
    assert found is not None
    assert f'<td class="n" data-value="{100 * found}">{100 * found:.1f}<small>' in text
    # Evidence from before it was added has no value.
    assert '<td class="n" data-value="">–</td>\n</tr>' in render([evidence])


def test_what_is_not_needed_first_is_folded(page: Path) -> None:
    text = page.read_text()
    main, appendix = text.split('<p class="appendix-title">')
    assert "The theorems" not in main.split("</nav>")[1]
    for title in ("Training", "The theorems&#39; bounds", "Settings and versions", "The graph before training"):
        assert re.search(rf"<details><summary><h2[^>]*>{title}</h2></summary>", appendix)


def test_nobody_is_on_the_page_unless_asked_for(with_people: Evidence, page: Path, people_page: Path) -> None:
    ids = {case["centre"]["id"] for case in with_people.neighbourhoods["cases"]}
    assert all(f'"id":"{each}"' in people_page.read_text() for each in ids)
    assert "A closer look at people" in people_page.read_text()
    for text in (page.read_text(), render([with_people])):
        assert '"id":' not in text
        assert "A closer look" not in text


PROMISE = {
    "confidence": 0.95,
    "on": "safety",
    "people": 500,
    "candidates": 3,
    "warning": "",
    "checks": [
        {
            "metric": "delta_dp",
            "limit": 0.05,
            "verdict": "not shown",
            "estimate": 0.031,
            "bound": 0.093,
            "low": 0.0,
            "high": 0.1,
            "high_group": "male",
            "low_group": "female",
            "label": "good customer",
            "counts": [
                {"group": "male", "label": "good customer", "selected": 120, "people": 400},
                {"group": "female", "label": "good customer", "selected": 3, "people": 4},
            ],
            "more_people": 350,
            "sentence": "Not shown: <b>that</b> it is small.",
        }
    ],
}


def test_the_limit_asked_for_and_its_verdict(evidence: Evidence, german: Data, models: Models) -> None:
    assert "No limit was asked for." in render([evidence])
    found = collect(german, {"gmmd": models["gmmd"]}, title="x", promise=PROMISE)
    text = render([found])
    assert "No limit was asked for." not in text
    for wanted in (
        '<div class="note verdict warn"',
        "The limit asked for: not shown.",
        "Not shown: &lt;b&gt;that&lt;/b&gt; it is small.",
        "difference in selection rates (demographic parity, ΔDP): at most 5.0 points",
        "3.1 points, interval 0.0 to 10.0 points; with 95 % confidence at most 9.3 points",
        "male: 120 of 400, female: fewer than 10 predicted “good customer”",
        "Checked on 500 people (a safety set that no model was chosen on), 3 candidates. The people checked are taken",
    ):
        assert wanted in text
    assert found.promise is not None
    assert found.promise["checks"][0]["counts"][1]["people"] is None
    for verdict, style in (("shown", "good"), ("violated", "bad")):
        assert f'verdict {style}"' in render([replace(found, promise={**found.promise, "verdict": verdict})])
    useless = {**found.promise, "verdict": "shown", "warning": "It is near constant."}
    assert 'verdict warn"' in render([replace(found, promise=useless)])


def test_what_these_people_cannot_show_is_said(evidence: Evidence) -> None:
    part = Part(evidence)
    assert part.main_table is not None
    assert part.main_table.gap is not None
    found = part.main_table.gap.difference.includes_zero
    (statement,) = part.statements()
    assert statement.gap.startswith("These 250 people cannot show a difference: " if found else "The difference is ")
    assert found == part.may_be_zero("delta_dp")
    assert ("these people cannot tell it from 0" in render([evidence])) == (found or part.may_be_zero("delta_eo"))


def test_the_page_must_not_replace_its_evidence(evidence: Evidence, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"its figures would replace evidence\.json"):
        write_report([evidence], tmp_path / "evidence.html")


@pytest.mark.parametrize("found", ['{"kind": "fairpass comparison"}', "[]", ""])
def test_the_figures_replace_figures_only(evidence: Evidence, tmp_path: Path, found: str) -> None:
    results = tmp_path / "german.json"
    results.write_text(found)
    with pytest.raises(DataError, match=r"'out' must have another name: its figures would replace german\.json"):
        write_report([evidence], tmp_path / "german.html")
    assert results.read_text() == found
    assert list(tmp_path.iterdir()) == [results]
    for _ in range(2):
        write_report([evidence], tmp_path / "report.html")
