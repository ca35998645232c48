"""Run the property tests with random examples, round after round, until the minutes are over or one fails.

    python -m scripts.fuzz --minutes 10 --seed 7

Round `i` has the seed `seed + i`, which is printed first and repeats it. The last round is cut off by the time.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time

GRACE = 60.0  # seconds that pytest has to report after its time


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="budget; a round that is running is stopped")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the first round")
    parser.add_argument("tests", nargs="*", help="arguments of pytest, such as a file; by default all tests")
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # rounds are ended by it, also in the background
    end = time.monotonic() + 60 * asked.minutes
    environment = {**os.environ, "FAIRPASS_HYPOTHESIS": "explore", "OMP_NUM_THREADS": "1"}
    done, seed, cut_off = 0, asked.seed, ""
    while not cut_off and (left := end - time.monotonic()) > 0:
        print(f"make fuzz SEED={seed}", flush=True)
        # A round ends at its first failure, so one that is cut off has not failed.
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "hypothesis", f"--hypothesis-seed={seed}"]
        code = within(left, [*command, *(asked.tests or ["-n", "2"])], environment)
        if code:
            print(f"failed; again with: make fuzz SEED={seed}", flush=True)
            return code
        if code is None:
            cut_off = f"; the round of seed {seed} was cut off, and what it did not reach was not tried"
        else:
            done, seed = done + 1, seed + 1
    print(f"no failure in {asked.minutes:g} minutes: {done} whole rounds, from seed {asked.seed}{cut_off}")
    return 0


def within(seconds: float, command: list[str], environment: dict[str, str]) -> int | None:
    """Run pytest and return its exit code; None if the time was over before it failed."""
    is_over, has_failed = threading.Event(), False

    def interrupt() -> None:
        is_over.set()
        running.send_signal(signal.SIGINT)  # it still reports what it has found

    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as running:
        timers = threading.Timer(seconds, interrupt), threading.Timer(seconds + GRACE, running.kill)
        for each in timers:
            each.start()
        try:
            for line in running.stdout or ():
                print(line, end="", flush=True)
                has_failed |= line.startswith(("FAILED", "ERROR"))
        finally:
            for each in timers:
                each.cancel()
    code = running.returncode
    if not is_over.is_set():
        return code
    return (code or 1) if has_failed else None


if __name__ == "__main__":
    sys.exit(main())
