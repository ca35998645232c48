"""The paper's numbers are those that it prints, and its ranks follow from them."""

import pytest

from fairpass.experiments import paper
from fairpass.experiments.cells import METRICS, average_ranks, is_better


def test_every_table_is_whole() -> None:
    assert {len(table) for table in paper.MAIN.values()} == {9}
    tables = [*paper.MAIN.values(), *paper.ABLATION.values()]
    tables += [table for backbones in paper.BACKBONES.values() for table in backbones.values()]
    assert len(tables) == 3 + 1 + 6
    for table in tables:
        for row in table.values():
            assert tuple(row) == METRICS
            assert all(len(cell) == 2 and 0 <= cell[1] <= 10 for cell in row.values())


@pytest.mark.parametrize(
    ("dataset", "method", "metric", "printed"),
    [
        ("german", "GCN", "AUC", [74.11, 0.37]),
        ("german", "EDITS", "EO", [3.89, 4.23]),
        ("credit", "NIFTY", "AUC", [74.36, 0.21]),
        ("credit", "FairVGNN", "DP", [5.02, 5.22]),
        ("bail", "FMP", "F1", [77.46, 0.40]),
        ("bail", "GMMD-S", "EO", [3.80, 0.77]),
    ],
)
def test_main_table(dataset: str, method: str, metric: str, printed: list[float]) -> None:
    assert list(paper.MAIN[dataset][method][metric]) == printed


def test_other_tables() -> None:
    assert list(paper.BACKBONES["bail"]["GAT"]["GMMD"]["DP"]) == [1.24, 0.28]
    assert list(paper.BACKBONES["credit"]["GIN"]["FairVGNN"]["ACC"]) == [78.18, 0.20]
    assert list(paper.ABLATION["german"]["w/o both"]["AUC"]) == [69.01, 6.22]
    assert paper.SECONDS["credit"]["EDITS"] == 260.5
    assert paper.STATISTICS["bail"]["nodes"] == 19_717


def test_the_ranks_follow_from_the_numbers() -> None:
    recomputed = average_ranks(map(paper.means, paper.MAIN.values()))
    # Three of the printed ranks treat a tie in another way.
    assert recomputed == pytest.approx(paper.RANKS["main"], abs=0.04)
    for backbone in ("GIN", "GAT"):
        recomputed = average_ranks(paper.means(tables[backbone]) for tables in paper.BACKBONES.values())
        assert recomputed == pytest.approx(paper.RANKS[backbone], abs=0.04)
    ablation = average_ranks([paper.means(paper.ABLATION["german"])])
    assert ablation["GMMD"] == ablation["w/o sample"] == pytest.approx(2.4)


def test_the_target_is_the_better_of_the_two() -> None:
    assert [paper.target("german", metric) for metric in METRICS] == [74.03, 83.13, 72.28, 0.90, 0.76]
    assert [paper.target("credit", metric) for metric in METRICS] == [71.78, 87.57, 78.11, 1.55, 1.08]
    assert [paper.target("bail", metric) for metric in METRICS] == [89.12, 78.72, 85.62, 1.68, 3.80]


def test_equal_values_share_their_place() -> None:
    rows = {name: dict.fromkeys(METRICS, 0.0) for name in "abc"}
    for name, bias, accuracy in (("a", 3.0, 3.0), ("b", 1.0, 1.0), ("c", 1.001, 2.0)):
        rows[name] |= {"DP": bias, "ACC": accuracy}
    # Three metrics are all equal: place 2 for everybody.
    assert average_ranks([rows]) == pytest.approx(
        {"a": (6 + 3 + 1) / 5, "b": (6 + 1.5 + 3) / 5, "c": (6 + 1.5 + 2) / 5}
    )
    assert is_better(1.0, 2.0, "EO")
    assert is_better(2.0, 1.0, "AUC")
    assert not is_better(2.001, 2.0, "AUC")
