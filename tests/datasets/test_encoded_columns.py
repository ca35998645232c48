"""How columns of each kind become features, and how the next table repeats it."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import TargetEncoder
from tests.drawing import examples
from torch_geometric.data import Data

from fairpass.datasets import TableOptions, from_tables, join_tables
from fairpass.datasets.encoding import Encoding
from fairpass.errors import DataError

N = 240
generator = np.random.default_rng(3)
TITLES = [f"title {i}" for i in range(60)]
DAYS = pd.date_range("2019-01-07", periods=N, freq="5D")  # a Monday first


def people(**columns: Any) -> pd.DataFrame:
    table = {
        "name": [f"p{i}" for i in range(N)],
        "age": np.linspace(20.0, 66.0, N),
        "sex": ["F", "M"] * (N // 2),
        "paid": ["no", "no", "yes", "yes"] * (N // 4),
    }
    return pd.DataFrame(table | columns)


EDGES = pd.DataFrame({"a": ["p0", "p1"], "b": ["p1", "p2"]})
OWN: dict[str, Any] = {"id": "name", "label": "paid", "sensitive": "sex"}


def build(table: Any = None, **options: Any) -> Data:
    return from_tables(people() if table is None else table, EDGES, **OWN | options)


def again(data: Data, table: Any, **options: Any) -> Data:
    """Encode another table like that of a graph."""
    return from_tables(table, encoding=data.provenance["encoding"], **OWN | options)


def feature(data: Data, name: str) -> list[float]:
    values: list[float] = data.x[:, data.feature_names.index(name)].tolist()
    return values


def money() -> list[str]:
    return [f"${1000 + 37 * i:,.2f}" for i in range(N)]


# Kinds


def test_money_percent_and_numbers_with_a_comma() -> None:
    table = people(pay=money(), rate=[f"{i % 40},5 %" for i in range(N)], size=[f"{i},25" for i in range(N)])
    data = build(table, scale="none")
    assert data.feature_names == ["age", "pay", "rate", "size"]
    assert feature(data, "pay")[:2] == [1000, 1037]
    assert feature(data, "rate")[:2] == pytest.approx([0.005, 0.015])
    assert feature(data, "size")[:2] == [0.25, 1.25]


def test_dates_become_ages() -> None:
    data = build(people(hired=DAYS.strftime("%d.%m.%Y")), scale="none")
    (name,) = [name for name in data.feature_names if name.startswith("hired")]
    assert name == f"hired, years before {DAYS[-1].date()}"
    assert feature(data, name)[-1] == 0
    assert feature(data, name)[0] == pytest.approx(5 * (N - 1) / 365.25)
    for same in (DAYS, DAYS.tz_localize("UTC"), list(DAYS.date), DAYS.strftime("%Y-%m-%d")):
        assert torch.equal(build(people(hired=same), scale="none").x, data.x)
    later = again(data, people(hired="2030-01-01").head(1))
    assert later.x[0, 1] < 0  # after the reference, which stays


def test_weekdays_if_asked() -> None:
    data = build(people(hired=DAYS), columns={"hired": {"kind": "date", "weekday": True}})
    days = data.x[:, 2:]
    assert data.feature_names[2:] == [f"hired on a {day}" for day in pd.date_range("2024-01-01", periods=7).day_name()]
    assert torch.equal(days.argmax(1), torch.tensor(DAYS.day_of_week.to_numpy()))
    assert (days.sum(1) == 1).all()
    gaps = people(hired=DAYS.where(np.arange(N) != 7))
    filled = build(gaps, columns={"hired": {"kind": "date", "weekday": True}}, missing="mean").x[7, 2:]
    assert filled.sum() == pytest.approx(1)


def test_flags_in_any_spelling() -> None:
    data = build(people(member=["Yes", "no", "Y", "N"] * (N // 4)))
    assert feature(data, "member") == [1, 0] * (N // 2)
    assert again(data, people(member="TRUE").head(2)).x[:, 1].tolist() == [1, 1]
    assert again(data, people(member=False).head(2)).x[:, 1].tolist() == [0, 0]


def test_codes_are_categories(caplog: pytest.LogCaptureFixture) -> None:
    table = people(zip=[2134, 10001, 300] * (N // 3))
    data = build(table)
    assert data.feature_names == ["age", "zip=300", "zip=2134", "zip=10001"]
    assert "column 'zip': its name is that of a code: a category, not a number" in caplog.text
    assert build(table, columns={"zip": "number"}).feature_names == ["age", "zip"]


def test_rare_levels_together() -> None:
    cities = ["Rome"] * 100 + ["Oslo"] * 100 + [f"village {i}" for i in range(40)]
    data = build(people(city=cities), columns={"city": {"kind": "rare", "min_count": 20}})
    assert data.feature_names[1:] == ["city=Oslo", "city=Rome", "city=other levels"]
    assert data.x[-1, 1:].tolist() == [0, 0, 1]
    assert again(data, people(city="Atlantis").head(1)).x[0, 1:].tolist() == [0, 0, 1]


def test_free_text_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    data = build(people(note=[f"call {i}" for i in range(N)], other=["x", *[f"t{i}" for i in range(N - 1)]]))
    assert data.feature_names == ["age"]
    assert data.provenance["columns_left_out"] == ["note", "other"]
    assert "column 'note': 240 of 240 values differ: free text, it is left out" in caplog.text
    assert build(people(note="x"), columns={"note": "drop"}).feature_names == ["age"]


# Many levels


def titled(**columns: Any) -> pd.DataFrame:
    rows = np.random.default_rng(0).integers(0, len(TITLES), N)
    return people(title=[TITLES[row] for row in rows], **columns)


def test_many_levels_become_shares_of_the_label(caplog: pytest.LogCaptureFixture) -> None:
    table = titled()
    data = build(table, scale="none")
    assert data.feature_names == ["age", "title: share of yes"]
    assert "column 'title': it has 59 values, more than" in caplog.text
    train = data.train_mask.numpy()
    encoder = TargetEncoder(target_type="binary").fit(table[["title"]][train], data.y.numpy()[train])
    expected = encoder.transform(table[["title"]])[:, 0]
    assert feature(data, "title: share of yes") != pytest.approx(expected)
    assert data.x[~train, 1].numpy() == pytest.approx(expected[~train])
    # Another table: all rows alike, an unknown title is the mean.
    assert again(data, table).x[:, 1].numpy() == pytest.approx(expected)
    assert again(data, table.assign(title="king").head(1)).x[0, 1] == pytest.approx(data.y[train].float().mean())


def test_labels_outside_training_have_no_effect() -> None:
    part = np.array(["train", "train", "train", "val", "val", "test", "test", "train"] * (N // 8))
    table = titled(part=part)
    other = table.copy()
    rest = np.flatnonzero(part != "train")
    other.loc[rest, "paid"] = np.random.default_rng(1).permutation(other.loc[rest, "paid"])
    assert (other["paid"] != table["paid"]).any()
    first, second = (build(each, split="part") for each in (table, other))
    assert torch.equal(first.x, second.x)


def test_training_nodes_do_not_see_their_own_label() -> None:
    """If every title has its own label in training, cross-fitting hides it, and the plain mean would tell it."""
    table = people(title=[TITLES[i % 2 * 30 + i // 2 % 30] for i in range(N)], paid=["no", "yes"] * (N // 2))
    table["paid"] = generator.permutation(table["paid"])
    data = build(table, scale="none", columns={"title": "target"})
    train, y = data.train_mask, data.y.float()
    own = np.corrcoef(data.x[train, 1], y[train])[0, 1]
    plain = np.corrcoef(again(data, table).x[train, 1], y[train])[0, 1]
    assert plain > 0.4  # four people per title
    assert own < 0.2


def test_several_labels_have_a_share_each() -> None:
    data = build(titled(paid=["no", "yes", "later"] * (N // 3)), scale="none")
    names = ["title: share of later", "title: share of no", "title: share of yes"]
    assert data.feature_names[1:] == names
    assert data.x[:, 1:].sum(1).numpy() == pytest.approx(1, abs=0.4)  # each is smoothed by itself
    assert data.x[:, 1:].min() >= 0


def test_a_rare_label_is_no_obstacle() -> None:
    labels = np.array(["no", "yes"] * (N // 2), dtype=object)
    labels[[0, 1, 2, 100, 101, 102]] = "rare"
    assert "title: share of rare" in build(titled(paid=labels)).feature_names


def test_scale_and_seed_of_shares() -> None:
    data = build(titled())
    assert data.x[:, 1].mean().abs() < 0.3
    assert 0.3 < data.x[:, 1].std() < 3
    assert torch.equal(build(titled()).x, data.x)
    gaps = titled()
    gaps.loc[:19, "title"] = None
    filled = build(gaps, missing="indicator")
    assert filled.feature_names[1:] == ["title: share of yes", "title is missing"]
    assert filled.x[:20, 2].tolist() == [1] * 20
    assert len(set(filled.x[:20, 1].tolist())) == 1


# Spellings


def test_spellings_are_merged(caplog: pytest.LogCaptureFixture) -> None:
    table = people(
        sex=["M", "F", "male", "f ", "m", "female"] * (N // 6),
        paid=["yes", "No", "Yes", "no"] * (N // 4),
        job=["Nurse", "clerk", "nurse", "CLERK", "clerk"] * (N // 5),
    )
    data = build(table, positive="YES")
    assert data.group_names == ["F", "M"]
    assert data.sens.tolist() == [1, 0] * (N // 2)
    assert data.label_names == ["No", "Yes"] or data.label_names == ["no", "yes"]
    assert data.y.tolist()[:4] == [1, 0, 1, 0]
    assert data.feature_names == ["age", "job=Nurse", "job=clerk"]
    assert "column 'sex': spellings are merged: 'f ' is 'F', 'female' is 'F', 'm' is 'M' and 1 more" in caplog.text
    new = again(data, table.assign(job=" NURSE", sex="Male", paid="YES").head(1))
    assert (new.x[0, 1:].tolist(), new.sens.tolist(), new.y.tolist()) == ([1, 0], [1], [1])


def test_space_around_a_value_is_no_part_of_it() -> None:
    data = build(people(sex=[" F", "M "] * (N // 2)))
    assert data.group_names == ["F", "M"]
    assert again(data, people().head(2)).sens.tolist() == [0, 1]


def test_spellings_can_be_kept_apart() -> None:
    table = people(grade=["a", "A"] * (N // 2))
    data = build(table, merge_spellings=False)
    assert data.feature_names == ["age", "grade=A", "grade=a"]
    assert again(data, table.assign(grade="B").head(1)).x[0, 1:].tolist() == [0, 0]


def test_words_are_merged_only_where_both_are() -> None:
    data = build(people(state=["M", "S", "D"] * (N // 3)))  # married, single, divorced
    assert data.feature_names[1:] == ["state=D", "state=M", "state=S"]


# Missing values


def test_words_for_missing_numbers(caplog: pytest.LogCaptureFixture) -> None:
    pay = ["?", "n/a", *money()[2:]]
    data = build(people(pay=pay), missing="indicator")
    assert feature(data, "pay is missing")[:3] == [1, 1, 0]
    assert "column 'pay': '?', 'n/a' counts as missing (2 rows)" in caplog.text
    with pytest.raises(DataError, match=r"column 'pay' has missing values \(2 missing, first in row 0\)"):
        build(people(pay=pay))
    assert build(people(pay=pay), missing="drop").feature_names == ["age"]


# Rules


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"age": "mony"}, r"^'columns': the rule of 'age': there is no kind 'mony': did you mean 'money'\?$"),
        ({"age": {"weekday": True}}, "the rule of 'age' must have a 'kind', one of 'number', "),
        ({"age": {"kind": "date", "week": 1}}, "there is no setting 'week': did you mean 'weekday'"),
        ({"age": {"kind": "date", "weekday": 1}}, r"'weekday' must be true or false \(got 1\)"),
        ({"age": {"kind": "rare", "min_count": 1}}, r"'min_count' must be at least 2 \(got 1\)"),
        ({"age": {"kind": "money", "weekday": True}}, r"'weekday' is only for 'date' \(got kind 'money'\)"),
        ({"age": {"kind": "money", "decimal": ";"}}, r"'decimal' must be one of '.', ',' \(got ';'\)"),
        ({"age": 3}, r"the rule of 'age' must be the name of a kind, or a table with one \(got 3\)"),
        ("money", r"'columns' must be a table with keys \(got 'money'\)"),
    ],
)
def test_rules_that_are_wrong(rules: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(columns=rules)


@pytest.mark.parametrize(
    ("values", "rule", "message"),
    [
        ([*money()[1:], "much"], "money", "column 'x' does not fit its rule 'money': the value 'much' in row 239"),
        (["today", *DAYS.strftime("%Y-%m-%d")[1:]], "date", "rule 'date': the value 'today' in row 0 cannot be read"),
        (["yes", "no", "perhaps"] * 80, "flag", r"rule 'flag': the value 'perhaps' in row 2 .*\(80 such values\)"),
        (np.arange(N) % 3, "flag", "rule 'flag': the value 2 in row 2"),
        (DAYS, "number", "column 'x' must be read as number, but contains dates"),
        (
            ["31.12.2020", *["1.2.2020"] * 239],
            {"kind": "date", "format": "%m.%d.%Y"},
            "the value '31.12.2020' in row 0",
        ),
    ],
)
def test_values_that_do_not_fit_the_rule(values: Any, rule: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        build(people(x=values), columns={"x": rule})


def test_rules_win_over_what_is_recognised() -> None:
    table = people(level=[str(i % 4) for i in range(N)], day=[20200101 + i % 28 for i in range(N)])
    data = build(table, columns={"level": "category", "day": "date"})
    assert data.feature_names == ["age", *(f"level={i}" for i in range(4)), "day, years before 2020-01-28"]
    assert data.provenance["options"]["columns"]["level"]["kind"] == "category"
    assert TableOptions.parse(data.provenance["options"]).columns["day"].kind == "date"


# The next table


MIXED: dict[str, Any] = {
    "pay": money(),
    "size": [f"{1 + i % 9}.{i:03d},5" for i in range(N)],
    "hired": DAYS.strftime("%d/%m/%Y"),
    "member": ["yes", "no"] * (N // 2),
    "zip": [f"{i % 7:05d}" for i in range(N)],
    "grade": [f"{i % 5}.50" if i % 5 else "extra " for i in range(N)],
    "title": titled()["title"],
}


@examples(25)
@given(rows=st.lists(st.integers(0, N - 1), min_size=1, max_size=12, unique=True), as_file=st.booleans())
def test_any_part_of_a_table_is_encoded_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[int], as_file: bool
) -> None:
    """Whatever a few rows look like: 1.234 alone would be a number with a decimal point, and 00003 the number 3."""
    table = people(**MIXED)
    data = build(table, missing="mean")
    whole = again(data, table)
    part: Any = table.iloc[rows]
    if as_file:
        part = tmp_path_factory.mktemp("part") / "part.csv"
        table.iloc[rows].to_csv(part, index=False, sep=";")
    few = again(data, part)
    assert torch.equal(few.x, whole.x[rows])
    assert torch.equal(few.y, whole.y[rows])
    assert few.provenance["encoding"] == data.provenance["encoding"]
    assert few.provenance["differences"] == []


def test_encoding_is_json() -> None:
    encoding = build(people(**MIXED), missing="indicator").provenance["encoding"]
    assert json.loads(json.dumps(encoding, allow_nan=False)) == encoding
    assert Encoding.load(json.loads(json.dumps(encoding))).model_dump() == encoding
    assert [column["kind"] for column in encoding["columns"]] == [
        *("number", "money", "number", "date", "flag", "category", "category", "target")
    ]


def test_codes_of_numbers_with_gaps(tmp_path: Path) -> None:
    """pandas writes whole numbers with gaps as 300.0."""
    data = build(people(zip=[2134, 10001, 300] * (N // 3)))
    path = tmp_path / "new.csv"
    people(zip=[300.0, 2134.0, *[10001.0] * (N - 2)]).head(2).to_csv(path, index=False)
    assert again(data, path).x[:, 1:].tolist() == [[1, 0, 0], [0, 1, 0]]


def test_encoding_of_version_2() -> None:
    columns = [
        {
            "kind": "number",
            "column": "age",
            "fill": 0.5,
            "indicator": True,
            "shift": 43.0,
            "scale": 2.0,
            "levels": None,
        },
        {
            **{"kind": "category", "column": "job", "fill": [0.25, 0.75], "indicator": False},
            **{"shift": 0.0, "scale": 1.0, "levels": ["clerk", "nurse"]},
        },
    ]
    group = {"columns": [{"column": "sex", "names": ["F", "M"], "edges": None}], "names": ["F", "M"], "merged": []}
    stored = {"version": 2, "label": "paid", "label_names": ["no", "yes"], "grouping": group, "columns": columns}
    table = people(job=["nurse", "clerk"] * (N // 2))
    table.loc[0, "age"] = None
    data = from_tables(table, encoding=stored, **OWN)
    assert data.feature_names == ["age", "age is missing", "job=clerk", "job=nurse"]
    assert data.x[0].tolist() == [0.5, 1, 0, 1]
    assert data.x[-1].tolist() == [11.5, 0, 1, 0]
    with pytest.raises(DataError, match="column 'sex' has values that the fitted table does not have: 'f'"):
        from_tables(table.assign(sex="f"), encoding=stored, **OWN)  # spellings were not merged


# Differences from the fitted table


def differences(data: Data) -> dict[tuple[str, str], tuple[int, str]]:
    return {(each["column"], each["kind"]): (each["rows"], each["example"]) for each in data.provenance["differences"]}


def test_differences_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    table = people(job=["nurse", "clerk"] * (N // 2), pay=money(), hired=DAYS, size=np.arange(N))
    data = build(table, missing="mean")
    new = table.head(50).assign(age=[200.0, *[40.0] * 49], pay="$9,000.00", hired=DAYS[:50]).drop(columns="size")
    new.loc[[3, 4], "job"] = "pilot"
    new.loc[7, "pay"] = "a lot"
    caplog.clear()
    found = again(data, new)
    assert differences(found) == {
        ("age", "outside"): (1, "200.0 in row 0"),
        ("job", "unseen"): (2, "'pilot' in row 3"),
        ("pay", "unreadable"): (1, "'a lot' in row 7"),
        ("pay", "shifted"): (49, "+1.4"),
        ("hired", "shifted"): (50, "+1.4"),
        ("size", "absent"): (50, ""),
    }
    notes = [record.message for record in caplog.records]
    assert notes == [each["note"] for each in found.provenance["differences"]]
    assert notes[0] == "column 'age': values outside the fitted range, 20 to 66: 1, first 200.0 in row 0"
    assert notes[-1] == "column 'size' is not in the table: it is filled in"
    assert json.loads(json.dumps(found.provenance)) == found.provenance
    assert found.x[7, 3] == 0  # the mean


def test_dates_after_the_fitted_ones() -> None:
    data = build(people(hired=DAYS))
    (each,) = again(data, people(hired="2031-01-01").head(1)).provenance["differences"]
    fitted = f"{DAYS[0].date()} to {DAYS[-1].date()}"
    assert each["note"] == f"column 'hired': values outside the fitted dates, {fitted}: 1, first '2031-01-01' in row 0"


def test_one_value_outside_the_range_does_not_move_the_mean() -> None:
    data = build(people(height=np.arange(N)))
    one = again(data, people(height=[1e9, *[N // 2] * (N - 1)])).provenance["differences"]
    assert [each["kind"] for each in one] == ["outside"]
    all_of_them = again(data, people(height=1e9)).provenance["differences"]
    assert [each["kind"] for each in all_of_them] == ["outside", "shifted"]


def test_what_cannot_be_filled_in_is_an_error() -> None:
    data = build(people(pay=money()))
    with pytest.raises(DataError, match="'nodes' has no column 'pay', and missing values are not filled in"):
        again(data, people())
    with pytest.raises(DataError, match="column 'pay' has a value that cannot be read as money: 'a lot' in row 0"):
        again(data, people(pay="a lot"))


def test_many_differences_are_cut_short(caplog: pytest.LogCaptureFixture) -> None:
    numbers = {f"n{i}": np.arange(N) for i in range(14)}
    data = build(people(**numbers))
    caplog.clear()
    found = again(data, people(**dict.fromkeys(numbers, -5)).head(1))
    assert len(found.provenance["differences"]) == 14
    assert len(caplog.records) == 11
    assert caplog.records[-1].message == "and 4 more differences from the fitted table"


def test_the_fitted_table_has_no_differences(caplog: pytest.LogCaptureFixture) -> None:
    data = build(people(**MIXED), missing="mean")
    assert "differences" not in data.provenance
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        assert again(data, people(**MIXED)).provenance["differences"] == []
    assert not caplog.records


def test_new_people_join_with_their_differences() -> None:
    data = build(people(job=["nurse", "clerk"] * (N // 2)))
    new = people(job="pilot", name=[f"n{i}" for i in range(N)]).head(2)
    joined = join_tables(data, new)
    assert [each["kind"] for each in joined.provenance["new"]["differences"]] == ["unseen"]
    with pytest.raises(DataError, match="'pilot'"):
        join_tables(data, new, unknown_category="error")
