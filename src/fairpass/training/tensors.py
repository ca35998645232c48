"""Tensors and a JSON header in one safetensors file, written atomically and verified when read."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from fairpass.errors import ModelFileError
from fairpass.files import write_bytes

_ENTRY = "fairpass"  # one entry holds all metadata: safetensors writes several in no fixed order


def write_tensors(path: str | os.PathLike[str], kind: str, tensors: dict[str, Tensor], header: dict[str, Any]) -> Path:
    """Write tensors with a header; `kind` says what the file is, a digest guards all of it."""
    stored = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    entry = to_json({"kind": kind, "digest": _digest(stored, to_json(header)), "header": header})
    # As bytes, because safetensors' own errors of writing are not those of the system.
    return write_bytes(path, save(stored, metadata={_ENTRY: entry}))


def read_tensors(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_tensors` wrote, or raise `ModelFileError` with what is wrong with the file."""
    if not Path(path).is_file():
        raise ModelFileError(f"'{path}' must be a {kind} file (there is no such file)")
    try:
        # As bytes, because safetensors opens no path that is not UTF-8, and tensors must not live in a file that may be
        # replaced or removed while they are used.
        content = Path(path).read_bytes()
        tensors = load(content)  # raises if the header is not whole
        entry = json.loads(_metadata(content).get(_ENTRY, '{"kind": "a foreign file"}'))
        if not isinstance(entry, dict):
            raise ValueError("its metadata are no JSON object")
        found, header, digest = (entry.get(name) for name in ("kind", "header", "digest"))
        is_whole = digest == _digest(tensors, to_json(header))
    except (SafetensorError, OSError, ValueError, TypeError, RuntimeError) as error:
        raise ModelFileError(f"'{path}' must be a {kind} file (damaged or not one: {error})") from None
    if found != kind:
        raise ModelFileError(f"'{path}' must be a {kind} file (got {found})")
    if not is_whole or not isinstance(header, dict):
        raise ModelFileError(f"'{path}' is damaged: its content is not what was written")
    return tensors, header


def _metadata(content: bytes) -> dict[str, str]:
    """Return the metadata of a safetensors file, which its own reader of bytes leaves out."""
    start = 8
    end = start + int.from_bytes(content[:start], "little")
    found: dict[str, str] = json.loads(content[start:end]).get("__metadata__") or {}
    return found


def to_json(value: Any) -> str:
    """Return JSON text; numpy's numbers become plain ones, paths become strings."""
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{value!r} must be a number, a string, or a list or mapping of these, to be stored")


def raw_bytes(value: Tensor) -> bytes:
    """Return a tensor's type, shape and content as bytes; two tensors with equal bytes are equal."""
    value = value.detach().cpu().contiguous()
    # As plain bytes, because numpy does not know all of torch's types.
    return f"{value.dtype}{tuple(value.shape)}".encode() + value.flatten().view(torch.uint8).numpy().tobytes()


def _digest(tensors: dict[str, Tensor], header: str) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(raw_bytes(tensors[name]))
    return digest.hexdigest()
