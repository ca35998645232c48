"""Stored JSON: what is written is read, and nothing else."""

import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.torture.mutations import nested

from fairpass import documents
from fairpass.documents import STRICT, Count, Fraction, Stored, read_document, signed, write_document
from fairpass.errors import DataError


@dataclass(frozen=True)
class Part:
    __pydantic_config__ = STRICT

    name: str
    rates: tuple[Fraction, ...]


class Whole(Stored):
    kind: str
    version: str = "0"
    count: Count
    parts: tuple[Part, ...]


DOCUMENT: dict[str, Any] = {"kind": "whole", "count": 3, "parts": [{"name": "ä", "rates": [0.1, None]}]}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = read_document(write_document(tmp_path / "file", DOCUMENT), "whole", Whole)
    assert (found.count, found.parts[0].name, found.parts[0].rates[0]) == (3, "ä", 0.1)
    assert found.parts[0].rates[1] != found.parts[0].rates[1]


def test_the_checksum_depends_on_the_content_alone(tmp_path: Path) -> None:
    path = write_document(tmp_path / "file", DOCUMENT)
    stored = json.loads(path.read_text())
    path.write_text(json.dumps(dict(reversed(stored.items()))))
    assert read_document(path, "whole", Whole).count == 3
    assert signed(stored) == stored


def test_no_changed_character_of_a_value_is_accepted(tmp_path: Path) -> None:
    path = write_document(tmp_path / "file", DOCUMENT)
    content, random = path.read_text(), Random(0)
    for place, old in enumerate(content):
        new = random.choice([each for each in "0123456789abc" if each != old])
        path.write_text(content[:place] + new + content[place + 1 :])
        if old.isspace():
            continue
        with pytest.raises(DataError, match="file' must be a whole file"):
            read_document(path, "whole", Whole)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": "3"}, "'count' is wrong"),
        ({"count": True}, "'count' is wrong"),
        ({"count": -1}, "'count' is wrong"),
        ({"count": 2**63}, "a number is too large"),
        ({"parts": [{"name": "a"}]}, "'parts.0.rates' is missing"),
        ({"parts": [{"name": "a", "rates": ["0.1"]}]}, r"'parts\.0\.rates\.0.*' is wrong"),
        ({"parts": [{"name": "a", "rates": [1.5]}]}, r"'parts\.0\.rates\.0' is wrong: it must be between -1 and 1"),
        ({"parts": nested(500)}, "is wrong|too deep"),
        ({"more": 1}, "'more' is wrong"),
        ({"kind": "other"}, "its kind is 'other'"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write_document(tmp_path / "file", DOCUMENT | changes)
    with pytest.raises(DataError, match=rf"file' must be a whole file \(damaged or not one: .*({message})"):
        read_document(path, "whole", Whole)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\xfa",
        b"null",
        b"[1, 2]",
        b'{"kind": "whole", "count": NaN}',
        b'{"kind": "whole", "count": Infinity}',
        b'{"kind": "whole", "count": 1e999, "parts": []}',
        b'{"kind": "whole", "count": ' + b"9" * 5000 + b"}",
        b'{"kind": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"kind": "whole", "count": 1, "parts": [], "sha256": 7}',
        b'{"kind": "whole", "count": 1, "count": 1, "parts": []}',
        b'\xef\xbb\xbf{"kind": "whole", "count": 1, "parts": []}',
        '{"kind": "whole", "count": 1, "parts": []}'.encode("utf-16"),
    ],
)
def test_what_is_no_json_of_ours_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match=r"file' must be a whole file \(damaged or not one: ."):
        read_document(tmp_path / "file", "whole", Whole)


def test_a_directory_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"must be a whole file \(damaged or not one: .*directory"):
        read_document(tmp_path, "whole", Whole)


def test_a_file_that_does_not_say_its_version_says_that_it_has_a_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "__version__", "0.3.0")
    path = write_document(tmp_path / "file", DOCUMENT)
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({name: value for name, value in stored.items() if name != documents.CHECKSUM}))
    with pytest.raises(DataError, match="its checksum is missing"):
        read_document(path, "whole", Whole)


def test_only_files_of_earlier_versions_may_lack_the_checksum(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(json.dumps(DOCUMENT | {"version": "0.2.0"}))
    assert read_document(path, "whole", Whole).count == 3
    for version in ("0.3.0", "0.10.1", "1.0"):
        path.write_text(json.dumps(DOCUMENT | {"version": version}))
        with pytest.raises(DataError, match="its checksum is missing"):
            read_document(path, "whole", Whole)
