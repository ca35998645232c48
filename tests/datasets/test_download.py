"""Downloads from a server on this machine that behaves as badly as servers do."""

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fairpass.datasets import download, registry
from fairpass.datasets.registry import EdgeFile, GraphSpec, SourceFile, graph_spec
from fairpass.errors import DataError, DownloadError

TABLE = b"WHITE,RECID\r\n" + b"1,0\r\n0,1\r\n" * 30_000
TAMPERED = TABLE.replace(b"1,0", b"1,1", 1)


@dataclass
class Answer:
    """What the server sends: `body`, having announced `length` bytes (None: no announcement)."""

    body: bytes = TABLE
    status: int = 200
    length: int | None = len(TABLE)
    pause: float | None = None  # before the body is sent again, for ever


TRUNCATED = Answer(body=TABLE[:100_000])
MISSING = Answer(body=b"not here", status=404, length=8)


@dataclass
class Server:
    """Gives one answer after the other, the last one for ever."""

    url: str = ""
    answers: list[Answer] = field(default_factory=lambda: [Answer()])
    requests: int = 0
    is_over: bool = False

    def next_answer(self) -> Answer:
        answer = self.answers[min(self.requests, len(self.answers) - 1)]
        self.requests += 1
        return answer

    @property
    def file(self) -> SourceFile:
        return SourceFile(path="bail.csv", sha256=hashlib.sha256(TABLE).hexdigest(), url=self.url)

    @property
    def spec(self) -> GraphSpec:
        return graph_spec("bail").model_copy(update={"table": self.file})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = state.next_answer()
            self.send_response(answer.status)
            if answer.length is not None:
                self.send_header("Content-Length", str(answer.length))
            self.end_headers()
            self.wfile.write(answer.body)
            while answer.pause is not None and not state.is_over:
                time.sleep(answer.pause)
                try:
                    self.wfile.write(answer.body)
                    self.wfile.flush()
                except OSError:  # nobody listens any more
                    break

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output clean."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_port}/bail.csv"
    monkeypatch.setenv("no_proxy", "*")
    yield state
    state.is_over = True
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses a download would have made."""
    made: list[float] = []
    monkeypatch.setattr("pooch.core.time.sleep", made.append)
    return made


def fetched(file: SourceFile, title: str, directory: Path) -> bytes:
    download.fetch_file(file, title, directory)
    return (directory / file.path).read_bytes()


def test_success(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    directory = tmp_path / "not" / "there" / "yet"
    assert fetched(server.file, "Bail", directory) == TABLE
    assert [path.name for path in directory.iterdir()] == ["bail.csv"]
    assert (directory / "bail.csv").read_bytes() == TABLE
    assert pauses == []


def test_a_progress_bar_where_there_is_somebody_to_see_it(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    download.fetch_file(server.file, "Bail", tmp_path / "unseen")
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    download.fetch_file(server.file, "Bail", tmp_path / "seen")
    out, err = capsys.readouterr()
    assert out == ""
    assert "300k/300k" in err


def test_a_second_time_nothing_is_downloaded(server: Server, tmp_path: Path) -> None:
    download.fetch_file(server.file, "Bail", tmp_path)
    assert fetched(server.file, "Bail", tmp_path) == TABLE
    assert server.requests == 1


def test_a_server_that_does_not_announce_a_length(server: Server, tmp_path: Path) -> None:
    server.answers = [Answer(length=None)]
    assert fetched(server.file, "Bail", tmp_path) == TABLE


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (TRUNCATED, "100000 bytes read, 200013 more expected"),
        (replace(TRUNCATED, length=None), "does not match the known hash: expected"),
        (Answer(body=TAMPERED), "does not match the known hash: expected"),
        (Answer(body=b"", length=0), "does not match the known hash: expected"),
        (MISSING, "404 Client Error: Not Found"),
        (replace(MISSING, status=503), "503 Server Error"),
    ],
    ids=["truncated", "truncated unannounced", "tampered", "empty", "404", "503"],
)
def test_failure_leaves_nothing_behind(server: Server, tmp_path: Path, answer: Answer, reason: str) -> None:
    server.answers = [answer]
    with pytest.raises(DownloadError, match=rf"in 4 attempts \(.*{reason}.*set FAIRPASS_DATA"):
        download.fetch_file(server.file, "Bail", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert server.requests == download.ATTEMPTS


@pytest.mark.parametrize("length", [len(TABLE) + 7, None], ids=["announced", "not announced"])
def test_an_answer_that_is_too_long_is_stopped(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int | None
) -> None:
    file = server.file.model_copy(update={"size": 100_000})
    server.answers = [Answer(body=TABLE + b"1,0\r\n" * 100_000, length=length)]
    with pytest.raises(DownloadError, match=r"the answer is longer than the published file, which has 100,000 bytes"):
        download.fetch_file(file, "Bail", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert server.requests == download.ATTEMPTS


def test_the_expected_size(server: Server, tmp_path: Path) -> None:
    file = server.file.model_copy(update={"size": len(TABLE)})
    assert fetched(file, "Bail", tmp_path) == TABLE


@pytest.mark.parametrize("drip", [b"1,0\r\n" * 1000, b"1"], ids=["endless", "byte by byte"])
def test_an_answer_without_an_end_is_stopped(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drip: bytes
) -> None:
    """The server goes on sending for as long as anybody listens."""
    monkeypatch.setattr(download, "_SECONDS", 0.6)
    monkeypatch.setattr(download, "_SLOWEST", 1e12)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    server.answers = [Answer(body=drip, length=None, pause=0.05)]
    with pytest.raises(DownloadError, match=r"in 1 seconds \(the server answers too slowly\).*FAIRPASS_DATA"):
        download.fetch_file(server.file, "Bail", tmp_path / "data")
    assert not (tmp_path / "data").exists()
    assert [*(tmp_path / "temporary").iterdir()] == []


def test_an_endless_answer_of_a_file_without_a_known_size_is_stopped(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "_LARGEST_FILE", 50_000)
    server.answers = [Answer(body=TABLE, length=None, pause=0.001)]
    with pytest.raises(DownloadError, match=r"longer than the published file, which has at most 50,000 bytes"):
        download.fetch_file(server.file, "Bail", tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_the_size_of_every_published_file_is_known() -> None:
    files = [file for name in registry.names() for file in graph_spec(name).files if file.url is not None]
    assert files
    assert all(file.size for file in files)


def test_nobody_answers(server: Server, tmp_path: Path) -> None:
    file = server.file.model_copy(update={"url": "http://127.0.0.1:9/bail.csv"})
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:9/bail\.csv could not be downloaded"):
        download.fetch_file(file, "Bail", tmp_path)


def test_tries_again_after_longer_and_longer_pauses(server: Server, tmp_path: Path, pauses: list[float]) -> None:
    server.answers = [MISSING, TRUNCATED, Answer(body=TAMPERED), Answer()]
    assert fetched(server.file, "Bail", tmp_path) == TABLE
    assert server.requests == 4
    assert pauses == [1, 2, 3]


@pytest.mark.parametrize("content", [TAMPERED, TABLE[:1000], b""], ids=["tampered", "truncated", "empty"])
def test_a_wrong_file_in_the_data_directory_is_neither_used_nor_replaced(
    server: Server, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "bail.csv").write_bytes(content)
    with pytest.raises(DataError, match=r"bail\.csv' is not the published Bail file \(expected SHA-256 .*remove it"):
        download.fetch_file(server.file, "Bail", tmp_path)
    assert (tmp_path / "bail.csv").read_bytes() == content
    assert server.requests == 0


def test_a_data_directory_that_cannot_be_written(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(DownloadError, match=r"bail\.csv' cannot be written .*set FAIRPASS_DATA"):
        download.fetch_file(server.file, "Bail", tmp_path / "file")
    assert server.requests == 0, "it is checked before the download"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not stop this user")
@pytest.mark.parametrize("below", ["", "not/there/yet"])
def test_a_read_only_data_directory(server: Server, tmp_path: Path, below: str) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DownloadError, match=r"bail\.csv' cannot be written \(.*Permission.*set FAIRPASS_DATA"):
            download.fetch_file(server.file, "Bail", tmp_path / below)
    finally:
        tmp_path.chmod(0o700)
    assert server.requests == 0
    assert list(tmp_path.iterdir()) == []


def test_fetch_by_name(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._specs(), "bail", server.spec)
    assert not registry.is_available("bail", data_dir=tmp_path)
    assert registry.fetch("bail", data_dir=tmp_path) == [tmp_path / "bail.csv"]
    assert registry.is_available("bail", data_dir=tmp_path)
    assert registry.fetch("german", data_dir=tmp_path) == []
    with pytest.raises(DataError, match="'name' must be one of 'adult', 'amherst41', 'bail'"):
        registry.fetch("baill", data_dir=tmp_path)


def test_fetch_of_several_files(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, edges = (server.file.model_copy(update={"path": f"nba/{name}"}) for name in ("nba.csv", "edges.txt"))
    spec = graph_spec("nba").model_copy(update={"table": table, "graph": EdgeFile(file=edges)})
    monkeypatch.setitem(registry._specs(), "nba", spec)
    (tmp_path / "nba").mkdir()
    (tmp_path / "nba/nba.csv").write_bytes(TABLE)
    assert not registry.is_available("nba", data_dir=tmp_path), "one of two files is missing"
    assert registry.fetch("nba", data_dir=tmp_path) == [tmp_path / "nba/nba.csv", tmp_path / "nba/edges.txt"]
    assert server.requests == 1
    assert registry.is_available("nba", data_dir=tmp_path)
    assert registry.fetch("nba", data_dir=tmp_path) == [tmp_path / "nba/nba.csv", tmp_path / "nba/edges.txt"]
    assert server.requests == 1


def test_the_data_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRPASS_DATA", str(tmp_path / "set"))
    assert download.data_directory() == tmp_path / "set"
    assert download.data_directory(tmp_path / "given") == tmp_path / "given"
    monkeypatch.setenv("FAIRPASS_DATA", "~/tables")
    assert download.data_directory() == Path.home() / "tables"
    monkeypatch.delenv("FAIRPASS_DATA")
    assert download.data_directory().parts[-2:] == ("fairpass", "data") or os.name == "nt"
