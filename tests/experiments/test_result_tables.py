"""Tables are pure functions of the records, and well formed in all three forms."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.experiments.conftest import AllResults
from tests.experiments.made_up import record, specs_of

from fairpass.experiments import ITEMS, ItemResults
from fairpass.experiments import tables as forms
from fairpass.experiments.tables import MISSING, Entry, Table, emphasised, number
from fairpass.runs import RunStore

every_item = pytest.mark.parametrize("item", ITEMS)

TRICKY = Table(
    "tricky",
    "50 % of a_b & more",
    pd.DataFrame(
        {
            "name": [Entry("a|b_c"), Entry("{x}~"), Entry("y")],
            "ΔDP ↓": [number(1.234, std=0.5), replace(number(2.0), emphasis="best"), number(None)],
        }
    ),
    ("Notes with * and #.",),
)


@every_item
def test_every_form_is_well_formed(item: str, results: AllResults) -> None:
    tables = results[item].tables
    assert tables
    assert len({table.name for table in tables}) == len(tables)
    for table in tables:
        check_markdown(table)
        check_latex(table)
        check_csv(table)
        json.dumps(table.to_dict(), allow_nan=False)


def check_markdown(table: Table) -> None:
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(table.rows)
    assert {line.replace(r"\|", "").count("|") for line in lines} == {len(table.columns) + 1}


def check_latex(table: Table) -> None:
    text = table.to_latex()
    assert text.isascii()
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    body = text.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines()
    assert len(body) == len(table.rows)
    for line in body:
        assert line.endswith(r"\\")
        assert line.replace(r"\&", "").count("&") == len(table.columns) - 1


def check_csv(table: Table) -> None:
    header, *rows = csv.reader(io.StringIO(table.to_csv()))
    assert len(set(header)) == len(header) >= len(table.columns)
    assert len(rows) == len(table.rows)
    assert {len(row) for row in rows} <= {len(header)}


def test_special_characters_are_escaped() -> None:
    assert TRICKY.to_markdown().splitlines()[2:7] == [
        "| name | ΔDP ↓ |",
        "| :-- | --: |",
        r"| a\|b\_c | 1.23 ± 0.50 |",
        "| {x}~ | **2.00** |",
        f"| y | {MISSING} |",
    ]
    latex = TRICKY.to_latex()
    assert r"\caption{50 \% of a\_b \& more}" in latex
    assert r"a$|$b\_c & 1.23 $\pm$ 0.50 \\" in latex
    assert r"\{x\}\textasciitilde{} & \textbf{2.00} \\" in latex
    assert TRICKY.to_csv() == "name,ΔDP ↓,ΔDP ↓ std\na|b_c,1.234,0.5\n{x}~,2,\ny,,\n"


def test_the_papers_values_can_be_second_lines() -> None:
    ours = replace(number(1.0, std=0.1), emphasis="best")
    row = {"method": Entry("GCN"), "AUC ↑": ours, "AUC, paper": number(2.0), "rank": number(3.0)}
    folded = Table("a", "", pd.DataFrame([row])).folded()
    assert folded.columns == ("method", "AUC ↑", "rank")
    assert "| GCN | **1.00 ± 0.10**<br>2.00 | 3.00 |" in folded.to_markdown()
    assert folded.notes == ("Second lines: the paper's values.",)
    assert TRICKY.folded() is TRICKY


def test_a_table_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="'frame' must have different names of columns \\(got x, x\\)"):
        Table("a", "", pd.DataFrame([[Entry("1"), Entry("2")]], columns=["x", "x"]))
    with pytest.raises(
        ValueError, match="'frame' must have an entry in every row and column \\(table 'stats' has not\\)"
    ):
        forms.table("stats", [{"x": "1", "y": "2"}, {"x": "1"}])


def test_best_and_second_best_are_marked_among_those_ranked() -> None:
    entries = [number(value) for value in (0.0, 3.0, 1.0, 1.001, None)]
    marked = emphasised(entries, lowest=True, groups=[None, 0, 0, 0, 0])
    assert [entry.emphasis for entry in marked] == ["", "second", "best", "best", ""]


@every_item
def test_nothing_run_has_no_tables(item: str, nothing: AllResults) -> None:
    assert nothing[item].tables == []


@every_item
def test_missing_data_sets_are_left_out(item: str, german_only: AllResults) -> None:
    text = "".join(table.to_csv() for table in german_only[item].tables)
    assert "Bail" not in text
    assert len(text) > 100


def test_a_missing_cell_is_a_dash(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    cells = [cell for cell in ITEMS["main"].cells(quick=True) if cell.dataset == "german"]
    for spec in specs_of(cell for cell in cells if cell.label != "FMP"):
        store.add(record(spec))
    table, *_ = ItemResults(ITEMS["main"], store, quick=True).tables
    rows = {row[0].text.removesuffix("†"): row for row in table.rows}
    assert rows["FMP"][1] == Entry(MISSING)
    assert rows["FMP"][2].text == "68.20"  # the paper's value is there all the same
    assert rows["GCN"][1].text != MISSING


def test_the_main_table_has_means_deviations_ranks_and_marks(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for cell in ITEMS["main"].cells(quick=True):
        if cell.dataset == "german":
            for spec in cell.specs():
                best = {"AUC": 99.0, "F1": 99.0, "ACC": 99.0, "DP": 0.0, "EO": 0.0} if cell.label == "GMMD" else {}
                numbers = {"AUC": 70.0 + 2 * spec.seed} if cell.label == "GCN" else best
                store.add(record(spec, numbers, near_constant=cell.label == "NIFTY"))
    found = ItemResults(ITEMS["main"], store, quick=True)
    table, ranks, target, _ = found.tables
    rows = {row[0].text: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["GCN"]["AUC ↑"].text == "71.00 ± 1.41"
    assert rows["GCN"]["AUC, paper"].text == "74.11"
    assert rows["GMMD"]["AUC ↑"].emphasis == "best"
    assert rows["GMMD"]["rank"].text == "1.00"
    assert rows["GMMD (paper's)"]["AUC, paper"].text == "74.03"
    assert rows["constant"]["rank"].text == MISSING
    assert rows["constant"]["ΔDP ↓"].emphasis == ""
    assert "NIFTY†" in rows
    assert any(note.startswith("† near constant") for note in table.notes)
    ranked = {row[0].text: row for row in ranks.rows}
    assert ranked["GMMD"][1].text == "1.00"
    assert ranked["GMMD"][3].text == MISSING  # with the paper's variant only
    assert ranked["NIFTY"][4].text == MISSING  # without near-constant results
    assert ranked["FairGNN"][5].text == "6.53"
    assert [row[4].text for row in target.rows] == ["yes"] * 5 + ["5 of 5"]
    assert target.rows[-1][-1].text == "5 of 5"


def test_configurations_name_what_is_not_the_default(results: AllResults) -> None:
    table = results["main"].tables[-1]
    rows = {(row[0].text, row[1].text): row[-1].text for row in table.rows}
    assert "step=paper" in rows["German", "GMMD (paper's)"]
    assert "sample=100" in rows["German", "GMMD (paper's)"]
    assert "seed" not in rows["German", "GMMD (paper's)"]


def test_times_are_per_epoch_and_relative_to_gcn(results: AllResults) -> None:
    (table,) = results["runtime"].tables
    rows = {row[0].text: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    (gcn,) = results["runtime"].of("german", "GCN")
    (run,) = gcn.records
    assert rows["GCN"]["German: ms per epoch"].value == pytest.approx(1000 * run["seconds"] / run["epochs"])
    assert rows["GCN"]["German: × GCN"].text == "1.0"
    assert rows["EDITS"]["Credit: paper, s"].text == "260.5"
