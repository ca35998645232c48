"""The protocol is the same for every method; what is chosen, compared and concluded follows the records."""

import json
from pathlib import Path

import pandas as pd
import pytest
from tests.experiments.made_up import record

from fairpass.errors import DataError
from fairpass.experiments.benchmark import (
    BenchmarkResults,
    Entry,
    Protocol,
    benchmark_section,
    entries,
    run_benchmark,
    write_benchmark,
)
from fairpass.experiments.benchmark.evidence import graph_gain, undominated
from fairpass.experiments.benchmark.figures import _cliques
from fairpass.experiments.benchmark.protocol import BUDGET, COMMON, GRAPHS
from fairpass.experiments.benchmark.tables import (
    difference_table,
    effect_table,
    hypervolume_frames,
    metric_table,
    summary_table,
    undominated_table,
    variance_table,
    worth_table,
)
from fairpass.methods import method, names
from fairpass.runs import Configuration, RunSpec, RunStore

METRICS = {"AUC": 90.0, "F1": 80.0, "ACC": 85.0, "DP": 5.0, "EO": 4.0}


# The protocol


def test_every_method_of_the_registry_has_a_row() -> None:
    rows = entries()
    assert {entry.method for entry in rows} == {*names()}
    assert len({entry.label for entry in rows}) == len(rows)


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.label)
def test_every_row_keeps_the_budget_and_the_common_settings(entry: Entry) -> None:
    assert 1 <= len(entry.settings) <= BUDGET
    keys = {RunSpec("german", setting).key for setting in entry.settings}
    assert len(keys) == len(entry.settings)
    for setting in entry.settings:
        training = setting.classifier().training
        assert {name: getattr(training, name) for name in COMMON} == COMMON
        if entry.is_fair:
            control = setting.control()
            assert control.training == setting.training
            assert control.classifier().switched_off.keys() == method(entry.method).switched_off.keys()


def test_networks_may_all_train_as_gmmd_does() -> None:
    """No method wins by its recipe: each network has a setting with GMMD's."""
    gmmd = entries(["gmmd"])[0].settings[0].training
    recipe = {name: gmmd[name] for name in ("learning_rate", "weight_decay")}
    for entry in entries():
        if method(entry.method).learns_by_epochs and entry.method != "fairvgnn":
            assert any(recipe.items() <= setting.training.items() for setting in entry.settings), entry.label


def test_small_graphs_have_twice_as_many_splits() -> None:
    protocol = Protocol.of()
    assert protocol.graphs == list(GRAPHS)
    assert {graph: protocol.splits[graph] for graph in ("german", "nba", "credit", "adult")} == {
        "german": 20,
        "nba": 20,
        "credit": 10,
        "adult": 10,
    }
    assert Protocol.of(["pokec-z", "german"], ["gcn"], splits=3).splits == {"pokec-z": 3, "german": 6}


def test_rounds_have_every_split_once_and_end_balanced() -> None:
    protocol = Protocol.of(["german", "credit"], ["gcn"], splits=3)
    rounds = protocol.rounds()
    assert rounds[0] == [("german", 0), ("german", 1), ("credit", 0)]
    assert sorted(place for each in rounds for place in each) == [
        *(("credit", split) for split in range(3)),
        *(("german", split) for split in range(6)),
    ]
    assert len(protocol.specs()) == 9 * len(protocol.entries[0].settings)


def test_an_unknown_graph_or_method_is_told() -> None:
    with pytest.raises(DataError, match=r"'graphs' must be among .* \(got 'moon'\)"):
        Protocol.of(["moon"])
    with pytest.raises(KeyError, match="'methods' must be one of"):
        Protocol.of(["german"], ["moon"])


def test_another_version_of_a_method_has_other_records(monkeypatch: pytest.MonkeyPatch) -> None:
    specs = {name: RunSpec("german", Configuration(name), split=1) for name in ("gcn", "mmd")}
    before = {name: spec.key for name, spec in specs.items()}
    monkeypatch.setattr(method("mmd"), "version", 2)
    after = {name: RunSpec("german", Configuration(name), split=1).key for name in specs}
    assert after["gcn"] == before["gcn"]
    assert after["mmd"] != before["mmd"]


# Choice


def make(labels: list[str], values: dict[tuple[str, int, int], dict[str, float]], splits: int = 4) -> BenchmarkResults:
    """Return results on German with the given metrics by label, setting and split."""
    protocol = Protocol(["german"], entries(labels), {"german": splits})
    store = RunStore()
    for (label, setting, split), metrics in values.items():
        entry = next(entry for entry in protocol.entries if entry.label == label)
        (spec,) = protocol.specs_of("german", entry.settings[setting], split)
        store.add(record(spec, {**METRICS, **metrics}))
    return BenchmarkResults(protocol, store)


