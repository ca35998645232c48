"""What no command may do, done on purpose: the harness has to notice."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path


def fails() -> None:
    raise KeyError("no sentence for a user")


def hangs() -> None:
    time.sleep(3600)


def leaves_a_process() -> None:
    subprocess.Popen(["sleep", "3600"])


def leaves_a_process_in_another_session() -> None:
    subprocess.Popen(["sleep", "3600"], start_new_session=True)


def leaves_a_temporary_file() -> None:
    tempfile.mkdtemp(prefix="forgotten-")


def colours_the_terminal() -> None:
    sys.stdout.write("\x1b[31mred")


def loses_everything(folder: Path) -> None:
    for file in folder.rglob("*"):
        file.unlink()
