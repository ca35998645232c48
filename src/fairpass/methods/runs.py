"""Moved to `fairpass.runs`."""

from fairpass.runs import RunRecord as Run

__all__ = ["Run"]
