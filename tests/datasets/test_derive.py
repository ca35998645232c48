"""The embedded tables, derived again from the raw UCI rows."""

import gzip
import os
import runpy
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pandas as pd
import pytest
from scripts.derive_tables import derive_adult, derive_credit, derive_german

from fairpass.datasets import GraphSpec, graph_spec
from fairpass.datasets.download import mismatch, packaged

GERMAN, CREDIT, ADULT = (graph_spec(name) for name in ("german", "credit", "adult"))

ROOT = Path(__file__).resolve().parents[2]
RAW = {name: ROOT / "tests/data" / name for name in ("german.data.gz", "UCI_Credit_Card.csv.gz", "adult.csv.gz")}

all_tables = pytest.mark.parametrize(
    ("spec", "derive", "raw"),
    [
        (GERMAN, derive_german, "german.data.gz"),
        (CREDIT, derive_credit, "UCI_Credit_Card.csv.gz"),
        (ADULT, derive_adult, "adult.csv.gz"),
    ],
    ids=["german", "credit", "adult"],
)


def embedded(spec: GraphSpec) -> bytes:
    return gzip.decompress(packaged(spec.table).read_bytes())


@all_tables
def test_raw_rows_give_the_embedded_table_byte_for_byte(
    spec: GraphSpec, derive: Callable[[bytes], bytes], raw: str
) -> None:
    derived = derive(gzip.decompress(RAW[raw].read_bytes()))
    assert mismatch(derived, spec.table) is None
    assert derived == embedded(spec)


@pytest.mark.parametrize("spec", [GERMAN, CREDIT], ids=["german", "credit"])
def test_the_embedded_table_is_the_published_file(spec: GraphSpec) -> None:
    published = Path(os.environ.get("FAIRPASS_DATA", "")) / spec.table.path
    if not published.exists():
        pytest.skip(f"set FAIRPASS_DATA to a directory that has the published {spec.table.path} to compare with it")
    assert embedded(spec) == published.read_bytes()


@pytest.mark.parametrize("spec", [GERMAN, CREDIT, ADULT], ids=["german", "credit", "adult"])
def test_form_of_the_file(spec: GraphSpec) -> None:
    content = embedded(spec)
    assert (
        content.count(b"\r\n") == content.count(b"\n") == spec.statistics.nodes
    )  # the header has one, the last row none
    assert not content.endswith(b"\n")


def test_every_rule_of_german_on_one_row_of_each_kind() -> None:
    rows = (
        b"A13 12 A33 A410 700 A64 A72 2 A92 A103 3 A121 24 A141 A151 2 A174 2 A192 A202 1\n"
        b"A14 24 A31 A46 900 A61 A71 1 A93 A102 4 A124 61 A143 A152 1 A171 1 A191 A201 2"
    )
    table = pd.read_csv(BytesIO(derive_german(rows)))
    good, bad = table.iloc[0], table.iloc[1]
    assert (good["GoodCustomer"], bad["GoodCustomer"]) == (1, -1)
    assert (good["Gender"], bad["Gender"]) == ("Female", "Male")
    assert (good["PurposeOfLoan"], bad["PurposeOfLoan"]) == ("Other", "Education")
    is_one = {
        name: (bool(good[name]), bool(bad[name]))
        for name in table.columns[table.isin([0, 1]).all()]
        if name != "NumberOfLiableIndividuals"
    }
    assert is_one == {
        "ForeignWorker": (True, False),
        "Single": (False, True),
        "HasTelephone": (True, False),
        "CheckingAccountBalance_geq_0": (True, False),
        "CheckingAccountBalance_geq_200": (True, False),
        "SavingsAccountBalance_geq_100": (True, False),
        "SavingsAccountBalance_geq_500": (True, False),
        "MissedPayments": (False, True),
        "NoCurrentLoan": (False, True),
        "CriticalAccountOrLoansElsewhere": (False, False),
        "OtherLoansAtBank": (True, False),
        "OtherLoansAtStore": (False, False),
        "HasCoapplicant": (False, True),
        "HasGuarantor": (True, False),
        "OwnsHouse": (False, True),
        "RentsHouse": (True, False),
        "Unemployed": (False, True),
        "YearsAtCurrentJob_lt_1": (True, False),
        "YearsAtCurrentJob_geq_4": (False, False),
        "JobClassIsSkilled": (True, False),
    }


def credit_row(**values: float) -> bytes:
    """A raw row of a client who owes nothing, with the given values in place of the zeros."""
    header = RAW["UCI_Credit_Card.csv.gz"]
    names = gzip.decompress(header.read_bytes()).split(b"\n", 1)[0].decode().split(",")
    row = dict.fromkeys(names, 0.0) | {"LIMIT_BAL": 32750.0, "AGE": 40.0, "EDUCATION_4": 1.0, "MARRIAGE_3": 1.0}
    assert values.keys() <= row.keys()
    return pd.DataFrame([row | values]).astype(int).to_csv(index=False).encode()


def derived_credit_row(**values: float) -> "pd.Series[int]":
    return pd.read_csv(BytesIO(derive_credit(credit_row(**values)))).iloc[0]


def test_credit_amounts_are_rounded_to_tens_of_dollars_and_never_negative() -> None:
    row = derived_credit_row(BILL_AMT1=-5000, BILL_AMT2=3275 + 163, BILL_AMT3=32.75, PAY_AMT1=3275 + 164, PAY_AMT2=9)
    assert row["MostRecentBillAmount"] == 0
    assert row["MaxBillAmountOverLast6Months"] == 100
    assert row["MostRecentPaymentAmount"] == row["MaxPaymentAmountOverLast6Months"] == 110


