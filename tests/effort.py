"""How much work something is, in numbers that do not depend on the machine or on what else it does."""

import sys
from collections.abc import Callable
from typing import Any


def calls(action: Callable[[], Any]) -> int:
    """Return how many functions are called: a loop over nodes or edges in Python shows in it."""
    count = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
