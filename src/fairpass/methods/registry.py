"""Every method by name: the library's own, and those that other packages add through an entry point.

A package adds a method by subclassing `NodeClassifier` and naming it in its `pyproject.toml`::

    [project.entry-points."fairpass.methods"]
    mine = "my_package.my_module:MyClassifier"
"""

from importlib import import_module
from importlib.metadata import entry_points

from fairpass.errors import FairpassError, ModelFileError
from fairpass.methods.base import _KIND, NodeClassifier
from fairpass.training.tensors import read_tensors

_OWN = {
    "constant": "fairpass.methods.constant:Constant",
    "gcn": "fairpass.methods.gnn:GCN",
    "gin": "fairpass.methods.gnn:GIN",
    "gat": "fairpass.methods.gnn:GAT",
    "gmmd": "fairpass.methods.gmmd:GMMD",
    "gmmd-s": "fairpass.methods.gmmd:GMMDS",
}


class UnknownMethodError(FairpassError, KeyError):
    """No method has this name."""

    def __str__(self) -> str:
        return str(self.args[0])


def names() -> list[str]:
    """Return the names of all methods, the library's own first."""
    return [*_OWN, *sorted(point.name for point in entry_points(group="fairpass.methods") if point.name not in _OWN)]


def method(name: str) -> type[NodeClassifier]:
    """Return a method's class by name."""
    if name in _OWN:
        module, attribute = _OWN[name].split(":")
        found: type[NodeClassifier] = getattr(import_module(module), attribute)
        return found
    for point in entry_points(group="fairpass.methods"):
        if point.name == name:
            loaded = point.load()
            if not (isinstance(loaded, type) and issubclass(loaded, NodeClassifier)):
                raise UnknownMethodError(f"method {name!r} must be a subclass of NodeClassifier (got {loaded!r})")
            return loaded
    raise UnknownMethodError(f"'method' must be one of {', '.join(names())} (got {name!r})")


def load_model(path: str) -> NodeClassifier:
    """Read a stored classifier of whichever method."""
    _, header = read_tensors(path, _KIND)
    try:
        found = method(header["method"])
    except UnknownMethodError as error:
        raise ModelFileError(f"'{path}' holds a model of a method that is not installed: {error}") from None
    return found.load(path)
