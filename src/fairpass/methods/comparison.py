"""Moved to `fairpass.runs`."""

from fairpass.runs import Comparison

__all__ = ["Comparison"]
