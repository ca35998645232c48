"""The documentation is true: its code runs, its commands work, and what it names is there."""

import inspect
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import fairpass
from fairpass.cli.app import app
from fairpass.cli.check import EXIT_CODES
from fairpass.methods.registry import OWN, method

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# These take their time or need a network: that they are there is all that is checked here.
ONLY_HELP = (
    ["demo"],
    ["datasets", "fetch"],
    ["tune"],
    ["reproduce"],
    ["benchmark"],
    ["attribute"],
    ["partition", "nodes.parquet"],
    ["train", "parts"],
    ["run", "fairpass.toml", "--max-dp"],
    ["init", "nodes.csv"],
    ["compare", "german", "--methods", "all"],
)
LIMITS = {"--max-dp", "--max-eo", "--min-impact-ratio"}
# What makes a command quicker.
QUICKER = {"train": ["--epochs", "3"], "run": ["--budget", "1", "--epochs", "3"]}

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_NAME = re.compile(r"`(fairpass(?:\.\w+)+)[`(]")
_PATH = re.compile(r"`((?:src|tests|docs|scripts)/[\w./-]+)`")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


class Block(NamedTuple):
    """The code between two fences, and the line of the page where it starts."""

    language: str
    code: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _FENCE.finditer(text):
        indent, language, code = match.groups()
        flush = "".join(line.removeprefix(indent) for line in code.splitlines(keepends=True))
        yield Block(language, flush, text.count("\n", 0, match.start(3)))


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def run_command(line: str) -> None:
    program, *arguments = shlex.split(line, comments=True)
    if program == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert set(arguments) <= set(targets)
    elif program == "fairpass":
        slow = any(arguments[: len(command)] == command for command in ONLY_HELP)
        arguments += ["--help"] if slow else QUICKER.get(arguments[0], [])
        result = CliRunner().invoke(app, arguments)
        # A limit that is not shown, or violated, is an answer: so little training shows nothing.
        answers = {0, *EXIT_CODES.values()} if LIMITS.intersection(arguments) else {0}
        assert result.exit_code in answers, f"{line}: {result.output}"


@pytest.fixture(scope="module")
def graph_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


@pytest.mark.usefixtures("forked_jobs")
@every_page
def test_code_runs(page: Path, tmp_path: Path, graph_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAIRPASS_CACHE", str(graph_cache))
    namespace: dict[str, Any] = {"__name__": page.stem}
    for language, code, line in blocks(page):
        if language == "python":
            # The empty lines in front make a traceback show the line of the page.
            exec(compile("\n" * line + code, page, "exec"), namespace)
        elif language == "console":
            for shown in code.splitlines():
                if shown.startswith("$ "):
                    run_command(shown.removeprefix("$ "))


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target for target in _LINK.findall(prose(page)) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@every_page
def test_what_is_named_exists(page: Path) -> None:
    text = prose(page)
    assert [path for path in _PATH.findall(text) if not (ROOT / path).exists()] == []
    for name in _NAME.findall(text):
        resolve(name)


def resolve(name: str) -> Any:
    """Return the module, class, function or method with this full name."""
    found: Any = import_module("fairpass")
    path = found.__name__
    for part in name.split(".")[1:]:
        path += f".{part}"
        found = getattr(found, part) if hasattr(found, part) else import_module(path)
    return found


def test_every_public_name_is_documented() -> None:
    """The linter lets a plain name stand for itself inside the package; what users call needs a docstring."""
    lacking = []
    for name in dir(fairpass):
        found = getattr(fairpass, name)
        methods = [
            (f"{name}.{attribute}", getattr(found, attribute))
            for attribute in (vars(found) if isinstance(found, type) else ())
            if not attribute.startswith("_") and callable(getattr(found, attribute))
        ]
        lacking += [label for label, each in [(name, found), *methods] if callable(each) and not inspect.getdoc(each)]
    assert not lacking


def test_the_architecture_names_files_and_definitions_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "fairpass"
    for path, name in re.findall(r"`([\w/]+\.py)(?::(\w+))?`", page):
        folder = ROOT if path.startswith("tests/") else source
        candidates = [folder / path] if "/" in path else list(source.rglob(path))
        assert any(file.is_file() for file in candidates), path
        definition = re.compile(rf"^(?:def |class )?{name}\b", re.MULTILINE)
        assert not name or any(definition.search(file.read_text()) for file in candidates), f"{path}:{name}"
    for path, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page):
        assert f"def {test}(" in (ROOT / path).read_text(), test


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r"[\w-]+\.md", navigation)
    assert sorted(listed) == sorted(page.name for page in PAGES if page.parent.name == "docs")


def test_the_whole_paper_is_in_the_table() -> None:
    """Every equation, algorithm, table and figure of the paper has a row that says where it is."""
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8").partition("## Paper to code")[2]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("|")]
    equations: set[int] = set()
    for row in rows:
        for first, last in re.findall(r"\((\d+)\)(?: to \((\d+)\))?", row):
            equations.update(range(int(first), int(last or first) + 1))
    assert equations == set(range(1, 50))
    numbered = {
        (kind, int(number))
        for row in rows
        for kind, numbers in re.findall(r"(Table|Figure)s? ([\d, ]+)", row)
        for number in numbers.split(",")
    }
    assert numbered == {("Table", n) for n in range(1, 7)} | {("Figure", n) for n in range(1, 8)}
    for named in ("Algorithm 1", "Theorem 4.1", "Theorem 4.2"):
        assert any(named in row for row in rows)


def test_methods_are_in_the_table_of_their_stage() -> None:
    words = {"never": "never", "training": "in training", "prediction": "at prediction"}
    listed = {}
    tables = re.compile(r"^\*\*(\S+)\.\*\* .*\n\n((?:\|.*\n)+)", re.MULTILINE)
    for stage, rows in tables.findall((ROOT / "docs" / "methods.md").read_text(encoding="utf-8")):
        header, _, *lines = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows.splitlines()]
        for cells in lines:
            about = dict(zip(header, cells, strict=True))
            for name in re.findall(r"`([\w-]+)`", about["method"]):
                listed[name] = (stage.lower(), about.get("needs groups", "never"))
    own = [method(name) for name in OWN]
    assert listed == {each.name: (each.stage, words[each.needs_groups]) for each in own}


def test_every_promise_of_reliability_has_a_test_that_exists() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 15
    promises, heading, _ = page.partition("## Stress tests")  # whose tables have figures
    assert heading
    lines = [line for line in promises.splitlines() if line.startswith("| ") and "shown by" not in line]
    assert all("::" in line for line in lines)
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), (file, test)
