"""Run a project step by step; steps that are done and still valid are skipped."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from torch_geometric.data import Data

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import sha256
from fairpass.projects.config import Config
from fairpass.projects.steps import STEPS, Step
from fairpass.projects.workspace import Record, Workspace


@dataclass(frozen=True)
class Event:
    """Progress of a step."""

    step: Step
    status: Literal["started", "running", "done", "skipped"]
    fraction: float = 0.0
    words: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Done:
    """The outcome of a run: the steps that it made, and those that were done before."""

    workspace: Workspace
    made: tuple[str, ...]
    skipped: tuple[str, ...]


def run_project(
    config: Config,
    *,
    step: str | None = None,
    on_event: Callable[[Event], object] | None = None,
    on_data: Callable[[Data], object] | None = None,
) -> Done:
    """Make all steps of a project that are not done, or one step again.

    A step is done if it was finished with the same inputs (its sections of the settings file, the tables, the
    results of earlier steps) and its files are unchanged. After an interruption the same call continues.

    Args:
        config: The project.
        step: Make only this step, even if it is done; the steps before it must be done.
        on_event: Called with the progress.
        on_data: Called with the graph as soon as it is loaded.
    """
    if step is not None and step not in STEPS:
        raise DataError(f"'step' must be one of {', '.join(STEPS)} (got {step!r})")
    made: list[str] = []
    skipped: list[str] = []
    tell = on_event or (lambda event: None)
    space = Workspace(config, lambda fraction, words: tell(Event(current, "running", fraction, words)), on_data)
    for name in _before(step) if step is not None else ():
        if not space.is_done(name, _inputs(STEPS[name], space)):
            raise DataError(
                f"step {step!r} needs {name!r}, which is not done for the current {config.file}: "
                f"run all steps first (`fairpass run {config.file}`)"
            )
    for current in STEPS.values() if step is None else (STEPS[step],):
        inputs = _inputs(current, space)
        if step is None and space.is_done(current.name, inputs):
            tell(Event(current, "skipped"))
            skipped.append(current.name)
        else:
            tell(Event(current, "started"))
            tell(Event(current, "done", 1.0, seconds=_make(current, inputs, space)))
            made.append(current.name)
    return Done(space, tuple(made), tuple(skipped))


def _make(step: Step, inputs: str, space: Workspace) -> float:
    """Make a step, keep its outcome in the manifest, and return the seconds it took."""
    started, start = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), time.perf_counter()
    before = space.steps.get(step.name)
    space.resuming = before is not None and before.status != "done" and before.inputs == inputs
    space.note(step.name, Record("running", inputs, started))
    try:
        outputs = {name: sha256(space.path(name)) for name in step.run(space)}
    except BaseException as error:
        failed = isinstance(error, Exception)
        words = (str(error) or type(error).__name__) if failed else None
        status: Literal["failed", "interrupted"] = "failed" if failed else "interrupted"
        space.note(step.name, Record(status, inputs, started, time.perf_counter() - start, error=words))
        raise
    seconds = time.perf_counter() - start
    space.note(step.name, Record("done", inputs, started, seconds, outputs))
    return seconds


def _inputs(step: Step, space: Workspace) -> str:
    """Return a hash of everything that the result of a step depends on."""
    asked = space.config.to_dict()
    before = {name: space.steps.get(name) for name in step.needs}
    parts = {
        "step": step.name,
        "version": __version__,
        "sections": {section: asked[section] for section in step.sections},
        "tables": space.table_hashes() if not step.needs else None,
        "needs": {name: done and [done.inputs, sorted(done.outputs.items())] for name, done in before.items()},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _before(step: str) -> list[str]:
    """Return the steps that a step needs, directly or not, in their order."""
    return [name for need in STEPS[step].needs for name in (*_before(need), need)]
