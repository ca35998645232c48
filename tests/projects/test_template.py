"""The configuration that `fairpass init` writes can be read, and says what was found."""

from pathlib import Path

import pytest
from tests.projects.applicants import applicants, write_project

from fairpass.datasets.table_inspection import inspect_tables
from fairpass.projects.config import ConfigError, load_config
from fairpass.projects.template import template


def test_it_can_be_read(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    found = inspect_tables(tmp_path / "applicants.csv", tmp_path / "acquaintances.csv")
    path.write_text(template(found, folder=tmp_path))
    config = load_config(path)
    data = config.data
    assert (data.nodes, data.edges) == ("applicants.csv", "acquaintances.csv")
    assert (data.id, data.source, data.target, data.label) == ("applicant", "applicant", "knows", "decision")
    assert config.groups.sensitive == ["ethnicity"]
    assert config.features.drop == ["remarks"]
    assert config.choice.fairness == 0.5
    assert "Why 'decision': its name says so" in path.read_text()


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    write_project(tmp_path)
    found = inspect_tables(tmp_path / "applicants.csv")
    assert 'nodes = "../applicants.csv"' in template(found, folder=tmp_path / "here")


def test_without_edges_similar_nodes_are_joined(tmp_path: Path) -> None:
    path = write_project(tmp_path)
    path.write_text(template(inspect_tables(tmp_path / "applicants.csv"), folder=tmp_path))
    config = load_config(path)
    assert (config.data.edges, config.data.similarity) == (None, 0.9)


def test_a_binary_label_has_a_positive_value(tmp_path: Path) -> None:
    table = applicants()
    table["decision"] = table["decision"].replace("referred", "declined")
    text = template(inspect_tables(table))
    assert 'positive = "declined"' in text


def test_a_number_is_cut_into_bins(tmp_path: Path) -> None:
    table = applicants().rename(columns={"income": "age"}).drop(columns="ethnicity")
    assert 'sensitive = ["age"]' in (text := template(inspect_tables(table)))
    assert 'bins = { "age" = 3 }' in text


def test_a_split_column(tmp_path: Path) -> None:
    table = applicants().assign(part=["train", "val", "test"] * 60)
    assert 'column = "part"' in template(inspect_tables(table))


def test_what_is_not_found_is_to_be_filled_in(tmp_path: Path) -> None:
    table = applicants().drop(columns=["ethnicity", "decision", "district"])
    path = tmp_path / "fairpass.toml"
    path.write_text(template(inspect_tables(table), text_encoding="latin-1"))
    assert 'text_encoding = "latin-1"' in path.read_text()
    with pytest.raises(ConfigError, match=r"\[groups\] sensitive must be the column with the sensitive attribute"):
        load_config(path)
