"""The files of benchmark graphs: part of the package, found in the data directory, or downloaded into it."""

import gzip
import hashlib
import os
import sys
import tempfile
import zlib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import platformdirs

from fairpass.errors import DataError, DownloadError
from fairpass.files import PathLike, write_bytes

if TYPE_CHECKING:
    from fairpass.datasets.registry import SourceFile

ATTEMPTS, _TIMEOUT_SECONDS = 4, 30


def user_directory(name: str, variable: str, given: PathLike | None = None) -> Path:
    """Return the directory that is given, else that in an environment variable, else `name` in the user's cache."""
    chosen = given or os.environ.get(variable)
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("fairpass")) / name


def data_directory(data_dir: PathLike | None = None) -> Path:
    return user_directory("data", "FAIRPASS_DATA", data_dir)


def mismatch(content: bytes, file: "SourceFile") -> str | None:
    """Return how `content` differs from the published file; None if it is the published file."""
    found = hashlib.sha256(content).hexdigest()
    return None if found == file.sha256 else f"expected SHA-256 {file.sha256}, got {found}"


def packaged(file: "SourceFile") -> resources.abc.Traversable:
    """Return the path of a compressed file in the package."""
    return resources.files("fairpass.datasets") / "embedded" / f"{file.path}.gz"


def read_file(file: "SourceFile", title: str, directory: Path, folder: Path | None = None) -> bytes:
    """Return the content of a file of the benchmark `title`, which is checked.

    A file with a public address is in the data `directory`, or downloaded to it. Any other one is in `folder`, or part
    of the package.
    """
    if file.url is None and folder is None:
        try:
            content = gzip.decompress(packaged(file).read_bytes())
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"'{packaged(file)}' cannot be read ({error}); reinstall fairpass") from error
        if difference := mismatch(content, file):
            raise DataError(f"'{packaged(file)}' is damaged ({difference}); reinstall fairpass")
        return content
    path = (directory if file.url else folder or directory) / file.path
    if file.url is not None and not path.exists():
        return _download(file, path)
    content = path.read_bytes()
    if difference := mismatch(content, file):
        again = "; remove it, and it will be downloaded again" if file.url else ""
        raise DataError(f"'{path}' is not the published {title} file ({difference}){again}")
    return content


class _Limited:
    """A file that refuses to become longer than `size`, so that a wrong answer does not fill the disk."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.stream = stream
        self.size = size

    def write(self, chunk: bytes) -> None:
        if self.stream.tell() + len(chunk) > self.size:
            raise ValueError(f"the answer is longer than the published file, which has {self.size:,} bytes")
        self.stream.write(chunk)

    def flush(self) -> None:
        self.stream.flush()


def _download(file: "SourceFile", path: Path) -> bytes:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    http = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(), timeout=_TIMEOUT_SECONDS, headers={"User-Agent": "fairpass"}
    )

    def downloader(url: str, target: PathLike, fetcher: pooch.Pooch) -> None:
        with Path(target).open("wb") as stream:
            http(url, stream if file.size is None else _Limited(stream, file.size), fetcher)

    advice = f"set FAIRPASS_DATA to a directory that has {file.path}"
    with tempfile.TemporaryDirectory(prefix="fairpass-") as temporary:
        registry, urls = {path.name: f"sha256:{file.sha256}"}, {path.name: file.url}
        fetcher = pooch.Pooch(temporary, base_url="", registry=registry, urls=urls, retry_if_failed=ATTEMPTS - 1)
        try:
            content = Path(fetcher.fetch(path.name, downloader=downloader)).read_bytes()
        except (OSError, ValueError) as error:
            raise DownloadError(
                f"{file.url} could not be downloaded in {ATTEMPTS} attempts ({error}); alternatively, {advice}"
            ) from error
    try:
        write_bytes(path, content)
    except OSError as error:
        raise DownloadError(f"'{path}' cannot be written ({error}); {advice}, or that can be written") from error
    return content
