"""Run benchmarks by name: `python -m benchmarks [names ...] [--quick] [--out DIR]`."""

import argparse
import os
from importlib import import_module
from pathlib import Path

from rich.console import Console

from benchmarks.result import Result
from benchmarks.timing import ONE_THREAD

NAMES = (
    "kernels",
    "dispatch",
    "classes",
    "fits",
    "epochs",
    "growth",
    "distributed",
    "halo_sizes",
    "scale_plan",
    "population",
    "quality",
    "choices",
    "people",
    "promise",
    "rivals",
    "theorems",
    "tables",
)
RESULTS = Path(__file__).parent / "results"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"which to run, of: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    parser.add_argument(
        "--out", type=Path, default=RESULTS, help="folder for the results, as JSON (default: %(default)s)"
    )
    parser.add_argument(
        "--one-thread", action="store_true", help="processor time of one thread: for a machine that is not quiet"
    )
    chosen = parser.parse_args(arguments)
    if chosen.one_thread:
        os.environ[ONE_THREAD] = "1"
    unknown = set(chosen.names) - set(NAMES)
    if unknown:
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))} (there are: {', '.join(NAMES)})")
    console = Console()
    console.width = max(console.width, 100)  # room for the tables where the output is not a terminal
    for name in chosen.names or NAMES:
        result: Result = import_module(f"benchmarks.{name}").run(quick=chosen.quick)
        result.show(console)
        console.print(f"Written to {result.write(chosen.out, quick=chosen.quick)}\n")


if __name__ == "__main__":
    main()
