"""The page: one file that asks nobody for anything, in which names are names and never code."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

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
from fairpass.report.page import Part, Section, render
from fairpass.report.text import environment

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
    assert Part(evidence).sentences()[0].startswith("gmmd reaches ACC ")
    assert Part(evidence).sentences()[1].startswith("Against gcn, gmmd ")


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
    older = {name: value for name, value in evidence.bias.items() if name != "graph_gain"}
    assert "Do the edges help?" not in render([replace(evidence, bias=older)])


def test_links_lead_to_sections(page: Path) -> None:
    outline = Outline(page.read_text())
    assert len(set(outline.ids)) == len(outline.ids)
    assert set(outline.targets) <= set(outline.ids)
    assert outline.tags.count("h1") == 1
    assert outline.tags.count("section") == 12


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
    alone = replace(evidence, methods=[evidence.method("gmmd")])
    assert len(Part(alone).sentences()) == 1
    assert "Against" not in render([alone]).split("<section", 1)[0]


def test_overview_is_over_the_seeds(evidence: Evidence) -> None:
    rows = {row.name: row for row in Part(evidence).rows}
    acc, dp = BY_LABEL["ACC"], BY_LABEL["DP"]
    each = [100 * run["evaluation"]["acc"] for run in evidence.method("gmmd")["runs"]]
    assert rows["gmmd"].mean(acc) == pytest.approx(sum(each) / 2)
    assert rows["gmmd"].each(acc) == pytest.approx(each)
    assert rows["gcn"].deviation(acc) is None
    low, high = rows["gmmd"].interval(dp)
    assert low is not None
    assert high is not None
    assert low <= (rows["gmmd"].mean(dp) or 0) <= high
    assert [row.number for row in rows.values()] == [-1, 0, 1]


@pytest.mark.parametrize(
    ("utility", "unfairness", "words"),
    [
        (0.80, 0.30, "no other one that was tried is more useful"),
        (0.75, 0.10, "it gives up 5.0 points, and gains 20.0 points of fairness"),
        (0.75, 0.40, "it gives up 5.0 points, and is no fairer"),
    ],
)
def test_cost_of_the_choice(evidence: Evidence, utility: float, unfairness: float, words: str) -> None:
    common = {"method": "gmmd", "parameters": {"weight": 1}, "near_constant": False}
    best = {**common, "utility": 0.8, "unfairness": 0.3, "front": True, "chosen": False}
    chosen = {**common, "utility": utility, "unfairness": unfairness, "front": False, "chosen": True}
    tuned = replace(evidence, points=[best, chosen])
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
    assert outline.tags.count("section") == 13


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
    assert re.search(r'<td class="n" data-value="">–</td>\n<td class="n" data-value="[^"]+">\d', render([evidence]))
