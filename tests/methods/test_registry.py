from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import pytest

from fairpass.errors import FairpassError
from fairpass.methods import GMMD, Constant, NodeClassifier, method, names, registry


class Mine(Constant):
    name: ClassVar[str] = "mine"


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two methods of another package, one of which is none, and one that takes the name of ours."""
    points = [
        EntryPoint(name, f"{__name__}:{target}", "fairpass.methods")
        for name, target in (("mine", "Mine"), ("broken", "names"), ("gcn", "Mine"))
    ]

    def entry_points(group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == "fairpass.methods"
        return [point for point in points if name in (None, point.name)]

    monkeypatch.setattr(registry, "entry_points", entry_points)


def test_every_name_leads_to_a_method_of_that_name() -> None:
    assert len(set(names())) == len(names())
    for name in names():
        found = method(name)
        assert issubclass(found, NodeClassifier)
        assert found.name == name
        assert found.summary
        assert found.__doc__


def test_unknown_name() -> None:
    for kind in (FairpassError, KeyError):
        with pytest.raises(kind, match=r"'method' must be one of constant, gcn, .*got 'gmd'"):
            method("gmd")


@pytest.mark.usefixtures("added")
def test_other_packages_add_methods() -> None:
    assert names()[0] == "constant"
    assert names()[-2:] == ["broken", "mine"]
    assert method("mine") is Mine
    assert method("gmmd") is GMMD
    assert method("gcn") is not Mine
    with pytest.raises(FairpassError, match="method 'broken' must be a subclass of NodeClassifier"):
        method("broken")


def test_methods_are_public_names() -> None:
    import fairpass

    public: dict[str, Any] = {name: getattr(fairpass, name) for name in ("GCN", "GMMD", "GMMDS", "load_model")}
    assert public["GMMD"] is GMMD
