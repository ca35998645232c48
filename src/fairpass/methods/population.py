"""Moved to `fairpass.runs`."""

from fairpass.runs.population import BATCH_ROWS, batches, fit_all

__all__ = ["BATCH_ROWS", "batches", "fit_all"]
