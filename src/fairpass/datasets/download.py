"""The files of benchmark graphs: part of the package, found in the data directory, or downloaded into it."""

import gzip
import hashlib
import os
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

import platformdirs

from fairpass.errors import DataError, DownloadError
from fairpass.files import PathLike, check_writable, scratch_directory, write_bytes

if TYPE_CHECKING:
    from fairpass.datasets.registry import SourceFile

T = TypeVar("T")

ATTEMPTS, _TIMEOUT_SECONDS = 4, 30
# A file without a known size is stopped here, far above the largest of the published ones.
_LARGEST_FILE, _CHUNK = 1 << 30, 1 << 16
# All attempts together: an overall start, and a second for each so many bytes of the file.
_SECONDS, _SLOWEST = 120.0, 50_000


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

    A file with a public address is in the data `directory`. Any other one is in `folder`, or part of the package.
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
    content = path.read_bytes()
    if difference := mismatch(content, file):
        again = "; remove it, and `fairpass datasets fetch` downloads it again" if file.url else ""
        raise DataError(f"'{path}' is not the published {title} file ({difference}){again}")
    return content


def _receive(url: str, target: PathLike, size: int | None, deadline: float) -> None:
    """Write what a server answers to a file, as long as it is not too long and comes in time.

    pooch's own downloader has neither limit: an answer without an end would fill the disk.
    """
    import requests
    from tqdm import tqdm
    from urllib3.exceptions import HTTPError

    headers = {"User-Agent": "fairpass", "Accept-Encoding": "identity"}
    with requests.get(url, stream=True, timeout=_TIMEOUT_SECONDS, headers=headers) as response:
        response.raise_for_status()
        total = int(response.headers.get("content-length", 0)) or size
        hidden = not sys.stderr.isatty()
        with (
            Path(target).open("wb") as file,
            tqdm(total=total, ncols=79, unit="B", unit_scale=True, disable=hidden) as bar,
        ):
            try:
                # Whatever has arrived: a server may send a byte now and then.
                while chunk := response.raw.read1(_CHUNK):
                    if monotonic() > deadline:
                        raise TimeoutError
                    if file.tell() + len(chunk) > (size or _LARGEST_FILE):
                        known = f"{size:,}" if size else f"at most {_LARGEST_FILE:,}"
                        raise ValueError(f"the answer is longer than the published file, which has {known} bytes")
                    file.write(chunk)
                    bar.update(len(chunk))
            except HTTPError as error:  # after which pooch tries again
                raise requests.ConnectionError(error) from error


def _within(seconds: float, work: Callable[[], T]) -> T:
    """Return what `work` returns, or raise `TimeoutError`.

    In a thread of its own, because a server that sends its headers byte by byte keeps a read waiting for ever.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, daemon=True).start()
    return outcome.result(seconds)


def fetch_file(file: "SourceFile", title: str, directory: Path) -> None:
    """Download a file with a public address to the data directory, or check the one that is there."""
    path = directory / file.path
    if path.exists():
        read_file(file, title, directory)
    else:
        _download(file, path)


def _download(file: "SourceFile", path: Path) -> None:
    import pooch

    pooch.get_logger().setLevel("WARNING")
    allowed = _SECONDS + (file.size or _LARGEST_FILE / 10) / _SLOWEST
    deadline = monotonic() + allowed

    def downloader(url: str, target: PathLike, _: pooch.Pooch) -> None:
        _receive(url, target, file.size, deadline)

    advice = f"set FAIRPASS_DATA to a directory that has {file.path}"
    with _writing(path, advice):
        check_writable(path)
    with scratch_directory() as temporary:
        registry, urls = {path.name: f"sha256:{file.sha256}"}, {path.name: file.url}
        fetcher = pooch.Pooch(temporary, base_url="", registry=registry, urls=urls, retry_if_failed=ATTEMPTS - 1)
        try:
            found = _within(allowed + _TIMEOUT_SECONDS, lambda: fetcher.fetch(path.name, downloader=downloader))
            content = Path(found).read_bytes()
        except TimeoutError:
            slow = f"{file.url} could not be downloaded in {allowed:.0f} seconds"
            raise DownloadError(f"{slow} (the server answers too slowly); alternatively, {advice}") from None
        except (OSError, ValueError) as error:
            raise DownloadError(
                f"{file.url} could not be downloaded in {ATTEMPTS} attempts ({error}); alternatively, {advice}"
            ) from error
    with _writing(path, advice):
        write_bytes(path, content)


@contextmanager
def _writing(path: Path, advice: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DownloadError(f"'{path}' cannot be written ({error}); {advice}, or that can be written") from error
