"""Files that are part of the package, compressed."""

import gzip
import zlib
from importlib import resources
from importlib.resources.abc import Traversable

from fairpass.datasets.download import mismatch
from fairpass.datasets.spec import SourceFile
from fairpass.errors import DataError


def packaged(file: SourceFile) -> Traversable:
    """Return where the compressed file is in the package."""
    return resources.files("fairpass.datasets") / "embedded" / f"{file.path}.gz"


def read_packaged(file: SourceFile) -> bytes:
    """Return the content of an embedded file, known to be the published one."""
    compressed = packaged(file)
    try:
        content = gzip.decompress(compressed.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"'{compressed}' cannot be read ({error}); reinstall fairpass") from error
    if difference := mismatch(content, file):
        raise DataError(f"'{compressed}' is damaged ({difference}); reinstall fairpass")
    return content
