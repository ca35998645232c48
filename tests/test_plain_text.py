"""Text from tables is shown, and neither obeyed by a terminal nor computed by a spreadsheet."""

import csv
import io
import tomllib

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairpass.plain_text import as_name, check_name, escaped, printable, spreadsheet_cell, text_of_cell, to_csv

ANY = st.text(st.characters(exclude_categories=["Cs"]))


@given(ANY)
def test_nothing_that_is_printable_controls_a_terminal(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert not any(ord(mark) < 32 and mark not in "\t\n" for mark in shown)
    assert not any(0x7F <= ord(mark) <= 0x9F or mark in "\u202e\u2066" for mark in shown)
    assert printable(shown) == shown
    assert escaped(text).encode().decode() == escaped(escaped(text))


@pytest.mark.parametrize("mark", ["\u200b", "\u200e", "\u200f", "\u061c", "\u2060", "\ufeff", "\U000e0041", "\u202e"])
def test_what_cannot_be_seen_is_shown(mark: str) -> None:
    assert printable(f"a{mark}b") == "a\ufffdb"
    assert tomllib.loads(f'text = "{escaped(f"a{mark}b")}"') == {"text": f"a{mark}b"}
    with pytest.raises(ValueError, match="'name' must be a name for a directory"):
        check_name("name", f"a{mark}b")


@pytest.mark.parametrize("text", ["Ödön", "שלום", "日本", "👩‍👩‍👧", "a\tb\nc", "O'Neill {x} [red] 50 %"])
def test_names_of_people_stay_as_they_are(text: str) -> None:
    assert printable(text) == text == escaped(text)


@given(st.text("=+-@\t\r\n'＝a1.e ") | ANY)
def test_a_cell_is_no_formula_and_gives_its_text_back(text: str) -> None:
    cell = spreadsheet_cell(text)
    assert text_of_cell(cell) == text
    if cell[:1] in tuple("=+-@\t\r\n＝＋－＠"):
        float(cell)


@pytest.mark.parametrize("text", ["-5", "+3.25", "-1e-3", "12", "p1", "", "'tis", "a=b"])
def test_harmless_cells_are_not_changed(text: str) -> None:
    assert spreadsheet_cell(text) == text


def test_a_table_as_csv() -> None:
    table = pd.DataFrame(
        {
            "=node": ["=1+1", "'=1", "-7", None],
            "@": [-1.5, 2.0, -3e-9, 4.0],
            "n": [-1, 2, 3, 4],
            "k": [True, -1, "-x", ""],
        }
    )
    table["c"] = pd.Categorical(["+a", "b", "+a", "b"])
    before = table.copy()
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows[0] == ["'=node", "'@", "n", "k", "c"]
    assert rows[1] == ["'=1+1", "-1.5", "-1", "True", "'+a"]
    assert rows[2] == ["''=1", "2.0", "2", "-1", "b"]
    assert rows[3] == ["-7", "-3e-09", "3", "'-x", "'+a"]
    pd.testing.assert_frame_equal(table, before)


@given(st.lists(ANY.filter(lambda text: "\0" not in text), min_size=1), st.sampled_from(["node", "a\rb", "\r=1", "-1"]))
def test_a_table_comes_back_as_it_was(texts: list[str], name: str) -> None:
    table = pd.DataFrame({name: texts, "score": range(len(texts))})
    found = pd.read_csv(io.BytesIO(to_csv(table).encode()), dtype=str, keep_default_na=False)
    assert [text_of_cell(each) for each in found.columns] == [name, "score"]
    assert [text_of_cell(each) for each in found.iloc[:, 0]] == texts
    assert list(found["score"]) == [str(i) for i in range(len(texts))]


BAD_NAMES = ["", " ", ".", "..", "a/b", "a\\b", "../x", "a\nb", "a\x1b[31m", "a\x00", "x" * 201, "é" * 101]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_is_no_directory_of_its_own_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"'name' must be a name .* \(got '"):
        check_name("name", name)
    check_name("name", as_name(name, "project"))


@pytest.mark.parametrize("name", ["a{b}", "100 %s", "[red]x", "...", ".hidden", "Ödön & co"])
def test_unusual_names_are_names(name: str) -> None:
    assert check_name("name", name) == as_name(name, "project") == name


@given(ANY)
def test_a_name_can_be_made_of_any_text(text: str) -> None:
    check_name("name", as_name(text, "project"))
