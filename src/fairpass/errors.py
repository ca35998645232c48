"""What can go wrong through no fault of the library; the command line prints these without a traceback."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError


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
    """A sum is about to visit all pairs of very many nodes, although no backend that does so was chosen."""


# pydantic's name of an error -> what the value must be.
_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table with keys",
    "greater_than_equal": "at least {ge:g}",
    "greater_than": "greater than {gt:g}",
    "less_than_equal": "at most {le:g}",
    "less_than": "less than {lt:g}",
    "literal_error": "one of {expected}",
    "string_too_short": "a text that is not empty",
    "too_short": "a list that is not empty",
}


def validation_message(error: "ValidationError", known: Iterable[str], name: str = "option") -> str:
    """Return the first error of a pydantic model in plain words: `'alpha' must be positive (got -1.0)`."""
    # A misspelt name comes before the name that is missing because of it.
    first, *others = sorted(error.errors(include_url=False), key=lambda each: each["type"] != "extra_forbidden")
    kind, limits = first["type"], first.get("ctx", {})
    if "error" in limits:  # raised by a validator of the model, in its own words
        return str(limits["error"])
    field = str(first["loc"][0])
    if kind == "extra_forbidden":
        return f"there is no {name} {field!r}: {did_you_mean(field, known)}"
    if kind == "missing" and len(first["loc"]) == 1:
        return f"'{field}' is missing"
    # A union has an error for each of its types; the deepest ones are about the type that fits best.
    of_field = [each for each in (first, *others) if each["loc"][0] == field]
    depth = max(len(each["loc"]) for each in of_field)
    closest = [each for each in of_field if len(each["loc"]) == depth]
    kinds, got = dict.fromkeys(each["type"] for each in closest), closest[0]["input"]
    expected = " or ".join(_EXPECTED.get(each, first["msg"]) for each in kinds).format(**limits)
    return f"'{field}' must be {expected.replace(' or ', ', ') if kind == 'literal_error' else expected} (got {got!r})"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(map(repr, names))}"
