"""Many classifiers fitted on one graph."""

from collections.abc import Callable, Sequence

from torch_geometric.data import Data

from fairpass.errors import FairpassError
from fairpass.methods.base import NodeClassifier
from fairpass.training.history import EpochRecord

MemberCallback = Callable[[int, EpochRecord], None]


def fit_all(
    classifiers: Sequence[NodeClassifier], data: Data, *, callback: MemberCallback | None = None
) -> list[FairpassError | None]:
    """Fit every classifier in place; return for each the error that it failed with, or None.

    Args:
        classifiers: of any methods, each with its own hyper-parameters and training settings.
        data: the graph; not modified.
        callback: called with a classifier's index and the record of each of its epochs.
    """
    errors: list[FairpassError | None] = []
    for i, classifier in enumerate(classifiers):
        calls = [] if callback is None else [lambda record, i=i: callback(i, record)]
        try:
            classifier.fit(data, callbacks=calls)
            errors.append(None)
        except FairpassError as error:
            errors.append(error)
    return errors
