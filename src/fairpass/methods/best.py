"""Several candidates fitted on one graph, of which the one that validation prefers is kept."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torch_geometric.data import Data

from fairpass.errors import ModelFileError
from fairpass.training import Callback, DivergedError

if TYPE_CHECKING:
    from fairpass.methods.base import NodeClassifier

# Standard error of the difference between two classifiers' scores, times the root of the number of validation nodes:
# two classifiers that disagree about one node in twenty.
_ERROR = 0.7


@dataclass(frozen=True)
class Candidate:
    """A fitted classifier, and what validation says of it: `AUC + F1 + ACC - DP - EO`, averaged as in training."""

    classifier: "NodeClassifier"
    score: float


def fit_candidates(
    classifier: "NodeClassifier", data: Data, callbacks: Sequence[Callback], checkpoint: str | os.PathLike[str] | None
) -> list[Candidate]:
    """Fit a classifier's candidates, round by round, and return all of them: the preferred one, then the best first.

    Preferred is the first candidate, in the order in which they are tried, that is not worse than the best by more than
    about one standard error. Among candidates that validation cannot tell apart, the simplest is the safest.

    Args:
        classifier: whose `candidates` says what to try.
        data: the graph.
        callbacks: called with the records of every candidate's epochs.
        checkpoint: where an interrupted fit is kept. A finished candidate is kept beside it until all are done.
    """
    margin = _ERROR / int((data.val_mask & (data.y >= 0)).sum()) ** 0.5
    tried: list[Candidate] = []
    kept: list[Path] = []
    problem: DivergedError | None = None
    number = 0
    while todo := classifier.candidates(_preferred(tried, margin).classifier if tried else None, number):
        number += 1
        for candidate in todo:
            path = None if checkpoint is None else Path(f"{os.fspath(checkpoint)}-{len(kept)}")
            kept.append(path or Path())
            try:
                fitted = _fit(candidate, data, callbacks, path)
            except DivergedError as error:
                problem = error
                continue
            tried.append(Candidate(fitted, fitted.history_.smoothed(fitted.epoch_, fitted.training.window)))
    if not tried and problem is not None:
        raise problem
    if checkpoint is not None:
        for path in kept:
            _finished(path).unlink(missing_ok=True)
    first = _preferred(tried, margin)
    return [first, *sorted((each for each in tried if each is not first), key=lambda each: -each.score)]


def _preferred(tried: Sequence[Candidate], margin: float) -> Candidate:
    best = max(each.score for each in tried)
    return next(each for each in tried if each.score >= best - margin)


def _fit(
    candidate: "NodeClassifier", data: Data, callbacks: Sequence[Callback], checkpoint: Path | None
) -> "NodeClassifier":
    if checkpoint is None:
        return candidate.fit(data, callbacks=callbacks)
    finished = _finished(checkpoint)
    if finished.exists():
        stored = type(candidate).load(finished)
        if not stored.is_fit_of(candidate, data):
            raise ModelFileError(
                f"'{finished}' must be a candidate of this very fit (it belongs to another setting, graph or version); "
                "remove it to start again"
            )
        return stored
    candidate.fit(data, callbacks=callbacks, checkpoint=checkpoint)
    candidate.save(finished)
    return candidate


def _finished(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.safetensors")