def test_validation_chooses_for_each_split_and_by_each_rule() -> None:
    found = make(
        ["mmd"],
        {
            ("mmd", 0, 0): {"ACC": 90.0, "DP": 6.0, "EO": 1.0},
            ("mmd", 1, 0): {"ACC": 88.0, "DP": 1.0, "EO": 9.0},
            ("mmd", 0, 1): {"ACC": 80.0},
            ("mmd", 1, 1): {"ACC": 82.0},
        },
        splits=2,
    )
    assert found.frame()["setting"].tolist() == [0, 1]
    assert found.frame("DP")["setting"].tolist() == [1, 1]
    assert found.frame("EO")["setting"].tolist() == [0, 1]
    assert found.frame("DP")["DP"].tolist() == [1.0, 5.0]


def test_the_choice_never_looks_at_the_test_nodes() -> None:
    found = make(["mmd"], {("mmd", 0, 0): {"ACC": 90.0}, ("mmd", 1, 0): {"ACC": 80.0}}, splits=1)
    entry = found.protocol.entries[0]
    for stored in found.store:
        stored["test"]["ACC"] = 100 - stored["test"]["ACC"]
    chosen = found.chosen("german", entry, 0)
    assert chosen is not None
    assert chosen.configuration is entry.settings[0]


def test_a_near_constant_setting_is_the_last_choice() -> None:
    found = make(["mmd"], {("mmd", 0, 0): {"ACC": 70.0, "DP": 0.0, "EO": 0.0}, ("mmd", 1, 0): {"DP": 30.0}}, splits=1)
    first = found.store.get(found.protocol.specs()[0])
    assert first is not None
    first["validation"]["near_constant"] = True
    assert found.frame("DP")["setting"].tolist() == [1]


def test_a_failed_setting_does_not_stop_the_others() -> None:
    found = make(["mmd"], {("mmd", 1, 0): {}}, splits=1)
    entry = found.protocol.entries[0]
    (spec,) = found.protocol.specs_of("german", entry.settings[0], 0)
    found.store.add({**record(spec), "error": "it diverged", "validation": {}, "test": {}})
    fresh = BenchmarkResults(found.protocol, found.store)
    assert fresh.frame()["setting"].tolist() == [1]
    assert fresh.failures == {("german", "mmd"): ["it diverged"]}
    made = metric_table(fresh, "german")
    assert made is not None
    assert "Failed: mmd (it diverged)." in made.notes


# Conclusions


def spread(base: float, split: int) -> float:
    return base + (0.3, -0.2, 0.1, -0.2)[split]


@pytest.fixture
def three() -> BenchmarkResults:
    """Results of three rows: fmp is better than mmd in both, gcn is the most accurate and the least fair."""
    levels = {"gcn": (90.0, 9.0), "mmd": (85.0, 5.0), "fmp": (87.0, 2.0)}
    values = {}
    for label, (accuracy, bias) in levels.items():
        for split in range(4):
            moved = {"ACC": spread(accuracy, split), "DP": spread(bias, 3 - split), "EO": spread(bias, split)}
            values[label, 0, split] = moved
    return make(["gcn", "mmd", "fmp"], values)


def test_who_is_dominated(three: BenchmarkResults) -> None:
    kept, beaten = undominated(three, "german", "DP")
    assert kept == {"gcn": True, "fmp": True}
    assert beaten == {"mmd": ["fmp"]}
    made = undominated_table(three, "DP")
    assert made is not None
    assert [row[1].text for row in made.rows] == ["front", "by 1", "front"]


def test_the_summary_has_the_best_first(three: BenchmarkResults) -> None:
    made = summary_table(three)
    assert made is not None
    rows = {row[0].text: dict(zip(made.columns, row, strict=True)) for row in made.rows}
    assert next(iter(rows)) == "fmp"
    assert rows["fmp"]["rank, ΔDP"].value == 1.0
    assert rows["mmd"]["undominated, ΔDP"].text == "0 of 1"
    assert rows["gcn"]["effect on ΔDP"].text == "–"
    assert rows["mmd"]["effect on ΔDP"].text == "lower on 0, higher on 0 of 0"


def test_hypervolumes_rank_the_front_first(three: BenchmarkResults) -> None:
    frame = hypervolume_frames(three)["DP"]
    areas = frame.loc["german"]
    assert areas["fmp"] > areas["mmd"]
    # The box reaches from (85, 9) to (90, 0); fmp has (87 - 85) x (9 - 2) of it, and gcn nothing above the worst bias.
    assert areas["fmp"] == pytest.approx(100 * 2 * 7 / (5 * 9), rel=0.01)
    assert areas["gcn"] == 0


