"""Moved to `fairpass.runs`."""

from fairpass.runs import tradeoff

__all__ = ["tradeoff"]
