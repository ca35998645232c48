"""A project, step by step: what is done and still true is not done again."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from torch_geometric.data import Data

from fairpass import __version__
from fairpass.errors import DataError
from fairpass.files import sha256
from fairpass.projects.config import Config
from fairpass.projects.manifest import Manifest, Record, now
from fairpass.projects.steps import STEPS, Step, cost
from fairpass.projects.workspace import Workspace
from fairpass.runs import Comparison

__all__ = ["STEPS", "Done", "Watcher", "run_project"]


class Watcher:
    """Is told how a run goes; this one does not care."""

    def begin(self, step: Step) -> None:
        """A step begins."""

    def progress(self, fraction: float, words: str) -> None:
        """The step has come so far."""

    def ready(self, data: Data) -> None:
        """The graph is made."""

    def end(self, step: Step, seconds: float) -> None:
        """The step is done."""

    def skip(self, step: Step) -> None:
        """The step was done before, and nothing has changed since."""


@dataclass(frozen=True)
class Done:
    """What a run came to."""

    workspace: Workspace
    manifest: Manifest
    made: tuple[str, ...]
    """The steps that were done now."""
    skipped: tuple[str, ...]
    """The steps that had been done before."""

    @property
    def is_evaluated(self) -> bool:
        """Whether there are results to show."""
        return "evaluate" in (*self.made, *self.skipped)

    def comparison(self) -> Comparison:
        """Return how the chosen, the plain and the constant classifiers do on the test nodes."""
        return Comparison.load(self.workspace.path("evaluation.json"))

    def cost(self) -> str:
        """Return in sentences what the chosen model gains in fairness over the plain ones, and what it pays."""
        return cost(self.workspace)


def run_project(config: Config, *, step: str | None = None, watcher: Watcher | None = None) -> Done:
    """Do all steps of a project that are not done yet, or one step again.

    A step is done if it was finished with the same inputs (its part of the configuration, the tables, and what
    the steps before it have made) and its files are still there. After an interruption the same call goes on.

    Args:
        config: the project.
        step: do this step, whether it is done or not, and no other; those before it must be done.
        watcher: is told how it goes.
    """
    if step is not None and step not in STEPS:
        raise DataError(f"'step' must be one of {', '.join(STEPS)} (got {step!r})")
    watcher = watcher or Watcher()
    space = Workspace(config, watcher.progress, watcher.ready)
    manifest = Manifest.open(space.directory, config.to_dict())
    wanted = list(STEPS) if step is None else [step]
    for name in _before(step) if step is not None else ():
        if not manifest.is_done(name, _inputs(STEPS[name], space, manifest)):
            raise DataError(
                f"step {step!r} needs {name!r}, which is not done for what {config.file} says now: "
                f"run all steps first (`fairpass run {config.file}`)"
            )
    made, skipped = [], []
    for name in wanted:
        inputs = _inputs(STEPS[name], space, manifest)
        if step is None and manifest.is_done(name, inputs):
            watcher.skip(STEPS[name])
            skipped.append(name)
        else:
            watcher.begin(STEPS[name])
            watcher.end(STEPS[name], _do(STEPS[name], inputs, space, manifest))
            made.append(name)
    return Done(space, manifest, tuple(made), tuple(skipped))


def _do(step: Step, inputs: str, space: Workspace, manifest: Manifest) -> float:
    """Do a step, and leave in the manifest what became of it, whatever happens."""
    started, start = now(), time.perf_counter()
    before = manifest.steps.get(step.name)
    space.resuming = before is not None and before.status != "done" and before.inputs == inputs
    manifest.note(step.name, Record("running", inputs, started))
    try:
        files: Sequence[str] = step.run(space)
        outputs = {name: sha256(space.path(name)) for name in files}
    except KeyboardInterrupt:
        manifest.note(step.name, Record("interrupted", inputs, started, time.perf_counter() - start))
        raise
    except Exception as error:
        words = str(error) or type(error).__name__
        manifest.note(step.name, Record("failed", inputs, started, time.perf_counter() - start, error=words))
        raise
    seconds = time.perf_counter() - start
    manifest.note(step.name, Record("done", inputs, started, seconds, outputs))
    return seconds


def _inputs(step: Step, space: Workspace, manifest: Manifest) -> str:
    """Return a hash of all that a step's result depends on."""
    asked = space.config.to_dict()
    parts = {
        "step": step.name,
        "version": __version__,
        "sections": {section: asked[section] for section in step.sections},
        "tables": space.table_hashes() if not step.needs else None,
        "needs": [[name, _outcome(name, manifest)] for name in step.needs],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _outcome(name: str, manifest: Manifest) -> list[object] | None:
    record = manifest.steps.get(name)
    return None if record is None else [record.inputs, sorted(record.outputs.items())]


def _before(step: str) -> list[str]:
    """Return the steps that a step builds on, directly or not, in their order."""
    needed = set(STEPS[step].needs)
    for name in reversed(list(STEPS)):
        if name in needed:
            needed.update(STEPS[name].needs)
    return [name for name in STEPS if name in needed]
