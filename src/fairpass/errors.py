"""What can go wrong through no fault of the library; the command line prints these without a traceback."""

import ast
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError


class FairpassError(Exception):
    """Base of every error that a user can cause and fix."""


class DataError(FairpassError, ValueError):
    """The data (a table, a graph, a split) is not what it has to be."""


class DownloadError(FairpassError, OSError):
    """A data file could not be fetched, or what arrived is not the published file."""


class NotFiniteError(FairpassError, ValueError):
    """Numbers of a computation are NaN or infinite; in a training, it has diverged."""


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
    "int_parsing": "a whole number",
    "int_parsing_size": "a whole number with fewer digits",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "date_type": "a date",
    "dict_type": "a table with keys",
    "greater_than_equal": "at least {ge}",
    "greater_than": "greater than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "literal_error": "one of {expected}",
    "string_too_short": "a text that is not empty",
    "too_short": "a list that is not empty",
}

_SHOWN = 40  # characters of a value that is longer


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
    expected = " or ".join(_EXPECTED.get(each, first["msg"]) for each in kinds).format(**_in_words(limits))
    if kind == "literal_error":
        expected = expected.replace(" or ", ", ")
        close = suggestion(got, re.findall(r"'([^']*)'", expected))
        return f"'{field}' must be {expected} (got {got!r}{close})"
    return f"'{field}' must be {expected} (got {got!r})"


def value_message(error: "ValidationError", name: str) -> str | None:
    """Return the first error of a single value in plain words, None if we have none."""
    first = error.errors(include_url=False)[0]
    kind, limits, got = first["type"], first.get("ctx", {}), first["input"]
    if hasattr(limits.get("error"), "errors"):  # of one of several values
        return value_message(limits["error"], name)
    if isinstance(got, str) and "\0" in got:
        return f"{name} must not contain null characters (got {got!r})"
    if kind not in _EXPECTED:
        return None
    shown = str(got) if len(str(got)) <= _SHOWN else f"{str(got)[:_SHOWN]}..."
    if not kind.startswith(("greater", "less")):  # it is no number
        shown = repr(shown)
    return f"{name} must be {_EXPECTED[kind].format(**_in_words(limits))} (got {shown})"


def _in_words(limits: Mapping[str, Any]) -> dict[str, Any]:
    return {name: in_digits(limit) if isinstance(limit, int | float) else limit for name, limit in limits.items()}


def in_digits(number: float) -> str:
    """Return a limit for a message: 0.8, 1e+12, 10,000."""
    return f"{number:,}" if isinstance(number, int) and abs(number) >= 1000 else f"{number:g}"


def some_of(texts: Iterable[str], separator: str = ", ", most: int = 10) -> str:
    """Return the first few texts for a message, and how many more there are."""
    found = list(texts)
    more = [f"and {len(found) - most} more"] if len(found) > most else []
    return separator.join([*found[:most], *more])


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question with the closest of the known names, or all of them if none is close."""
    names = list(known)
    return suggestion(name, names).removeprefix("; ") or f"it has {', '.join(map(repr, names))}"


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the end of a message, "; did you mean 'gcn'?", or nothing if no known name is close."""
    by_lower = {each.lower(): each for each in known}
    given = str(name).lower()
    close = difflib.get_close_matches(given, by_lower)
    # Of names that are equally close, the one with the same letters in another order was meant: "gcn" for "gnc".
    close.sort(key=lambda each: sorted(each) != sorted(given))
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


# Words before what is the user's own in a message, such as the name of a column, even if it is that of an option.
_BEFORE = (
    *("column", "columns", "called", "mean", "has", "such as", "got", "are", "one of", "or", "label", "group", "kind"),
    *(",", "]", "' of"),
)
_USERS = "".join(f"(?<!{re.escape(word)} )" for word in _BEFORE)
_SETTING = r"(?<![\w.'-])([a-z][a-z_]*)=('[^']*'|\[[^\]]*\]|\{[^}]*\}|\w+(?:\.\w+)?)"
_OPTION = re.compile(rf"{_SETTING}|{_USERS}'([a-z][a-z_]*)'")


def respelled(message: str, name: Callable[[str], str | None], setting: Callable[[str, Any], str | None]) -> str:
    """Return a message of the library with its options as a front end spells them.

    The library writes 'alpha' for an option and alpha=0.5 for a setting. `name` returns another spelling of an option,
    `setting` of an option with its value; None keeps the message's.
    """

    def spelling(found: re.Match[str]) -> str:
        if found[3] is not None:
            return name(found[3]) or found[0]
        try:
            value = ast.literal_eval(found[2])
        except (ValueError, SyntaxError):
            value = found[2]
        return setting(found[1], value) or found[0]

    return _OPTION.sub(spelling, message)
