"""The choice among several candidates, on validation."""

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torch_geometric.data import Data

from fairpass.errors import ModelFileError
from fairpass.training import Callback, DivergedError

if TYPE_CHECKING:
    from fairpass.methods.base import NodeClassifier

# Standard error of the difference between two classifiers' scores, times the root of the number of validation nodes:
# two classifiers that disagree about one node in twenty.
_ERROR = 0.7


class Candidate(NamedTuple):
    """A fitted classifier, and its selection criterion on validation."""

    classifier: "NodeClassifier"
    score: float


def fit_candidates(
    classifier: "NodeClassifier", data: Data, callbacks: Sequence[Callback], checkpoint: str | os.PathLike[str] | None
) -> tuple[list[Candidate], list[Path]]:
    """Fit the candidates of a classifier, round by round; return the preferred one, then the others, best first.

    The preferred one is the first, as tried, within about one standard error of the best: among candidates that
    validation cannot tell apart, the simplest is the safest. Finished ones are kept next to `checkpoint`; their files
    are returned, too, to be removed once the result is safe.
    """
    margin = _ERROR / int((data.val_mask & (data.y >= 0)).sum()) ** 0.5
    tried: list[Candidate] = []
    paths: list[Path | None] = []
    problem: DivergedError | None = None
    for number in count():
        todo = classifier.candidates(_preferred(tried, margin).classifier if tried else None, number)
        if not todo:
            break
        for candidate in todo:
            paths.append(None if checkpoint is None else Path(f"{os.fspath(checkpoint)}-{len(paths)}"))
            try:
                fitted = _fit(candidate, data, callbacks, paths[-1])
            except DivergedError as error:
                problem = error
            else:
                tried.append(Candidate(fitted, fitted.history_.smoothed(fitted.epoch_, fitted.training.window)))
    if not tried and problem is not None:
        raise problem
    first = _preferred(tried, margin)
    others = sorted((each for each in tried if each is not first), key=lambda each: -each.score)
    return [first, *others], [file for path in paths if path is not None for file in (path, _finished(path))]


def _preferred(tried: Sequence[Candidate], margin: float) -> Candidate:
    best = max(each.score for each in tried)
    return next(each for each in tried if each.score >= best - margin)


def _fit(
    model: "NodeClassifier", data: Data, callbacks: Sequence[Callback], checkpoint: Path | None
) -> "NodeClassifier":
    if checkpoint is None:
        return model.fit(data, callbacks=callbacks)
    finished = _finished(checkpoint)
    if finished.exists():
        stored = type(model).load(finished)
        if not stored.is_fit_of(model, data):
            other = "it belongs to another setting, graph or version; remove it to start again"
            raise ModelFileError(f"'{finished}' must be a candidate of this very fit ({other})")
        return stored
    return model.fit(data, callbacks=callbacks, checkpoint=checkpoint, save_to=finished)


def _finished(checkpoint: Path) -> Path:
    return checkpoint.with_name(f"{checkpoint.name}.safetensors")
