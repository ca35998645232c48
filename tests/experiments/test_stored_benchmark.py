"""The records of the benchmark in the repository are those of the protocol as it is now."""

from pathlib import Path

import pytest

from fairpass.experiments.benchmark import BenchmarkResults, Protocol
from fairpass.runs import RunStore

RECORDS = Path(__file__).parents[2] / "results" / "benchmark"


@pytest.fixture(scope="module")
def found() -> BenchmarkResults:
    return BenchmarkResults(Protocol.of(splits=1), RunStore(RECORDS))


def test_every_run_of_the_first_round_has_a_record(found: BenchmarkResults) -> None:
    """It fails if a setting, a default or a version changes: the records of that method must be made again then."""
    missing = found.store.missing(found.protocol.specs())
    assert not {(spec.dataset, spec.configuration.method) for spec in missing}


def test_every_fair_method_has_its_control(found: BenchmarkResults) -> None:
    for entry in found.protocol.entries:
        if entry.is_fair:
            assert not found.effects("german", entry).empty, entry.label


def test_failures_are_refusals(found: BenchmarkResults) -> None:
    """Only NIFTY cannot be fitted to some of the graphs, and says why."""
    assert {label for _, label in found.failures} == {"nifty"}
    assert all("must be the column" in why for reasons in found.failures.values() for why in reasons)
