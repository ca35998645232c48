"""Groups from several sensitive columns, from numbers, and what becomes of the small ones."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

from fairpass.datasets.tables import from_tables
from fairpass.errors import DataError

SIZE = 96


def nodes(**columns: Any) -> pd.DataFrame:
    table = {
        "height": np.linspace(150.0, 200.0, SIZE),
        "age": np.arange(SIZE) % 48 + 20,
        "sex": ["female", "male"] * (SIZE // 2),
        "race": ["black"] * 30 + ["white"] * 58 + ["asian"] * 8,
        "paid": (["no", "no", "yes", "yes"] * SIZE)[:SIZE],
    }
    return pd.DataFrame(table | columns)


def build(table: pd.DataFrame | None = None, **options: Any) -> Data:
    pairs = pd.DataFrame({"a": range(SIZE - 1), "b": range(1, SIZE)})
    return from_tables(nodes() if table is None else table, pairs, label="paid", **{"sensitive": "sex"} | options)


def group_of(data: Data) -> list[str | None]:
    return [data.group_names[i] if i >= 0 else None for i in data.sens.tolist()]


# Several columns


def test_groups_are_the_combinations_of_several_columns() -> None:
    table = nodes(race=["black"] * 40 + ["white"] * 56)
    data = build(table, sensitive=["sex", "race"])
    assert data.group_names == ["female × black", "female × white", "male × black", "male × white"]
    assert group_of(data) == [f"{sex} × {race}" for sex, race in zip(table["sex"], table["race"], strict=True)]
    assert not {"sex", "race"} & {name.split("=")[0] for name in data.feature_names}


def test_a_combination_that_does_not_occur_is_no_group() -> None:
    table = nodes(race=["black", "white"] * (SIZE // 2))  # as the sexes alternate, too
    assert build(table, sensitive=["sex", "race"]).group_names == ["female × black", "male × white"]


def test_one_column_in_a_list_is_that_column() -> None:
    assert torch.equal(build(sensitive=["sex"]).sens, build().sens)
    assert build(sensitive=["sex"]).group_names == ["female", "male"]


def test_a_gap_in_any_column_makes_the_group_unknown() -> None:
    table = nodes(race=["black"] * 40 + ["white"] * 56)
    table.loc[3, "sex"] = None
    table.loc[5, "race"] = None
    data = build(table, sensitive=["sex", "race"], missing_sensitive="unknown")
    assert torch.nonzero(data.sens == -1).flatten().tolist() == [3, 5]
    with pytest.raises(DataError, match=r"column 'sex' must have a value for each node .1 missing, first in row 3"):
        build(table, sensitive=["sex", "race"])


def test_intersection_as_a_feature() -> None:
    data = build(nodes(race=["black"] * 40 + ["white"] * 56), sensitive=["sex", "race"], keep_sensitive=True)
    assert data.feature_names[data.sens_column] == "sex × race"
    assert torch.equal(data.x[:, data.sens_column].long(), data.sens)


def test_a_column_twice_or_none() -> None:
    with pytest.raises(DataError, match="'sensitive' must not name a column twice"):
        build(sensitive=["sex", "sex"])
    with pytest.raises(DataError, match="'sensitive' must name at least one column"):
        build(sensitive=[])
    with pytest.raises(DataError, match="'label' and 'sensitive' must be different columns"):
        build(sensitive=["sex", "paid"])


# Small groups


def test_small_groups_are_refused_with_their_sizes() -> None:
    with pytest.raises(DataError, match=r"at least 10 labelled nodes .'min_group_size'.*: 'asian' \(8\); merge"):
        build(sensitive="race", min_group_size=10)


def test_small_groups_become_other() -> None:
    table = nodes(race=["black"] * 40 + ["white"] * 40 + ["asian"] * 8 + ["native"] * 8)
    data = build(table, sensitive="race", min_group_size=10, small_groups="other")
    assert data.group_names == ["black", "white", "other"]
    assert group_of(data)[80:] == ["other"] * 16


def test_small_groups_join_a_value_called_other() -> None:
    table = nodes(race=["black"] * 40 + ["other"] * 40 + ["white"] * 10 + ["asian"] * 6)
    data = build(table, sensitive="race", min_group_size=10, small_groups="other")
    assert data.group_names == ["black", "white", "other"]
    assert int((data.sens == 2).sum()) == 46


def test_only_labelled_nodes_count() -> None:
    table = nodes(race=["black"] * 40 + ["white"] * 40 + ["asian"] * 16)
    table.loc[84:, "paid"] = None
    with pytest.raises(DataError, match=r"'asian' \(4\)"):
        build(table, sensitive="race", min_group_size=5)


def test_small_groups_are_left_out_of_comparisons(caplog: pytest.LogCaptureFixture) -> None:
    data = build(sensitive="race", min_group_size=10, small_groups="unknown")
    assert data.group_names == ["black", "white"]
    assert group_of(data)[88:] == [None] * 8
    assert int((data.sens == -1).sum()) == 8
    assert "groups with fewer than 10 labelled nodes are not compared with others: 'asian' (8)" in caplog.text
    again = build(sensitive="race", encoding=data.provenance["encoding"])
    assert torch.equal(again.sens, data.sens)
    with pytest.raises(DataError, match="column 'race' must have at least two groups"):
        build(sensitive="race", min_group_size=40, small_groups="unknown")


def test_small_groups_that_are_too_small_together() -> None:
    with pytest.raises(DataError, match="even together the small groups have fewer than 10 labelled nodes"):
        build(sensitive="race", min_group_size=10, small_groups="other")


def test_min_group_size() -> None:
    with pytest.raises(DataError, match=r"'min_group_size' must be at least 1 .got 0"):
        build(min_group_size=0)
    with pytest.raises(DataError, match="'small_groups' must be one of 'error', 'other', 'unknown'"):
        build(small_groups="merge")


@pytest.mark.parametrize("write", [lambda day: day, lambda day: day.strftime("%d.%m.%Y")])
def test_dates_are_cut_at_years(write: Any) -> None:
    days = [pd.Timestamp("1970-06-30") + pd.DateOffset(months=3 * i) for i in range(SIZE)]  # to March 1994
    days[0], days[1] = pd.Timestamp("1983-12-31"), pd.Timestamp("1984-01-01")
    table = nodes(born=[write(day) for day in days])
    data = build(table, sensitive="born", sens_bins=[1984])
    assert data.group_names == ["born < 1984", "born ≥ 1984"]
    assert [name == "born ≥ 1984" for name in group_of(data)] == [day.year >= 1984 for day in days]
    again = build(
        table.assign(born=table["born"].iloc[::-1].to_numpy()), encoding=data.provenance["encoding"], sensitive="born"
    )
    assert torch.equal(again.sens, data.sens.flip(0))
    assert build(table, sensitive="born", sens_bins=2).group_names == ["born < 1983", "born ≥ 1983"]
    with pytest.raises(DataError, match=r"'born' has .* too many to be groups .*at the first day of 1984 by sens_bins"):
        build(table, sensitive="born")


def test_too_many_combinations() -> None:
    with pytest.raises(DataError, match=r"make 6 groups .*more than 'max_levels' = 5"):
        build(sensitive=["sex", "race"], max_levels=5)


# Numbers


def test_numbers_cut_where_told() -> None:
    data = build(sensitive="age", sens_bins=[25, 60])
    assert data.group_names == ["age < 25", "25 ≤ age < 60", "age ≥ 60"]
    assert group_of(data)[4:6] == ["age < 25", "25 ≤ age < 60"]  # of age 24 and 25
    assert "age" not in data.feature_names


@pytest.mark.parametrize("bins", [2, 3, 4])
def test_numbers_cut_at_quantiles_make_groups_of_equal_size(bins: int) -> None:
    data = build(sensitive="age", sens_bins=bins)
    sizes = torch.bincount(data.sens).tolist()
    assert len(sizes) == bins
    assert max(sizes) - min(sizes) <= 4  # each age occurs twice


def test_intersection_of_a_value_and_a_number() -> None:
    data = build(sensitive=["sex", "age"], sens_bins={"age": [40]})
    assert data.group_names == ["female × age < 40", "female × age ≥ 40", "male × age < 40", "male × age ≥ 40"]


def test_a_missing_number_is_an_unknown_group() -> None:
    table = nodes().astype({"age": float})
    table.loc[7, "age"] = None
    data = build(table, sensitive="age", sens_bins=2, missing_sensitive="unknown")
    assert torch.nonzero(data.sens == -1).flatten().tolist() == [7]


def test_too_many_numbers_without_bins() -> None:
    with pytest.raises(DataError, match=r"column 'age' has 48 distinct values, too many to be groups .*sens_bins=3"):
        build(sensitive="age", max_levels=20)


@pytest.mark.parametrize(
    ("sensitive", "bins", "message"),
    [
        ("age", 1, r"'sens_bins' must be between 2 and 10 bins.*\(got 1\)"),
        ("age", [], "'sens_bins' must be finite numbers in increasing order"),
        ("age", [60, 25], "'sens_bins' must be finite numbers in increasing order"),
        ("age", [np.nan], "'sens_bins' must be finite numbers in increasing order"),
        ("age", [10], r"between its smallest and largest value, 20 and 67 \(got \['10'\]\)"),
        ("age", [99], "between its smallest and largest value, 20 and 67"),
        ("age", "3", r"'sens_bins' must be a whole number or a list .* \(got '3'\)"),
        ("sex", 2, "column 'sex' must contain numbers"),
        (["sex", "age"], 2, "'sens_bins' must say which column to cut"),
        ("age", {"height": 2}, "'sens_bins' must name sensitive columns, 'age' .got 'height'"),
    ],
)
def test_bins_that_cannot_be(sensitive: Any, bins: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(sensitive=sensitive, sens_bins=bins)


def test_quantiles_of_a_number_that_is_mostly_one() -> None:
    table = nodes(age=[0] * 90 + [1, 2, 3, 4, 5, 6])
    with pytest.raises(DataError, match="cannot be cut at its quantiles: most rows have 0; give the numbers"):
        build(table, sensitive="age", sens_bins=2)


# The next table


@pytest.mark.parametrize(
    "options",
    [
        {"sensitive": ["sex", "age"], "sens_bins": {"age": 2}, "keep_sensitive": True},
        {"sensitive": ["sex", "race"], "min_group_size": 5, "small_groups": "other"},
        {"sensitive": "age", "sens_bins": [25, 60]},
    ],
)
def test_another_table_has_the_same_groups(options: dict[str, Any]) -> None:
    data = build(**options)
    encoding = json.loads(json.dumps(data.provenance["encoding"]))
    again = build(sensitive=options["sensitive"], encoding=encoding)
    assert again.group_names == data.group_names
    assert torch.equal(again.sens, data.sens)
    assert torch.equal(again.x, data.x)


def test_a_combination_that_the_encoding_does_not_know() -> None:
    table = nodes(race=["black", "white"] * (SIZE // 2))
    encoding = build(table, sensitive=["sex", "race"]).provenance["encoding"]
    other = nodes(race=["white", "white"] * (SIZE // 2))
    with pytest.raises(DataError, match=r"a group that the fitted table does not have: 'female × white' .sex × race"):
        build(other, sensitive=["sex", "race"], encoding=encoding)


def test_provenance_is_json() -> None:
    data = build(sensitive=["sex", "age"], sens_bins={"age": [30]})
    options = json.loads(json.dumps(data.provenance))["options"]
    assert (options["sensitive"], options["sens_bins"]) == (["sex", "age"], {"age": [30]})


# No edges


def test_edges_from_similar_features() -> None:
    table = nodes()
    data = from_tables(table, label="paid", sensitive="sex", drop=["race"], similarity=0.99)
    assert data.edge_index.shape[1] > 0
    assert data.num_nodes == SIZE
    assert "similar" in data.provenance["edges"]["source"]
    fewer = from_tables(table, label="paid", sensitive="sex", drop=["race"], similarity=1.0)
    assert fewer.edge_index.shape[1] < data.edge_index.shape[1]


def test_edges_or_similarity() -> None:
    with pytest.raises(DataError, match=r"give a table of 'edges', or .*'similarity'.*\(got neither\)"):
        from_tables(nodes(), label="paid", sensitive="sex")
    with pytest.raises(DataError, match=r"\(got both\)"):
        build(similarity=0.8)
    with pytest.raises(DataError, match=r"'similarity' must be at most 1 \(got 2.0\)"):
        from_tables(nodes(), label="paid", sensitive="sex", similarity=2.0)
