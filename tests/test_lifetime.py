"""A process ends with the one that started it; tests/cli/test_cli_signals.py kills the parents of real workers."""

import os
import subprocess
import sys

from fairpass.lifetime import STARTED_BY

CHILD = """
import sys
from fairpass.lifetime import end_with_parent
end_with_parent()
sys.stdin.read()
"""


def test_a_parent_that_had_ended_before_is_noticed() -> None:
    environment = {**os.environ, STARTED_BY: "0"}
    with subprocess.Popen([sys.executable, "-c", CHILD], env=environment, stdin=subprocess.PIPE) as orphan:
        assert orphan.wait(600) == 1
