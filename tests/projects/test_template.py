"""The configuration that `fairpass init` writes can be read, and says what was found."""

import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
from tests.projects.applicants import applicants, write_project

from fairpass.datasets.table_inspection import inspect_tables
from fairpass.projects.config import ConfigError, load_config
from fairpass.projects.sections import Choice, Tuning
from fairpass.projects.template import template


def test_it_can_be_read(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    found = inspect_tables(tmp_path / "applicants.csv", tmp_path / "acquaintances.csv")
    path.write_text(template(found, folder=tmp_path))
    config = load_config(path)
    tables = config.tables
    assert (config.nodes, config.edges) == ("applicants.csv", "acquaintances.csv")
    assert (tables.id, tables.source, tables.target, tables.label) == ("applicant", "applicant", "knows", "decision")
    assert tables.sensitive == ["ethnicity"]
    assert tables.drop == ["remarks"]
    assert config.choice.fairness == 0.5
    assert "Why 'decision': its name says so" in path.read_text()


def test_every_line_that_is_not_set_can_be_set(tmp_path: Path) -> None:
    """Behind each # before a key there is valid TOML of a key that the section has."""
    write_project(tmp_path)
    text = template(inspect_tables(tmp_path / "applicants.csv", tmp_path / "acquaintances.csv"))
    settings = tomllib.loads(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    assert settings["groups"].keys() == {"sensitive", "bins", "min_size", "small", "missing", "as_feature"}
    assert settings["choice"].keys() == Choice.model_fields.keys() - {"check"}
    assert settings["tuning"] == Tuning().model_dump()


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    write_project(tmp_path)
    found = inspect_tables(tmp_path / "applicants.csv")
    assert 'nodes = "../applicants.csv"' in template(found, folder=tmp_path / "here")


def test_without_edges_similar_nodes_are_joined(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    path.write_text(template(inspect_tables(tmp_path / "applicants.csv"), folder=tmp_path))
    config = load_config(path)
    assert (config.edges, config.tables.similarity) == (None, 0.9)


def test_a_binary_label_has_a_positive_value(tmp_path: Path) -> None:
    table = applicants()
    table["decision"] = table["decision"].replace("referred", "declined")
    text = template(inspect_tables(table))
    assert 'positive = "approved"' in text  # and not the last in the alphabet
    table["decision"] = table["decision"].replace({"approved": "b", "declined": "a"})
    assert 'positive = "b"' in template(inspect_tables(table))


def test_few_labels_set_no_safety_nodes_aside(tmp_path: Path) -> None:
    few = applicants()
    many = pd.concat([few] * 10).assign(applicant=[f"A-{i}" for i in range(10 * len(few))])
    for table, fractions in ((few, [0.5, 0.25, 0.25]), (many, [0.4, 0.2, 0.2, 0.2])):
        text = template(inspect_tables(table))
        assert tomllib.loads(text)["split"]["fractions"] == fractions
        assert ("by cross-fitting" in text) == (table is few)


def test_a_number_is_cut_into_bins(tmp_path: Path) -> None:
    table = applicants().rename(columns={"income": "age"}).drop(columns="ethnicity")
    assert 'sensitive = ["age"]' in (text := template(inspect_tables(table)))
    assert "bins = { age = 3 }" in text


def test_a_split_column(tmp_path: Path) -> None:
    table = applicants().assign(part=["train", "val", "test"] * 60)
    assert 'column = "part"' in template(inspect_tables(table))


def test_what_is_not_found_is_to_be_filled_in(tmp_path: Path) -> None:
    table = applicants().drop(columns=["ethnicity", "decision", "district"])
    path = tmp_path / "fairpass.toml"
    path.write_text(template(inspect_tables(table), text_encoding="latin-1"))
    assert 'text_encoding = "latin-1"' in path.read_text()
    with pytest.raises(ConfigError, match=r"\[data\] 'label' must be a text that is not empty"):
        load_config(path)


def test_columns_have_a_rule_where_they_need_one(tmp_path: Path) -> None:
    write_project(tmp_path)
    table = applicants()
    size = len(table)
    table = table.assign(
        **{"net salary": [f"${1000 + i:,}" for i in range(size)]},
        born=[f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.1980" for i in range(size)],
        since=[f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.2020" for i in range(size)],
    )
    table.to_csv(tmp_path / "applicants.csv", index=False)
    path = tmp_path / "fairpass.toml"
    found = inspect_tables(tmp_path / "applicants.csv", tmp_path / "acquaintances.csv")
    path.write_text(template(found, folder=tmp_path))
    text = path.read_text()
    assert "\n[features.columns]\n" in text
    assert '\n"net salary" = "money"\n' in text
    assert '\nsince = { kind = "date", format = "%d.%m.%Y" }\n' in text
    assert "'born' may be sensitive" in text
    tables = load_config(path).tables
    assert {name: rule.kind for name, rule in tables.columns.items()} == {"net salary": "money", "since": "date"}
    assert tables.drop == ["remarks", "born"]
    path.write_text(template(found, folder=tmp_path, features=["born"]))
    tables = load_config(path).tables
    assert tables.drop == ["remarks"]
    assert tables.columns["born"].format == "%d.%m.%Y"


def test_plain_tables_have_a_plain_file(tmp_path: Path) -> None:
    """What is the default and rarely needed is not mentioned."""
    write_project(tmp_path)
    text = template(inspect_tables(tmp_path / "applicants.csv", tmp_path / "acquaintances.csv"), folder=tmp_path)
    for key in (
        "separator",
        "decimal",
        "text_encoding",
        "dangling",
        "edge_weight",
        "edges_header",
        "columns",
        "unweighted",
    ):
        assert f"{key} = " not in text
    assert max(map(len, text.splitlines())) <= 120
