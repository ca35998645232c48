"""A claim is seen if the numbers say so, and otherwise it is not."""

from pathlib import Path

import pytest
from tests.experiments.conftest import AllResults
from tests.experiments.made_up import record

from fairpass.experiments import ITEMS, ItemResults
from fairpass.experiments.item import Check, Claim
from fairpass.runs import RunStore


def test_verdicts_and_sentences() -> None:
    yes, no = Check("German", True, "1 against 2"), Check("Bail", False, "3 against 2")
    assert Claim("It is so.", ()).sentence == "Not measured."
    assert Claim("It is so.", (yes, yes)).sentence == "Seen: German (1 against 2); German (1 against 2)."
    assert Claim("It is so.", (no,)).sentence == "Not seen: Bail (3 against 2)."
    mixed = Claim("It is so.", (no, yes))
    assert mixed.verdict == "partly seen"
    assert mixed.sentence == "Partly seen, in 1 of 2. Yes: German (1 against 2). No: Bail (3 against 2)."


@pytest.mark.parametrize("item", ITEMS)
def test_without_records_nothing_is_measured(item: str, nothing: AllResults) -> None:
    assert {claim.verdict for claim in nothing[item].claims} <= {"not measured"}


@pytest.mark.parametrize("item", [item for item in ITEMS if item != "beyond"])
def test_with_records_there_is_a_verdict(item: str, results: AllResults) -> None:
    claims = results[item].claims
    assert claims
    # A quick run has too few points along an axis for one claim each of these two.
    assert sum(claim.verdict == "not measured" for claim in claims) <= (item in ("hyper", "layers"))


def german(item: str, directory: Path, numbers: dict[str, dict[str, float]]) -> list[Claim]:
    """Return the claims of an item on German, with the metrics of some labels."""
    store = RunStore(directory)
    for cell in ITEMS[item].cells(quick=True):
        if cell.dataset == "german" and cell.label in numbers:
            for spec in cell.specs():
                store.add(record(spec, numbers[cell.label]))
    return ItemResults(ITEMS[item], store, quick=True).claims


def metrics(utility: float, bias: float) -> dict[str, float]:
    return {"AUC": utility, "F1": utility, "ACC": utility, "DP": bias, "EO": bias}


def test_the_best_ranks_are_seen_for_one_variant_only(tmp_path: Path) -> None:
    rows = {
        "GCN": metrics(80, 9),
        "GMMD": metrics(82, 1),
        "GMMD-S": metrics(81, 2),
        "GMMD (paper's)": metrics(70, 10),
        "GMMD-S (paper's)": metrics(71, 11),
    }
    ranks, wins, fairer, simpler, *_ = german("main", tmp_path, rows)
    assert ranks.sentence == (
        "Partly seen, in 1 of 2. "
        "Yes: as we recommend it (GMMD 1.00 and GMMD-S 2.00, the best other method, GCN, 3.00). "
        "No: as the paper defines it (GMMD 2.60 and GMMD-S 2.40, the best other method, GCN, 1.00)."
    )
    assert wins.verdict == "not measured"
    assert fairer.sentence == "Seen: German (ΔDP 1.0 against 9.0, ΔEO 1.0 against 9.0, 2.0 points more utility)."
    assert simpler.verdict == "seen"


def test_a_high_cost_is_not_little(tmp_path: Path) -> None:
    rows = {"GCN": metrics(80, 9), "GMMD": metrics(75, 1)}
    fairer = german("main", tmp_path, rows)[2]
    assert fairer.sentence == "Not seen: German (ΔDP 1.0 against 9.0, ΔEO 1.0 against 9.0, 5.0 points less utility)."


def test_ablation(tmp_path: Path) -> None:
    rows = {
        "full": metrics(80, 1),
        "w/o smooth": metrics(70, 1),
        "w/o fair": metrics(81, 9),
        "w/o both": metrics(69, 10),
        "sampled": metrics(80.5, 1.5),
    }
    claims = german("ablation", tmp_path, rows)
    assert [claim.verdict for claim in claims] == ["seen"] * 4
    worse = german("ablation", tmp_path / "b", {**rows, "sampled": metrics(70, 9)})
    assert [claim.verdict for claim in worse] == ["seen", "seen", "seen", "not seen"]


def test_similarity_and_bounds(results: AllResults) -> None:
    opposed, rises, first, second = results["theory"].claims
    assert opposed.verdict == "seen"
    assert "German, GMMD (-0.80)" in opposed.sentence
    assert rises.verdict == "seen"
    assert first.verdict == second.verdict == "seen"
    assert [claim.verdict for claim in results["cases"].claims] == ["seen", "seen"]
