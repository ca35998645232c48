"""Files that are not part of the package: found in the data directory, or downloaded into it."""

import hashlib
import http.client
import logging
import os
import time
import urllib.error
import urllib.request
from pathlib import Path

import platformdirs
from rich.console import Console
from rich.progress import wrap_file

from fairpass.datasets.spec import SourceFile
from fairpass.errors import DataError, DownloadError
from fairpass.files import write_bytes

logger = logging.getLogger(__name__)

ATTEMPTS = 4
_FIRST_PAUSE_SECONDS = 1.0
_TIMEOUT_SECONDS = 30
_CHUNK_BYTES = 2**16


def data_directory(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """Return `data_dir`, else the directory `FAIRPASS_DATA` names, else `data` in the user's cache."""
    chosen = data_dir or os.environ.get("FAIRPASS_DATA")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("fairpass")) / "data"


def mismatch(content: bytes, file: SourceFile) -> str | None:
    """Say how `content` differs from the published file; None if it is the published file."""
    found = hashlib.sha256(content).hexdigest()
    return None if found == file.sha256 else f"expected SHA-256 {file.sha256}, got {found}"


def obtain(file: SourceFile, title: str, directory: Path) -> bytes:
    """Return the content of a file of the benchmark `title` in `directory`, downloading it first if it is not there."""
    path = directory / file.path
    if path.exists():
        content = path.read_bytes()
        if difference := mismatch(content, file):
            raise DataError(
                f"'{path}' is not the published {title} file ({difference}); remove it, and it will be downloaded again"
            )
        return content
    content = _download(file, title)
    try:
        write_bytes(path, content)
    except OSError as error:
        raise DownloadError(
            f"'{path}' cannot be written ({error}); set FAIRPASS_DATA to a directory that can be, "
            f"or that has {file.path}"
        ) from error
    return content


def _download(file: SourceFile, title: str) -> bytes:
    """Download the published file, in at most `ATTEMPTS` attempts."""
    if file.url is None:
        raise DownloadError(f"{file.path} of {title} is part of the package and has no address to download from")
    failure: Exception | None = None
    for attempt in range(ATTEMPTS):
        if failure is not None:
            pause = _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1)
            logger.warning("Downloading %s failed (%s); again in %g s", file.url, failure, pause)
            time.sleep(pause)
        try:
            return _download_once(file, file.url)
        # Any of these may be temporary: an overloaded server, a proxy's error page in place of the file.
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection
            failure = error
        except (OSError, http.client.HTTPException) as error:
            failure = error
    raise DownloadError(
        f"{file.url} could not be downloaded in {ATTEMPTS} attempts ({failure}); "
        f"alternatively, set FAIRPASS_DATA to a directory that has {file.path}"
    ) from failure


def _download_once(file: SourceFile, url: str) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "fairpass"})
    console = Console(stderr=True)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
        announced: int | None = response.length
        with wrap_file(
            response,
            total=announced or 0,
            description=f"Downloading {file.path}",
            console=console,
            disable=not console.is_terminal,
        ) as stream:
            content = b"".join(iter(lambda: stream.read(_CHUNK_BYTES), b""))
    if announced is not None and len(content) < announced:
        raise DownloadError(f"the connection broke off after {len(content)} of {announced} bytes")
    if difference := mismatch(content, file):
        raise DownloadError(f"what arrived is not the published file: {difference}")
    return content
