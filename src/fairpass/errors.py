"""What can go wrong through no fault of the library; the command line prints these without a traceback."""


class FairpassError(Exception):
    """Base of every error that a user can cause and fix."""


class DataError(FairpassError, ValueError):
    """The data (a table, a graph, a split) is not what it has to be."""


class DownloadError(FairpassError, OSError):
    """A data file could not be fetched, or what arrived is not the published file."""


class ModelFileError(FairpassError, ValueError):
    """A stored model is damaged, truncated, or not one of ours."""


class NotFittedError(FairpassError, RuntimeError):
    """A classifier was asked to predict before `fit`."""


class NarrowKernelWarning(UserWarning):
    """A kernel in many dimensions is so narrow that sliced sums are far from those of the Gaussian."""


class QuadraticCostWarning(UserWarning):
    """A sum is about to visit all pairs of very many nodes, which nobody asked for by name."""
