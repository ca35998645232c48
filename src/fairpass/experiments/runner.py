"""Moved to `fairpass.runs`, except that the measures of the experiments are known here."""

from collections.abc import Callable, Iterable

from fairpass.experiments.measures import MEASURES
from fairpass.runs import TIMING, Progress, RunSpec, RunStore, executor_for, run

__all__ = ["TIMING", "Progress", "run_specs"]


def run_specs(
    specs: Iterable[RunSpec],
    records: RunStore,
    *,
    jobs: int = 1,
    on_progress: Callable[[Progress], None] | None = None,
    data_dir: str | None = None,
) -> int:
    """Make every run that has no record, and return how many were made."""
    executor = executor_for(jobs)
    return run(specs, records, executor=executor, measures=MEASURES, progress=on_progress, data_dir=data_dir)
