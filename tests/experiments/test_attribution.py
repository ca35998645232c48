"""The effect of fairness: a method against its own control."""

import math
from typing import Any

import numpy as np
import pytest
from tests.experiments.made_up import record

from fairpass.datasets import synthetic
from fairpass.errors import DataError
from fairpass.experiments.attribution import Attribution
from fairpass.runs import Configuration, RunStore

MMD = Configuration("mmd", {"weight": 10.0}, {"epochs": 3})


def filled(effect: float, *, noise: float = 0.1, **options: Any) -> Attribution:
    """Return an attribution whose method has a DP of `effect` more than its control, and encoders that differ by 2."""
    made = Attribution.of("german", MMD, RunStore(), **{"splits": 6, "seeds": 2, **options})
    generator = np.random.default_rng(0)
    for arm in ("method", "control"):
        for encoder in made.encoders:
            for split in range(made.splits):
                for seed in range(made.seeds):
                    level = 10 + split + 2 * made.encoders.index(encoder) + (effect if arm == "method" else 0)
                    value = level + noise * generator.normal()
                    made.store.add(record(made.spec(arm, split, seed, encoder), {"DP": value, "ACC": 80.0}))
    return made


def test_an_effect_that_is_there_is_resolved() -> None:
    found = filled(-3.0)
    effect = found.effect("DP")
    assert effect.estimate == pytest.approx(-3.0, abs=0.2)
    assert effect.is_resolved
    assert found.effect("ACC").estimate == 0.0
    assert not found.effect("ACC").is_resolved
    assert "changes" in found.sentence
    assert "ΔDP by -3.0" in found.sentence


def test_an_effect_within_the_noise_is_not() -> None:
    assert not filled(0.05, noise=2.0).effect("DP").is_resolved


def test_the_split_does_not_hide_an_effect_but_is_told() -> None:
    """Splits move the numbers more than the effect does; pairs see it all the same."""
    found = filled(-0.5, noise=0.05)
    components = found.components("DP")
    assert components["split"] == pytest.approx(math.sqrt(3.5), abs=0.1)  # of 0, 1, ... 5
    assert components["encoder"] == pytest.approx(math.sqrt(2), abs=0.1)
    assert components["seed"] == pytest.approx(0.05, abs=0.03)
    assert components["split"] > abs(found.effect("DP").estimate)
    assert found.effect("DP").is_resolved


def test_method_and_control_have_the_same_splits_seeds_and_settings() -> None:
    made = Attribution.of("german", MMD, splits=2, seeds=1, encoders=["sage"])
    specs = made.specs()
    assert made.encoders == ("gcn", "sage")
    assert len(specs) == 2 * 2 * 2
    pairs = list(zip(specs[::2], specs[1::2], strict=True))
    for method, control in pairs:
        assert (method.split, method.seed, method.dataset) == (control.split, control.seed, control.dataset)
        assert method.identity["training"] == control.identity["training"]
        one, other = method.identity["parameters"], control.identity["parameters"]
        assert {name for name in one if one[name] != other[name]} == {"weight"}


@pytest.mark.parametrize(
    ("configuration", "options", "message"),
    [
        (Configuration("gcn"), {}, "must have fairness to switch off"),
        (MMD, {"splits": 1}, r"'splits' must be at least 2, for an interval \(got 1\)"),
        (MMD, {"seeds": 0}, r"'seeds' must be at least 1 \(got 0\)"),
        (MMD, {"encoders": ["moon"]}, r"'encoders' must be one of .* \(got 'moon'\)"),
        (Configuration("fmp"), {"encoders": ["gcn"]}, "'encoders' must not be given: fmp has no choice of network"),
    ],
)
def test_what_cannot_be_done_is_told_before_any_work(
    configuration: Configuration, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Attribution.of("german", configuration, **options)


def test_nothing_succeeded() -> None:
    made = Attribution.of("german", MMD, splits=2, seeds=1, encoders=[])
    for spec in made.specs():
        made.store.add({**record(spec), "error": "it broke", "test": {}, "validation": {}})
    assert made.failures == {"it broke": 4}
    with pytest.raises(DataError, match=r"no split has both a run of mmd and one of its control \(it broke\)"):
        made.effect("DP")


def test_own_graphs_are_given_for_each_split() -> None:
    made = Attribution.of("people", MMD, splits=2, seeds=1, encoders=[], is_own=True)
    assert made.run(graphs=lambda split: synthetic(150, seed=split)) == 4
    assert made.run(graphs=lambda split: synthetic(150, seed=split)) == 0
    document = made.to_dict()
    assert document["graph"] == "people"
    assert document["control"]["parameters"]["weight"] == 0.0
    assert document["metrics"]["DP"]["components"]["encoder"] is None
    effects, others = made.tables()
    assert [row[0].text for row in effects.rows] == ["AUC", "F1", "ACC", "ΔDP", "ΔEO"]
    assert others.columns == ("metric", "|effect|", "encoder", "split", "seed", "interaction")
