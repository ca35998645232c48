"""Turn the formulas of a page into MathML while the site is built.

Browsers show MathML by themselves, so a reader needs neither a script nor a network.
"""

import re
from html import unescape
from typing import Any

from latex2mathml.converter import convert

_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
# What the converter needs to be told: bars come in pairs. Sizes are not needed, MathML's brackets grow.
_REWRITES = {
    r"\\[bB]igg?[lr]?(?![a-zA-Z])": "",
    r"\\l([vV])ert": r"\\left\\l\1ert ",
    r"\\r([vV])ert": r"\\right\\r\1ert ",
    r"\\\|(.+?)\\\|": r"\\left\\|\1\\right\\|",
}


def on_page_content(html: str, **_: Any) -> str:
    """Replace every formula that `pymdownx.arithmatex` has found (a hook of MkDocs)."""
    return _FORMULA.sub(_as_mathml, html)


def _as_mathml(match: re.Match[str]) -> str:
    tag, latex = match.groups()
    formula = unescape(latex).strip()
    for pattern, replacement in _REWRITES.items():
        formula = re.sub(pattern, replacement, formula)
    mathml: str = convert(formula, display="block" if tag == "div" else "inline")
    if "\\" in mathml:
        raise ValueError(f"the formula {formula!r} holds a command that latex2mathml does not know")
    return mathml
