"""Built graphs, stored on disk under a key made from the content of the table."""

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpass.datasets.download import user_directory
from fairpass.files import write_bytes

logger = logging.getLogger(__name__)

_STORED = np.dtype("<i4")
_DIGEST_SIZE = hashlib.sha256().digest_size


def cached_edges(
    features: ArrayLike,
    recipe: str,
    build: Callable[[ArrayLike], NDArray[np.int64]],
    *,
    cache_dir: str | os.PathLike[str] | None = None,
) -> NDArray[np.int64]:
    """Return `build(features)`, undirected edges of shape [E, 2], from disk if they were built before.

    A damaged or foreign cache file is rebuilt; a cache that cannot be written costs only a warning. Processes may share
    a cache: a file is complete or absent, and the same key means the same content.

    Args:
        features: The rows to connect, shape [N, d].
        recipe: The method, its version and its parameters: all that the edges depend on apart from the features.
        build: Makes the edges.
        cache_dir: Where the graphs are stored; by default the directory in `FAIRPASS_CACHE`, else `graphs` in the
            user's cache directory.
    """
    rows = np.ascontiguousarray(features, dtype="<f8")
    key = hashlib.sha256(f"{recipe}, shape {rows.shape}\n".encode() + rows.tobytes()).digest()
    path = user_directory("graphs", "FAIRPASS_CACHE", cache_dir) / f"{key.hex()}.graph"
    edges = _read(path, key)
    if edges is None:
        edges = build(features)
        _write(path, key, edges)
    return edges


def _checksum(key: bytes, content: bytes) -> bytes:
    # The key makes the intact file of another graph fail as well.
    return hashlib.sha256(key + content).digest()


def _read(path: Path, key: bytes) -> NDArray[np.int64] | None:
    try:
        stored = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("The cached graph %s cannot be read and is built again: %s", path, error)
        return None
    checksum, content = stored[:_DIGEST_SIZE], stored[_DIGEST_SIZE:]
    if checksum != _checksum(key, content):
        logger.warning("The cached graph %s is damaged and is built again", path)
        return None
    return np.frombuffer(content, dtype=_STORED).reshape(-1, 2).astype(np.int64)


def _write(path: Path, key: bytes, edges: NDArray[np.int64]) -> None:
    content = edges.astype(_STORED).tobytes()
    try:
        write_bytes(path, _checksum(key, content) + content)
    except OSError as error:
        logger.warning("The graph could not be cached in %s: %s", path.parent, error)
