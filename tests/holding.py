"""A process of its own that holds locks of a file until its input ends, or it is killed."""

import subprocess
import sys

HOLD = """
import sys
from fairpass.locks import Locks
locks = Locks(sys.argv[1])
print(all([locks.acquire(name) for name in sys.argv[2:]]), flush=True)
sys.stdin.read()
"""


def start(script: str, *arguments: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
