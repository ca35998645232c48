"""What is shipped, what it depends on, and that it needs no network."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from scripts.licences import needed, page, runtime_requirements
from scripts.lock import lock_text

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fairpass"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", tmp_path_factory.mktemp("wheel"))


def built(kind: str, directory: Path) -> Path:
    """Build with the declared backend, in a process of its own because it works in the current directory."""
    pytest.importorskip("hatchling")
    script = f"from hatchling.build import build_{kind}; print(build_{kind}({str(directory)!r}))"
    made = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert made.returncode == 0, made.stderr
    return directory / made.stdout.split()[-1]


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if not re.match(r"fairpass-[^/]*\.dist-info/", name)}
    files = {
        f"fairpass/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped == files
    assert {"fairpass/py.typed", "fairpass/cli/help.toml", "fairpass/datasets/embedded/german.csv.gz"} <= shipped
    assert wheel.stat().st_size < 2_000_000


def test_the_sdist_has_no_results(tmp_path: Path) -> None:
    made = built("sdist", tmp_path)
    with tarfile.open(made) as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if name.count("/") > 1}
    assert folders == {"src", "tests", "scripts", "examples"}
    assert made.stat().st_size < 6_000_000


_NO_NETWORK = """
import socket
def refused(*arguments, **options):
    raise AssertionError(f"the network was used: {arguments}")
class Local(socket.socket):
    def connect(self, address):
        return super().connect(address) if self.family == socket.AF_UNIX else refused(address)
    connect_ex = connect
socket.socket = Local
socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refused
"""
COMMANDS = (
    "train german --method gcn --epochs 2 --out model",
    "predict model/model.safetensors german --out predictions.csv",
    "compare german --methods logistic --seeds 1 --out R.json --report report",
    "datasets",
)
_SCRIPT = """
import sys
from fairpass.cli.app import app
for line in sys.argv[1:]:
    app(line.split(), standalone_mode=False)
"""


@pytest.mark.slow
def test_the_wheel_runs_on_its_own_and_only_fetch_uses_the_network(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "site" / "sitecustomize.py").write_text(_NO_NETWORK)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site"), "OMP_NUM_THREADS": "1"}
    environment["FAIRPASS_DATA"] = str(tmp_path / "empty")
    # A download after all the others: the fence that they did not touch stops it.
    command = [sys.executable, "-c", _SCRIPT, *COMMANDS, "datasets fetch bail"]
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert (tmp_path / "report" / "report.html").exists(), result.stderr
    assert "network was used" in result.stderr
    assert "raw.githubusercontent.com" in result.stderr
    assert "Bail" in result.stdout, "the list of data sets is the last command before it"


def test_every_dependency_is_on_the_page_of_licences() -> None:
    listed = set(re.findall(r"^\| ([a-z0-9-]+) \|", (ROOT / "docs" / "licences.md").read_text(), flags=re.MULTILINE))
    assert set(needed(runtime_requirements())) - listed == set(), "`make lock` writes it again"
    assert all(len(line.split("|")) == 5 for line in page().splitlines() if line.startswith("|"))


def test_every_direct_dependency_is_locked_with_its_hash_and_tested_version() -> None:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    locked = {}
    for line in lines:
        found = re.fullmatch(r"([^=]+)==(\S+) --hash=sha256:[0-9a-f]{64}", line)
        assert found is not None, line
        locked[canonicalize_name(found[1])] = found[2].partition("+")[0]
    direct = {canonicalize_name(re.split(r"[^\w.-]", each)[0]) for each in runtime_requirements()}
    assert direct - {*locked} == set(), "`make lock` writes it again"
    constraints = (ROOT / "constraints.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in constraints if "==" in line and not line.startswith("#"))
    versions = {canonicalize_name(name): version for name, version in tested.items()}
    assert {name: version for name, version in locked.items() if versions.get(name) != version} == {}


def test_the_lock_has_a_line_for_each_file() -> None:
    file = {"archive_info": {"hashes": {"sha256": "ab" * 32}}}
    report = {
        "install": [
            {"metadata": {"name": "fairpass", "version": "1"}, "download_info": {"dir_info": {}}},
            {"metadata": {"name": "NumPy", "version": "2.4"}, "download_info": file},
        ]
    }
    assert lock_text(report).splitlines()[-1] == f"numpy==2.4 --hash=sha256:{'ab' * 32}"
