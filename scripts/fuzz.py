"""Run the property tests with random examples, round after round, until the minutes are over or one fails.

    python -m scripts.fuzz --minutes 10 --seed 7

Round `i` has the seed `seed + i`, which is printed first and repeats it.
"""

import argparse
import os
import subprocess
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="budget; a round that is running is stopped")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the first round")
    parser.add_argument("tests", nargs="*", help="arguments of pytest, such as a file; by default all tests")
    asked = parser.parse_args()
    end = time.monotonic() + 60 * asked.minutes
    environment = {**os.environ, "FAIRPASS_HYPOTHESIS": "explore", "OMP_NUM_THREADS": "1"}
    done, seed = 0, asked.seed
    while (left := end - time.monotonic()) > 0:
        print(f"make fuzz SEED={seed}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", f"--hypothesis-seed={seed}"]
        try:
            command += asked.tests or ["-n", "2"]
            code = subprocess.run(command, env=environment, timeout=left, check=False).returncode
        except subprocess.TimeoutExpired:
            break
        if code:
            print(f"failed; again with: make fuzz SEED={seed}", flush=True)
            return code
        done, seed = done + 1, seed + 1
    print(f"no failure in {asked.minutes:g} minutes: {done} whole rounds, from seed {asked.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
