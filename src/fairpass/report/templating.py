"""The Jinja environment of the page's templates."""

import json
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from fairpass.metrics import catalog
from fairpass.report.sentences import number, percent, plural


@cache
def environment() -> Environment:
    """Return the environment: everything is escaped, and an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("fairpass.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "number": number, "plain": _plain}
    made.globals |= {"plural": plural, "catalog": catalog}
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "sort_keys": False, "ensure_ascii": False}
    return made


def _plain(value: Any) -> str:
    """Return a setting or a piece of provenance as text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
