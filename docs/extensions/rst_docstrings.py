"""Let the API reference, which is Markdown, show docstrings that follow PyTorch Geometric's reStructuredText.

Only what our docstrings use of it: displayed and inline formulas, references, links and examples.
"""

import inspect
import re
from importlib import import_module
from textwrap import dedent
from typing import Any

from griffe import Class, Docstring, Extension, Function, Object, Parameter, ParameterKind, Parameters

from fairpass.methods.registry import hyperparameter_table
from fairpass.parameters import Declared

# A directive and what is indented below it, or follows on its line.
_DISPLAYED = re.compile(r"^( *)\.\. math::(.*(?:\n(?:\1 +.*| *$))*)", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")
_REFERENCE = re.compile(r":(?:class|func|meth|mod):`~?([^`]+)`")
_LINK = re.compile(r"`\"?([^`<\"]+?)\"?\s*<(https?://[^>]+)>`_")
_EXAMPLE = re.compile(r"^( *)Example:$", re.MULTILINE)


# Modules whose classes declare parameters; their constructors and the "Args" of their docstrings are made at run time.
_DECLARING = ("fairpass.methods.", "fairpass.nn.propagation", "fairpass.training.settings")


class RstDocstrings(Extension):
    """Rewrite every docstring after it has been read (an extension of Griffe)."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite one object's docstring."""
        if isinstance(obj, Class) and obj.path.startswith(_DECLARING):
            _show_parameters(obj)
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the table of hyper-parameters (a hook of MkDocs)."""
    place = "<!-- hyper-parameters -->"
    return markdown.replace(place, as_markdown(hyperparameter_table())) if place in markdown else markdown


def _show_parameters(obj: Class) -> None:
    found = getattr(import_module(obj.module.path), obj.name, None)
    if not (isinstance(found, type) and issubclass(found, Declared)):
        return
    obj.docstring = Docstring(inspect.cleandoc(found.__doc__ or ""), parent=obj)
    kind = ParameterKind.keyword_only
    parameters = (
        Parameter(name, kind=kind, annotation=inspect.formatannotation(each.hint), default=repr(each.default))
        for name, each in found.declared.items()
    )
    obj.set_member("__init__", Function("__init__", parameters=Parameters(*parameters)))


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
