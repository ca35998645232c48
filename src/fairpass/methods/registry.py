"""Every method by name: the library's own, and those that other packages add through an entry point.

A package adds a method by subclassing `NodeClassifier` and naming it in its `pyproject.toml`::

    [project.entry-points."fairpass.methods"]
    mine = "my_package.my_module:MyClassifier"
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from fairpass.errors import FairpassError, suggestion
from fairpass.methods.base import FilePath, NodeClassifier

OWN: dict[str, str] = {
    "constant": "fairpass.methods.closed_form:Constant",
    "gcn": "fairpass.methods.plain:GCN",
    "gin": "fairpass.methods.plain:GIN",
    "gat": "fairpass.methods.plain:GAT",
    "sage": "fairpass.methods.plain:SAGE",
    "mlp": "fairpass.methods.plain:MLPClassifier",
    "logistic": "fairpass.methods.closed_form:Logistic",
    "thresholds": "fairpass.methods.plain:Thresholds",
    "exponentiated-gradient": "fairpass.methods.closed_form:ExponentiatedGradient",
    "mmd": "fairpass.methods.mmd:MMD",
    "fmp": "fairpass.methods.fmp:FMP",
    "nifty": "fairpass.methods.nifty:NIFTY",
    "fairgnn": "fairpass.methods.fairgnn:FairGNN",
    "fairinv": "fairpass.methods.fairinv:FairINV",
    "fairvgnn": "fairpass.methods.fairvgnn:FairVGNN",
    "fairdrop": "fairpass.methods.fairdrop:FairDrop",
    "fairgb": "fairpass.methods.fairgb:FairGB",
    "fairsin": "fairpass.methods.fairsin:FairSIN",
    "bemap": "fairpass.methods.bemap:BeMap",
    "edits": "fairpass.methods.edits:EDITS",
    "gmmd": "fairpass.methods.gmmd:GMMD",
    "gmmd-s": "fairpass.methods.gmmd:GMMDS",
}


class UnknownMethodError(FairpassError, KeyError):
    """No method has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


def names() -> list[str]:
    """Return the names of all methods, the library's own first."""
    added = {point.name for point in entry_points(group="fairpass.methods")}
    return [*OWN, *sorted(added - OWN.keys())]


def method(name: str, option: str = "method") -> type[NodeClassifier]:
    """Return a method's class by name; `option` is what an error calls the name."""
    if name in OWN:
        module, attribute = OWN[name].split(":")
        found: type[NodeClassifier] = getattr(import_module(module), attribute)
        return found
    for point in entry_points(group="fairpass.methods", name=name):
        loaded = point.load()
        if not (isinstance(loaded, type) and issubclass(loaded, NodeClassifier)):
            raise UnknownMethodError(f"method {name!r} must be a subclass of NodeClassifier (got {loaded!r})")
        return loaded
    got = f"got {name!r}{suggestion(name, names())}"
    raise UnknownMethodError(f"'{option}' must be one of {', '.join(names())} ({got})")


def load_model(path: FilePath, *, device: str | None = None, **code: Callable[..., Any]) -> NodeClassifier:
    """Read a stored classifier of any method; see :meth:`NodeClassifier.load`."""
    return NodeClassifier.load(path, device=device, **code)


def hyperparameter_table(*methods: type[NodeClassifier]) -> str:
    """Return a Markdown table of declared hyper-parameters, by default those of the library's methods."""
    rows = ["| method | parameter | default | values | search | meaning |", "|---|---|---|---|---|---|"]
    for found in methods or [method(name) for name in OWN]:
        for name, each in found.declared.items():
            if name != "training":
                search = f"`{each.search}`" if each.search else ""
                cells = (f"`{found.name}`", f"`{name}`", f"`{each.default!r}`", each.values, search, each.help)
                rows.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(rows)
