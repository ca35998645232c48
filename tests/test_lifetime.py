"""A process ends with the one that started it; tests/cli/test_cli_signals.py kills the parents of real workers."""

import subprocess
import sys

CHILD = """
import sys
from fairpass.lifetime import end_with_parent
end_with_parent(int(sys.argv[1]))
sys.stdin.read()
"""


def test_a_parent_that_had_ended_before_is_noticed() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILD, "0"], stdin=subprocess.PIPE) as orphan:
        assert orphan.wait(600) == 1
