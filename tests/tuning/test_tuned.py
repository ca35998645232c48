"""What a search found: kept as JSON, and as a picture."""

import json
from pathlib import Path

import pytest
from tests.tuning.points import point

from fairpass.documents import write_document
from fairpass.errors import DataError
from fairpass.tuning import Tuned, draw_front, hypervolume


def tuned() -> Tuned:
    points = (
        point(0.7, 0.2, hidden=4),
        point(0.6, 0.0, hidden=8),
        point(0.5, 0.3, hidden=16),
        point(0.9, 0.0, near_constant=True, hidden=32),
    )
    tested = Tuned.from_dict(
        {**_plain(points), "points": [{**p.to_dict(), "test": dict(p.validation)} for p in points]}
    )
    return tested


def _plain(points: tuple[object, ...]) -> dict[str, object]:
    return {
        "method": "gcn",
        "points": points,
        "varied": ["hidden"],
        "study": "gcn-1",
        "settings": {"seeds": [0]},
        "graph": "f",
    }


def test_front_and_best() -> None:
    found = tuned()
    assert found.front == [found.points[0], found.points[1]]
    assert found.best == found.points[1]
    assert found.values(found.best) == {"hidden": 8}


def test_storage(tmp_path: Path) -> None:
    found = tuned()
    path = found.save(tmp_path / "tuned.json")
    assert Tuned.load(path) == found
    document = json.loads(path.read_text())
    assert document["best"]["parameters"] == {"hidden": 8}
    assert [each["parameters"]["hidden"] for each in document["front"]] == [4, 8]
    assert document["hypervolume"] == hypervolume(found.points)


@pytest.mark.parametrize("text", ["{", '{"kind": "fairpass comparison"}', '{"kind": "fairpass tuning"}', "[]"])
def test_files_that_are_something_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tuned.json"
    path.write_text(text)
    with pytest.raises(DataError, match="must be a fairpass tuning"):
        Tuned.load(path)


def test_points_have_all_metrics(tmp_path: Path) -> None:
    document = tuned().to_dict()
    del document["points"][1]["validation"]
    write_document(tmp_path / "tuned.json", document)
    with pytest.raises(DataError, match=r"tuned\.json.*the metrics lack AUC"):
        Tuned.load(tmp_path / "tuned.json")


def test_picture(tmp_path: Path) -> None:
    png = draw_front(tuned(), tmp_path / "front.png", title="gcn on a graph")
    assert png.read_bytes().startswith(b"\x89PNG")
    svg = draw_front(tuned(), tmp_path / "front.svg", title="gcn on a graph")
    assert svg.read_text().lstrip().startswith("<?xml")
    again = draw_front(tuned(), tmp_path / "again.svg", title="gcn on a graph")
    assert again.read_bytes() == svg.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.svg", "front.png", "front.svg"]


def test_picture_of_one_constant(tmp_path: Path) -> None:
    only = Tuned(
        method="gcn", points=(point(0.9, 0.0, near_constant=True),), varied=(), study="", settings={}, graph=""
    )
    assert draw_front(only, tmp_path / "front.png").exists()