def test_credit_spending_and_balance_are_counted_on_the_rounded_amounts() -> None:
    # The limit is 1,000 dollars: bills of exactly 200 and 800 are neither low nor high.
    bills = {f"BILL_AMT{month}": 32.75 * dollars for month, dollars in enumerate((190, 200, 800, 810, 990, 0), 1)}
    row = derived_credit_row(**bills, PAY_AMT1=32.75 * 200, PAY_AMT2=32.75 * 200)
    assert row["MonthsWithLowSpendingOverLast6Months"] == 2
    assert row["MonthsWithHighSpendingOverLast6Months"] == 2
    assert row["MonthsWithZeroBalanceOverLast6Months"] == 1


@pytest.mark.parametrize(
    ("late", "runs", "months"),
    [
        ((0, 0, 0, 0, 0, 0), 0, 0),
        ((-1, -2, 0, 0, -1, -2), 0, 0),
        ((2, 2, -1, -1, -2, -2), 1, 4),
        ((1, 0, 2, 3, 0, 8), 3, 14),
        ((1, 1, 1, 1, 1, 1), 1, 6),
    ],
)
def test_credit_overdue_payments(late: tuple[int, ...], runs: int, months: int) -> None:
    row = derived_credit_row(**{f"PAY_{month}": value for month, value in zip((0, 2, 3, 4, 5, 6), late, strict=True)})
    assert row["TotalOverdueCounts"] == runs
    assert row["TotalMonthsOverdue"] == months
    assert row["HistoryOfOverduePayments"] == (runs > 0)


def test_credit_person() -> None:
    young = derived_credit_row(AGE=24, EDUCATION_4=0, EDUCATION_1=1, MARRIAGE_3=0, MARRIAGE_2=1)
    assert (young["Age"], young["EducationLevel"], young["Single"], young["Married"]) == (1, 3, 1, 0)
    old = derived_credit_row(AGE=25, EDUCATION_4=0, EDUCATION_3=1, MARRIAGE_3=0, MARRIAGE_1=1)
    assert (old["Age"], old["EducationLevel"], old["Single"], old["Married"]) == (0, 1, 0, 1)
    assert derived_credit_row()["EducationLevel"] == 0
    assert derived_credit_row(**{"default-payment-next-month": 1})["NoDefaultNextMonth"] == 0


def test_adult_rows_are_rows_of_the_raw_table_in_their_order() -> None:
    raw = pd.read_csv(BytesIO(gzip.decompress(RAW["adult.csv.gz"].read_bytes())))
    table = pd.read_csv(BytesIO(embedded(ADULT)))
    assert len(table) == 12_000
    assert "fnlwgt" not in table
    one_hot = pd.get_dummies(table.rename(columns={"income": "salary"}), dtype=int)
    assert set(one_hot) <= set(raw)
    missing = [name for name in raw if name not in one_hot and name != "fnlwgt"]
    whole = one_hot.reindex(columns=[name for name in raw if name != "fnlwgt"], fill_value=0)
    assert raw[missing].sum().max() < 10, "only categories of a few people may be absent"
    # Each row is found after the one before: the rows are a subsequence.
    rows_left = map(tuple, raw.drop(columns="fnlwgt").to_numpy().tolist())
    assert all(tuple(row) in rows_left for row in whole.to_numpy().tolist())


def test_adult_categories_become_one_column_again() -> None:
    raw = (
        b"age,fnlwgt,education-num,capital-gain,capital-loss,hours-per-week,workclass_Private,workclass_State-gov,"
        b"education_10th,marital-status_Widowed,occupation_Sales,relationship_Wife,race_White,sex_Female,sex_Male,"
        b"native-country_Outlying-US(Guam-USVI-etc),salary_<=50K,salary_>50K\n"
        b"37,1,10,5,6,40,0,1,1,1,1,1,1,1,0,1,0,1\n"
        b"38,2,11,0,0,20,1,0,1,1,1,1,1,0,1,1,1,0\n"
    )
    header, first, second = derive_adult(raw).decode().split("\r\n")
    assert header == (
        "age,education-num,capital-gain,capital-loss,hours-per-week,workclass,education,marital-status,occupation,"
        "relationship,race,sex,native-country,income"
    )
    assert first == "37,10,5,6,40,State-gov,10th,Widowed,Sales,Wife,White,Female,Outlying-US(Guam-USVI-etc),>50K"
    assert second == "38,11,0,0,20,Private,10th,Widowed,Sales,Wife,White,Male,Outlying-US(Guam-USVI-etc),<=50K"


def test_the_script_writes_the_embedded_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = runpy.run_path(str(ROOT / "scripts/derive_tables.py"))
    script["main"](["--out", str(tmp_path)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adult.csv.gz", "credit.csv.gz", "german.csv.gz"]
    printed = capsys.readouterr().out
    for spec in (GERMAN, CREDIT, ADULT):
        assert gzip.decompress((tmp_path / f"{spec.table.path}.gz").read_bytes()) == embedded(spec)
        assert spec.table.sha256 in printed


def test_the_script_refuses_other_rows(tmp_path: Path) -> None:
    other = tmp_path / "german.data"
    other.write_bytes(gzip.decompress(RAW["german.data.gz"].read_bytes()).replace(b"A11 6 ", b"A11 7 ", 1))
    script = runpy.run_path(str(ROOT / "scripts/derive_tables.py"))
    with pytest.raises(SystemExit, match=r"does not give the published german\.csv: expected SHA-256 49cc"):
        script["main"](["--german", str(other), "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
