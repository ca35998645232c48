"""Moved to `fairpass.runs`."""

from fairpass.runs import Rate, Wording, rates_in_words

__all__ = ["Rate", "Wording", "rates_in_words"]
