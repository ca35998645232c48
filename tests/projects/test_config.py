"""A configuration is read strictly: whatever is wrong with it is one sentence with the file and the key."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.projects.applicants import CONFIG, write_project

from fairpass.methods import gmmd
from fairpass.projects.config import ConfigError, load_config
from fairpass.projects.sections import Choice, Criterion, ReportSection
from fairpass.report.identity import APPROVAL, FIELDS


def test_what_the_file_says(tmp_path: Path) -> None:
    config = load_config(write_project(tmp_path))
    assert config.nodes == "applicants.csv"
    assert config.tables.sensitive == ["ethnicity"]
    assert config.choice == Choice(fairness=0.5)
    assert config.run_directory == tmp_path / "runs/applicants"
    assert config.table_paths["applicants.csv"] == tmp_path / "applicants.csv"


def test_defaults(tmp_path: Path) -> None:
    path = write_project(tmp_path, '[data]\nnodes = "a.csv"\nedges = "b.csv"\nlabel = "y"\n[groups]\nsensitive = "s"\n')
    config = load_config(path)
    assert config.name == tmp_path.name
    assert (config.tuning.methods, config.tuning.budget) == (["gmmd"], "5m")
    assert config.tables.fractions == [0.4, 0.2, 0.2, 0.2]
    assert config.choice == Choice()


def test_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    config = load_config(write_project(tmp_path))
    changed = config.replaced(choice={"max_dp": 0.1, "check": None}, budget="10s", epochs=7)
    assert (changed.choice, changed.tuning.budget, changed.tuning.epochs) == (Choice(max_dp=0.1), "10s", 7)
    surer = changed.replaced(choice={"confidence": 0.99})
    assert surer.choice == Choice(max_dp=0.1, confidence=0.99)
    assert surer.replaced(choice={"fairness": 1.0}).choice == Choice(fairness=1.0, confidence=0.99)
    assert config.replaced(criterion="odds").tuning.criterion == "odds"
    assert config.replaced() == config
    with pytest.raises(ValueError, match="'budget' must be a time such as"):
        config.replaced(budget="soon")
    assert (config.choice, config.tuning.budget) == (Choice(fairness=0.5), 2)


def test_a_criterion_is_for_the_methods_that_have_one(tmp_path: Path) -> None:
    config = load_config(write_project(tmp_path)).replaced(criterion="eo")
    assert Criterion == gmmd.Criterion
    assert config.tuning.fixed("gmmd") == {"epochs": 4, "window": 1, "criterion": "eo"}
    assert config.tuning.fixed("gcn", plain=True) == {"epochs": 4, "select": "last"}
    assert config.tuning.fixed("logistic", plain=True) == {"select": "last"}
    plain = load_config(write_project(tmp_path, CONFIG.replace('["gmmd"]', '["gcn"]')))
    with pytest.raises(ConfigError, match=r"^'criterion' must be 'dp' unless one of gmmd, gmmd-s is tuned"):
        plain.replaced(criterion="eo")


def test_a_choice_does_not_contradict_itself() -> None:
    assert Choice(max_dp=0.1, max_eo=0.2).max_eo == 0.2
    with pytest.raises(ValueError, match=r"'fairness' and 'max_eo' must not be given together \(got 1.0 and 0.1\)"):
        Choice(fairness=1, max_eo=0.1)


REPORT = """
[report]
organisation = "The bank"
out_of_scope = ["companies"]
approved_on = 2026-11-18
min_group = 5
"""


def test_what_the_report_says(tmp_path: Path) -> None:
    report = load_config(write_project(tmp_path, CONFIG + REPORT)).report
    assert (report.min_group, report.include_people, report.favourable) == (5, False, None)
    assert report.identity == {
        "organisation": "The bank",
        "out_of_scope": ["companies"],
        "limits": [],
        "approved_on": "2026-11-18",
    }
    assert set(ReportSection.model_fields) >= {*FIELDS, *APPROVAL}
    config = load_config(write_project(tmp_path))
    assert config.with_people().report.include_people
    assert not config.report.include_people
    for wrong, message in (
        ("min_group = 0", "'min_group' must be"),
        ('purposes = "x"', "there is no key 'purposes': did you mean 'purpose'?"),
        ('limits = "none"', "'limits' must be"),
    ):
        with pytest.raises(ConfigError, match=re.escape(message)):
            load_config(write_project(tmp_path, f"{CONFIG}\n[report]\n{wrong}\n"))


def test_table_arguments_are_those_of_from_tables(tmp_path: Path) -> None:
    import inspect

    from fairpass.datasets import from_tables

    arguments = load_config(write_project(tmp_path)).table_arguments()
    assert arguments.keys() <= inspect.signature(from_tables).parameters.keys()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('label = "decision"', 'lable = "decision"', r"\[data\] there is no key 'lable': did you mean 'label'"),
        ('label = "decision"', "", r"\[data\] 'label' is missing"),
        ('label = "decision"', "label = 3", r"\[data\] 'label' must be text \(got 3\)"),
        ('label = "decision"', 'label = ""', r"\[data\] 'label' must be a text that is not empty \(got ''\)"),
        ('["ethnicity"]', '[""]', r"\[groups\] 'sensitive' must name at least one column"),
        ('["ethnicity"]', '""', r"\[groups\] 'sensitive' must name at least one column"),
        ('["ethnicity"]', "[3]", r"\[groups\] 'sensitive' must be text \(got 3\)"),
        ('missing = "unknown"', 'missing = "skip"', r"\.toml: \[groups\] 'missing' must be one of 'error', 'unknown'"),
        ("[choice]", "[chioce]", r"there is no key 'chioce': did you mean 'choice'"),
        ("[choice]", "[weather]", r"there is no key 'weather': it has 'name', 'directory', 'question', 'data'"),
        ("fairness = 0.5", "fairness = 5", r"\[choice\] 'fairness' must be between 0 and 1 \(got 5.0\)"),
        (
            "fairness = 0.5",
            "fairness = 0.5\nmax_dp = 0.05",
            r"\[choice\] 'fairness' and 'max_dp' must not be given together \(got 0.5 and 0.05\)",
        ),
        ("fairness = 0.5", "max_dp = true", r"\[choice\] 'max_dp' must be a number \(got True\)"),
        ('methods = ["gmmd"]', 'methods = ["magic"]', r"\[tuning\] 'methods' must be among gcn, .*'magic'"),
        ('methods = ["gmmd"]', "methods = []", r"\[tuning\] 'methods' must be a list that is not empty \(got \[\]\)"),
        ('["gmmd"]', '["gmmd", "gcn", "gmmd"]', r"\[tuning\] 'methods' must not name a method twice \(got \['gmmd', "),
        ("budget = 2", 'budget = "soon"', r"\[tuning\] 'budget' must be a time such as .*'soon'"),
        ("budget = 2", "budget = 0", r"\[tuning\] 'budget' must be at least 1 \(got 0\)"),
        ("budget = 2", "budget = 1000001", r"\[tuning\] 'budget' must be at most 1,000,000 \(got 1000001\)"),
        (
            "epochs = 4",
            'criterion = "fair"',
            r"\[tuning\] 'criterion' must be one of 'dp', 'eo', 'odds' \(got 'fair'\)",
        ),
        (
            'methods = ["gmmd"]',
            'methods = ["gcn", "logistic"]\ncriterion = "eo"',
            r"\[tuning\] 'criterion' must be 'dp' unless one of gmmd, gmmd-s is tuned \(got 'eo' for gcn, logistic\)",
        ),
        ("seeds = 2", "seeds = 0", r"\[training\] 'seeds' must be at least 1 \(got 0\)"),
        ("seeds = 2", "seeds = 2.5", r"\[training\] 'seeds' must be a whole number \(got 2.5\)"),
        ("seeds = 2", "seeds = true", r"\[training\] 'seeds' must be a whole number \(got True\)"),
        ("seeds = 2", 'reference = "none"', r"\[training\] 'reference' must be among"),
        ('name = "applicants"', 'name = "../x"', r"toml: 'name' must be a name for a directory"),
        ('name = "applicants"', 'name = ".."', r"toml: 'name' must be a name for a directory.* \(got '\.\.'\)"),
        ('name = "applicants"', r'name = "a\u001b[2J"', r"toml: 'name' must be a name for a directory"),
        ('name = "applicants"', "name = 7", r"toml: 'name' must be text \(got 7\)"),
        ('name = "applicants"', "name = ", r"is not a TOML file: Invalid value"),
        ("[tuning]", "[split]\nfractions = [nan, 1, 1]\n[tuning]", r"\[split\] 'fractions' must have finite.*got nan"),
        ("fairness = 0.5", "fairness = nan", r"\[choice\] 'fairness' must have finite numbers only \(got nan\)"),
        ("fairness = 0.5", "max_dp = -inf", r"\[choice\] 'max_dp' must have finite numbers only \(got -inf\)"),
        ('label = "decision"', 'label = "decision"\npositive = inf', r"\[data\] 'positive' must have finite"),
        ("[groups]", "[groups]\nbins = {age = [1, inf]}", r"\[groups\] 'bins' must have finite numbers only \(got inf"),
        ("[tuning]", "[features.columns]\nage = {least = nan}\n[tuning]", r"\[features\] 'columns' must have finite"),
        ("budget = 2", f"budget = {'9' * 5000}", r"\.toml' is not a TOML file: .*4300 digits"),
        ("budget = 2", f"budget = {'[' * 5000}", r"\.toml' is not a TOML file: .*recursion"),
        ('name = "applicants"', r'directory = "a\u0000b"', r"toml: 'directory' must not contain null characters"),
        ('"applicants.csv"', r'"a\u0000b"', r"toml: \[data\] 'nodes' must not contain .* \(got 'a\\x00b'\)"),
        ('"acquaintances.csv"', r'"a\u0000b"', r"toml: \[data\] 'edges' must not contain null characters"),
        ('name = "applicants"', "split = 3", r"\[split\] must be a table with keys \(got 3\)"),
    ],
)
def test_what_is_wrong(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in CONFIG
    path = write_project(tmp_path, CONFIG.replace(old, new))
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[groups]\nsensitive = "s"\n', r"\[data\] 'label' is missing"),
        ('[data]\nlabel = "y"\n[groups]\nsensitive = "s"\n', r"\[data\] 'nodes' is missing"),
        ('[data]\nnodes = "a.csv"\nlabel = "y"\n', r"\[groups\] 'sensitive' is missing"),
    ],
)
def test_keys_that_must_be_there(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(write_project(tmp_path, text))


def test_the_names_of_the_library_are_keys_too(tmp_path: Path) -> None:
    new = CONFIG.replace('missing = "unknown"', 'missing_sensitive = "unknown"\nmin_group_size = 3')
    assert load_config(write_project(tmp_path, new)).tables.min_group_size == 3
    twice = CONFIG.replace('missing = "unknown"', 'missing = "unknown"\nmissing_sensitive = "unknown"')
    with pytest.raises(ConfigError, match=r"\[groups\] 'missing_sensitive' is given twice, under two names"):
        load_config(write_project(tmp_path, twice))
    mixed = CONFIG.replace('drop = ["remarks"]', 'use = ["decision"]')
    with pytest.raises(ConfigError, match=r"\[features\] 'use' must not contain the column given as \[data\] 'label'"):
        load_config(write_project(tmp_path, mixed))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*fairpass init"):
        load_config(tmp_path / "fairpass.toml")


def test_not_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "fairpass.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not a TOML file"):
        load_config(tmp_path / "fairpass.toml")


def test_bins_are_numbers_or_lists(tmp_path: Path) -> None:
    def bins(text: str) -> Any:
        config = CONFIG.replace('["ethnicity"]', f'["ethnicity"]\nbins = {text}')
        tomllib.loads(config)
        return load_config(write_project(tmp_path, config)).tables.sens_bins

    assert bins("{ age = 3 }") == {"age": 3}
    assert bins("{ age = [25, 60.5] }") == {"age": [25, 60.5]}
    with pytest.raises(ConfigError, match=r"\[groups\] 'bins' must be a whole number or a list \(got 'many'\)"):
        bins('{ age = "many" }')
