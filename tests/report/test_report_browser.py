"""The page as a reader has it: in a real browser, its numbers against Python's."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from torch_geometric.data import Data

from fairpass.methods import NodeClassifier
from fairpass.metrics import Evaluation, evaluate
from fairpass.report import Evidence, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = "no-sandbox disable-gpu disable-background-networking disable-component-update disable-sync no-first-run"

Scheme = Literal["light", "dark"]
Models = dict[str, list[NodeClassifier]]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with sync_api.sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=CHROMIUM, args=[f"--{flag}" for flag in QUIET.split()])
        except sync_api.Error as error:
            pytest.skip(f"there is no Chromium to be started: {error.message.splitlines()[0]}")
        yield started
        started.close()


class Opened:
    """The page in a window of some size, and all that was complained about or asked for."""

    def __init__(self, browser: "Browser", path: Path, width: int, scheme: Scheme = "light") -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
        self.page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def value(self, metric: str) -> float:
        """Return a number that the slider made, in full."""
        return float(self.page.locator(f".live [data-metric='{metric}']").get_attribute("data-value") or "nan")

    def move_to(self, position: int) -> None:
        self.page.locator(".cut").evaluate(
            "(slider, at) => { slider.value = at; slider.dispatchEvent(new Event('input')); }", position
        )


@pytest.fixture
def opened(browser: "Browser", page: Path) -> Iterator[Opened]:
    made = Opened(browser, page, 1280)
    yield made
    made.page.context.close()
    assert made.complaints == []
    assert [url for url in made.requests if url not in {page.as_uri(), "data:,"}] == []


@pytest.fixture
def people_opened(browser: "Browser", people_page: Path) -> Iterator[Opened]:
    made = Opened(browser, people_page, 1280)
    yield made
    made.page.context.close()
    assert made.complaints == []


@pytest.mark.parametrize("name", ["gcn", "gmmd"])
def test_slider_agrees_with_python(opened: Opened, name: str, evidence: Evidence, german: Data, models: Models) -> None:
    nodes = german.test_mask & (german.y >= 0)
    scores = models[name][0].predict_proba(german)[nodes, 1]

    def expected(threshold: float) -> Evaluation:
        return evaluate(german.y[nodes], scores, sens=german.sens[nodes], threshold=threshold)

    opened.page.select_option(".threshold .method", name)
    kept = evidence.method(name)["thresholds"]
    assert kept is not None
    thresholds = kept["thresholds"]
    assert "the model's own" in opened.page.locator(".at").inner_text()
    assert opened.value("acc") == pytest.approx(models[name][0].evaluate(german).acc)
    for position in [*range(0, len(thresholds), 143), len(thresholds) - 1]:
        opened.move_to(position)
        python = expected(thresholds[position])
        assert opened.value("acc") == pytest.approx(python.acc)
        assert opened.value("delta_dp") == pytest.approx(python.delta_dp)
        assert opened.value("delta_eo") == pytest.approx(python.delta_eo)
        assert opened.value("f1") == pytest.approx(python.f1)
        assert opened.value("balanced_acc") == pytest.approx(python.balanced_acc)
    opened.page.click(".own")
    assert opened.value("delta_dp") == pytest.approx(expected(kept["own"]).delta_dp)


def test_slider_goes_by_keyboard(opened: Opened) -> None:
    before = opened.page.locator(".cut").input_value()
    opened.page.locator(".cut").press("ArrowRight")
    assert int(opened.page.locator(".cut").input_value()) == int(before) + 1
    assert opened.page.locator(".at").inner_text() == "0.501"


def test_tables_are_sorted(opened: Opened) -> None:
    table = opened.page.locator("table.results")

    def methods() -> list[str]:
        return [text.split()[0] for text in table.locator("tbody th").all_inner_texts()]

    assert methods() == ["constant", "gcn", "gmmd"]
    header = table.locator("thead th").nth(4)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    values = [
        float(v or 0) for v in table.locator("tbody td:nth-child(5)").evaluate_all("x => x.map(e => e.dataset.value)")
    ]
    assert values == sorted(values)
    header.locator("button").press("Enter")
    assert header.get_attribute("aria-sort") == "descending"


def test_dark_and_light(browser: "Browser", opened: Opened, page: Path) -> None:
    def background(of: "Page") -> str:
        return str(of.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = background(opened.page)
    opened.page.click("#theme")
    dark = background(opened.page)
    assert light != dark
    assert opened.page.locator("#theme").get_attribute("aria-pressed") == "true"
    by_system = Opened(browser, page, 1280, "dark")
    assert background(by_system.page) == dark
    by_system.page.context.close()


def test_keyboard_reaches_everything(people_opened: Opened) -> None:
    page = people_opened.page
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    where = "e => (e.closest('.graph') ? 'graph' : e.className || e.tagName)"
    reached = set()
    for _ in range(180):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(f"({where})(document.activeElement)"))
    assert {"sort", "scroll", "SUMMARY", "method", "cut", "own", "case", "graph"} <= reached


def test_neighbours_can_be_walked(people_opened: Opened, with_people: Evidence) -> None:
    page = people_opened.page
    page.click("#r1-neighbours")
    nodes = page.locator(".graph g")
    case = with_people.neighbourhoods["cases"][0]
    assert nodes.count() == len(case["neighbours"]) + 1
    nodes.first.focus()
    assert page.locator(".about h3").inner_text() == f"node {case['centre']['id']}"
    page.keyboard.press("ArrowRight")
    assert page.locator(".about h3").inner_text().startswith("neighbour ")
    assert "similarity" in page.locator(".about").inner_text()
    page.select_option(".neighbours .case", index=len(with_people.neighbourhoods["cases"]) - 1)
    page.select_option(".neighbours .method", "constant")
    assert "of its own group 1.00" in page.locator(".means").inner_text()


def test_the_appendix_opens_from_the_contents(opened: Opened) -> None:
    details = opened.page.locator("section.folded details:has(> summary #r1-theory)")
    assert details.get_attribute("open") is None
    opened.page.locator("nav a[href='#r1-theory']").click()
    opened.page.wait_for_selector("section.folded > details[open] #r1-theory")  # after the event of the new address


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("which", ["binary", "hard", "hiring"])
def test_it_fits_the_window(
    browser: "Browser",
    page: Path,
    hard_evidence: Evidence,
    hiring_evidence: Evidence,
    tmp_path: Path,
    width: int,
    which: str,
) -> None:
    several = {"hard": hard_evidence, "hiring": hiring_evidence}
    path = write_report([several[which]], tmp_path / f"{which}.html") if which in several else page
    opened = Opened(browser, path, width)
    opened.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    picture = opened.page.screenshot(path=str(tmp_path / f"{width}.png"), full_page=True)
    assert len(picture) > 50_000
    # A table that is wider than its place says so, and no other.
    hints = opened.page.locator(".scroll").evaluate_all(
        "boxes => boxes.map(box => [box.scrollWidth > box.clientWidth + 1, box.classList.contains('more')])"
    )
    assert all(is_wider == has_hint for is_wider, has_hint in hints)
    first_screen = opened.page.locator("header .scroll").evaluate_all(
        "boxes => boxes.map(box => box.scrollWidth - box.clientWidth)"
    )
    assert which == "hard" or max(first_screen) <= 1
    assert opened.complaints == []
    opened.page.context.close()


def test_it_prints(opened: Opened, tmp_path: Path) -> None:
    opened.page.click("#theme")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert opened.page.locator("details:not([open])").count() == 0
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert opened.page.locator("section.folded > details[open]").count() == 0
    assert opened.page.pdf(path=str(tmp_path / "report.pdf")).startswith(b"%PDF")


def test_nobody_is_on_the_page(browser: "Browser", hiring_evidence: Evidence, tmp_path: Path) -> None:
    path = write_report([hiring_evidence], tmp_path / "report.html")
    opened = Opened(browser, path, 1280)
    assert "PERSON-" not in opened.page.content()
    assert opened.page.locator(".neighbours").count() == 0
    assert [url for url in opened.requests if url not in {path.as_uri(), "data:,"}] == []
    opened.page.context.close()
