"""Let the API reference, which is Markdown, show docstrings that follow PyTorch Geometric's reStructuredText.

Only what our docstrings use of it: displayed and inline formulas, references, links and examples.
"""

import re
from textwrap import dedent
from typing import Any

from griffe import Extension, Object

# A directive and what is indented below it, or follows on its line.
_DISPLAYED = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*| *$))*)", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")
_REFERENCE = re.compile(r":(?:class|func|meth|mod):`~?([^`]+)`")
_LINK = re.compile(r"`\"?([^`<\"]+?)\"?\s*<(https?://[^>]+)>`_")
_EXAMPLE = re.compile(r"^( *)Example:$", re.MULTILINE)


class RstDocstrings(Extension):
    """Rewrite every docstring after it has been read (an extension of Griffe)."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Return a docstring with its reStructuredText replaced by Markdown."""
    text = _DISPLAYED.sub(_displayed, text)
    text = _INLINE.sub(r"$\1$", text)
    text = _REFERENCE.sub(lambda match: f"`{match[1].rpartition('.')[2]}`", text)
    text = _LINK.sub(r"[\1](\2)", text)
    return _EXAMPLE.sub(r"\1Examples:", text)


def _displayed(match: re.Match[str]) -> str:
    indent, formula = match.groups()
    lines = dedent(formula.strip("\n")).split("\n")
    return "\n".join(f"{indent}{line}" for line in ["", "$$", *lines, "$$", ""])
