"""Write `requirements.lock`: the exact files of all dependencies with their SHA-256, for an install that checks them.

    python -m scripts.lock [--report FILE]

pip resolves the dependencies of this project with the versions of `constraints.txt` and reports which files it would
install; nothing is installed. `--report` takes a report that pip made before (`pip install --dry-run --report`).
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"

_HEAD = """\
# The files that fairpass is tested with, and their hashes; written by `make lock`. To install exactly these:
#   pip install --require-hashes -r requirements.lock && pip install --no-deps fairpass
# They are for {system}. On another one, or with another build of torch than the CPU's, the hashes
# differ: `make lock` writes those of your machine.
"""


def resolved() -> dict[str, Any]:
    """Return pip's report on what it would install into an empty environment."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.json"
        asked = ["--dry-run", "--ignore-installed", "--quiet", "--report", str(report)]
        pip = [sys.executable, "-m", "pip", "install", *asked, "-c", str(ROOT / "constraints.txt"), str(ROOT)]
        subprocess.run(pip, check=True)
        found: dict[str, Any] = json.loads(report.read_text())
    return found


def lock_text(report: dict[str, Any]) -> str:
    """Return the lines of the file, one for each dependency."""
    lines = []
    for each in report["install"]:
        about, file = each["metadata"], each["download_info"].get("archive_info")
        if file is not None:  # this project is a directory, and has no file
            lines.append(f"{about['name'].lower()}=={about['version']} --hash=sha256:{file['hashes']['sha256']}")
    system = f"Python {platform.python_version_tuple()[0]}.{platform.python_version_tuple()[1]}"
    return (
        _HEAD.format(system=f"{system} on {platform.system()} {platform.machine()}") + "\n".join(sorted(lines)) + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--report", type=Path, help="pip's report, if there is one")
    given = parser.parse_args().report
    LOCK.write_text(lock_text(resolved() if given is None else json.loads(given.read_text())))
    print(f"{LOCK.name} is written")


if __name__ == "__main__":
    main()