def test_differences_are_paired_and_corrected(three: BenchmarkResults) -> None:
    made = difference_table(three, "german", "gcn")
    assert made is not None
    rows = {row[0].text: dict(zip(made.columns, row, strict=True)) for row in made.rows}
    # The splits move both rows alike, so the differences have no spread.
    assert rows["mmd"]["ACC"].text == "-5.0 ± 0.0"
    assert rows["mmd"]["ACC"].emphasis == "best"
    assert rows["mmd"]["AUC"].emphasis == ""
    assert difference_table(three, "german", "missing") is None


def test_effects_against_the_control(three: BenchmarkResults) -> None:
    assert effect_table(three, "DP") is None  # no control was run
    for entry in three.protocol.entries[1:]:
        for split in range(4):
            (spec,) = three.protocol.specs_of("german", entry.settings[0].control(), split)
            three.store.add(record(spec, {**METRICS, "DP": spread(8.0, 3 - split)}))
    found = BenchmarkResults(three.protocol, three.store)
    assert found.effects("german", found.protocol.entries[1])["DP"].tolist() == pytest.approx([-3.0] * 4)
    made = effect_table(found, "DP")
    assert made is not None
    assert [[entry.text for entry in row] for row in made.rows] == [
        ["mmd", "-3.0 [-3.0, -3.0]", "1 of 1"],
        ["fmp", "-6.0 [-6.0, -6.0]", "1 of 1"],
    ]
    moved = variance_table(found)
    assert moved is not None
    rows = {row[0].text: row[3].value for row in moved.rows}
    assert rows["ΔDP"] == pytest.approx(4.5)  # between 3 and 6


def test_whether_the_graph_helps() -> None:
    values = {("gcn", 0, split): {"ACC": spread(92.0, split)} for split in range(4)}
    values |= {("mlp", 0, split): {"ACC": spread(88.0, split)} for split in range(4)}
    gain = graph_gain(make(["gcn", "mlp"], values), "german")
    assert gain is not None
    assert gain.estimate == pytest.approx(4.0)
    assert gain.low > 0
    assert graph_gain(make(["gcn"], {}), "german") is None
    made = worth_table(make(["gcn", "mlp"], values))
    assert made is not None
    assert made.rows[0][2].text == "yes"


def test_nothing_was_run(tmp_path: Path) -> None:
    nothing = make(["gcn", "gmmd"], {})
    assert nothing.frame().empty
    assert list(benchmark_section(nothing, tmp_path, "figures", "gcn")) == []
    assert [path.name for path in write_benchmark(nothing, tmp_path, "gcn") if path.suffix == ".md"] == [
        "benchmark-budget.md"
    ]


def test_cliques_of_a_ranking() -> None:
    assert _cliques([1.0, 2.0, 2.5, 6.0], 1.2) == [(0, 1), (1, 2)]
    assert _cliques([1.0, 1.1, 1.2], 5.0) == [(0, 2)]
    assert _cliques([1.0, 9.0], 1.0) == []


# A real run


def test_a_short_benchmark_from_runs_to_files(tmp_path: Path) -> None:
    def short(label: str) -> Entry:
        (entry,) = entries([label])
        return Entry(label, tuple(each.but(training={"epochs": 3}) for each in entry.settings[:2]))

    protocol = Protocol(["german"], [entries(["constant"])[0], short("gcn"), short("mmd")], {"german": 2})
    store = RunStore(tmp_path / "records")
    made = run_benchmark(protocol, store)
    controls = len({*store._records}) - len(protocol.specs())
    assert made == len(protocol.specs()) + controls
    assert controls >= 1
    assert run_benchmark(protocol, RunStore(tmp_path / "records")) == 0
    found = BenchmarkResults(protocol, RunStore(tmp_path / "records"))
    frame = found.frame()
    assert frame.groupby("entry")["split"].nunique().to_dict() == {"constant": 2, "gcn": 2, "mmd": 2}
    assert not found.effects("german", protocol.entries[2]).empty
    written = write_benchmark(found, tmp_path / "out", "gcn")
    assert {"benchmark-german.md", "benchmark-fronts.svg", "results.csv"} <= {path.name for path in written}
    assert pd.read_csv(tmp_path / "out" / "results.csv").equals(pd.read_csv(tmp_path / "out" / "results.csv"))
    parts = list(benchmark_section(found, tmp_path, "figures", "gcn"))
    assert "2 splits of german" in parts[0]
    assert any("Minimum detectable difference: with 250 test nodes" in part for part in parts)
    # A record that was cut off is made again, to the same result.
    spec = protocol.specs()[1]
    path = tmp_path / "records" / f"{spec.key}.json"
    whole = json.loads(path.read_text())
    path.write_text(path.read_text()[:-100])
    again = RunStore(tmp_path / "records")
    assert run_benchmark(protocol, again) == 1
    assert json.loads(path.read_text())["test"] == whole["test"]
