import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from fairpass.errors import ModelFileError
from fairpass.training.tensors import raw_bytes, read_tensors, write_tensors

KIND = "test"


def example() -> dict[str, Tensor]:
    shared = torch.arange(6.0).reshape(2, 3)
    return {
        "shared": shared,
        "same": shared,
        "transposed": shared.T,
        "scalar": torch.tensor(2.5, dtype=torch.float64),
        "empty": torch.zeros(0, 3),
        "flags": torch.tensor([True, False]),
        "whole": torch.tensor([-1, 2**40]),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "half": torch.tensor([1.5], dtype=torch.bfloat16),
        "parameter": torch.nn.Parameter(torch.ones(1)),
        "extreme": torch.tensor([torch.nan, torch.inf, -0.0, 1e-45]),
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_tensors(tmp_path / "file", KIND, {"x": torch.tensor([1.0, 2.0])}, {"lambda": 0.25})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    header = {"number": 0.1, "none": None, "nested": {"list": [1, 2.5, "three"]}, "ü": "ß"}
    path = write_tensors(tmp_path / "new" / "file", KIND, example(), header)
    read, found = read_tensors(path, KIND)
    assert found == header
    assert read.keys() == example().keys()
    for name, value in example().items():
        assert (read[name].dtype, read[name].shape) == (value.dtype, value.shape)
        assert raw_bytes(read[name]) == raw_bytes(value)


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    paths = [write_tensors(tmp_path / str(i), KIND, example(), {"a": 1, "b": 2}) for i in range(5)]
    assert len({path.read_bytes() for path in paths}) == 1


def test_what_was_read_outlives_the_file(file: Path) -> None:
    read, _ = read_tensors(file, KIND)
    write_tensors(file, KIND, {"x": torch.zeros(2)}, {})
    assert read["x"].tolist() == [1.0, 2.0]


def test_header_takes_numpy_numbers_and_paths_and_nothing_stranger(tmp_path: Path) -> None:
    header: dict[str, Any] = {"n": np.int64(3), "x": np.float32(0.5), "path": Path("a") / "b"}
    path = write_tensors(tmp_path / "file", KIND, {}, header)
    assert read_tensors(path, KIND)[1] == {"n": 3, "x": 0.5, "path": "a/b"}
    before = path.read_bytes()
    with pytest.raises(TypeError, match="must be a number, a string"):
        write_tensors(path, KIND, {}, {"set": {1}})
    assert path.read_bytes() == before


def test_no_flipped_byte_goes_unnoticed(file: Path) -> None:
    content = file.read_bytes()
    for i in range(len(content)):
        for flip in (0x01, 0x80, 0xFF):
            file.write_bytes(content[:i] + bytes([content[i] ^ flip]) + content[i + 1 :])
            with pytest.raises(ModelFileError, match=r"file' (must be a test file|is damaged)"):
                read_tensors(file, KIND)


def test_no_truncation_goes_unnoticed(file: Path) -> None:
    content = file.read_bytes()
    for length in range(len(content)):
        file.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"must be a test file \(damaged or not one"):
            read_tensors(file, KIND)
    file.write_bytes(content + b"\0")
    with pytest.raises(ModelFileError, match="damaged or not one"):
        read_tensors(file, KIND)


def test_foreign_files(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"must be a model file \(got test"):
        read_tensors(file, "model")
    foreign = tmp_path / "foreign"
    save_file({"x": torch.ones(1)}, foreign)
    with pytest.raises(ModelFileError, match=r"must be a test file \(got a foreign file"):
        read_tensors(foreign, KIND)
    save_file({"x": torch.ones(1)}, foreign, metadata={"fairpass": json.dumps({"kind": KIND})})
    with pytest.raises(ModelFileError, match="is damaged"):
        read_tensors(foreign, KIND)
    foreign.write_text("{}\n")
    with pytest.raises(ModelFileError, match="damaged or not one"):
        read_tensors(foreign, KIND)
    for nothing in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ModelFileError, match="there is no such file"):
            read_tensors(nothing, KIND)


def test_other_readers_find_the_header(file: Path) -> None:
    with safe_open(str(file), framework="pt") as opened:
        entry = json.loads(opened.metadata()["fairpass"])
    assert entry["kind"] == KIND
    assert entry["header"] == {"lambda": 0.25}


def test_failed_writing_leaves_the_old_file_and_nothing_else(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def fail(path: Path, content: bytes) -> None:
        with path.open("wb") as half:
            half.write(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match=r"No space left on device: .*file'"):
        write_tensors(file, KIND, {"x": torch.zeros(2)}, {})
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_raw_bytes_tell_types_and_shapes_apart() -> None:
    zero = torch.zeros(4)
    others = (zero.reshape(2, 2), zero.int(), zero.double()[:2], torch.zeros(16, dtype=torch.bool))
    assert len({raw_bytes(value) for value in (zero, *others)}) == 5
    assert raw_bytes(zero) == raw_bytes(torch.zeros(8)[::2])


def test_a_path_need_not_be_utf_8(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"n\xff\xe9") / "file"
    write_tensors(path, KIND, {"x": torch.tensor([1.0, 2.0])}, {"lambda": 0.25})
    read, header = read_tensors(path, KIND)
    assert (read["x"].tolist(), header) == ([1.0, 2.0], {"lambda": 0.25})
