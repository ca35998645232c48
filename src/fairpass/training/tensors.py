"""Tensors and their JSON description in one safetensors file: written whole or not at all, checked when read."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from fairpass.errors import ModelFileError
from fairpass.files import atomic_path


def write_tensors(path: str | os.PathLike[str], kind: str, tensors: dict[str, Tensor], header: dict[str, Any]) -> Path:
    """Write tensors with a header; `kind` says what the file is, a digest guards its content."""
    stored = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    metadata = {"kind": kind, "header": json.dumps(header), "digest": _digest(stored)}
    with atomic_path(path) as temporary:
        save_file(stored, temporary, metadata=metadata)
    return Path(path)


def read_tensors(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_tensors` wrote, or raise `ModelFileError` with what is wrong with the file."""
    if not Path(path).is_file():
        raise ModelFileError(f"'{path}' must be a {kind} file (there is no such file)")
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 # not a mapping
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelFileError(f"'{path}' must be a {kind} file (damaged or not one: {error})") from None
    if metadata.get("kind") != kind:
        raise ModelFileError(f"'{path}' must be a {kind} file (got {metadata.get('kind', 'a foreign file')!r})")
    if metadata.get("digest") != _digest(tensors):
        raise ModelFileError(f"'{path}' is damaged: its content is not what was written")
    header: dict[str, Any] = json.loads(metadata["header"])
    return tensors, header


def _digest(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()
