"""Moved to `fairpass.runs`."""

from fairpass.runs import Row, summarise

__all__ = ["Row", "summarise"]
