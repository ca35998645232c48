"""Growth to 10^7 nodes: time and memory of a step of training, the graph made in the same process."""

import gc
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch

from benchmarks.epochs import gmmd_epoch
from benchmarks.result import Cell, Result, Table
from benchmarks.timing import clock, side_by_side
from fairpass.datasets import synthetic
from fairpass.methods import GMMD
from fairpass.training import Task

# glibc gives every large block back to the system when it is freed, and the next one is filled with zeros page by
# page. With these settings it keeps what was freed. Other C libraries ignore them.
KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_TOP_PAD_": "67108864"}


def run(quick: bool) -> Result:
    return Result("growth", [_growth((100_000,) if quick else (100_000, 1_000_000, 10_000_000))])


def _growth(sizes: tuple[int, ...]) -> Table:
    rows: list[dict[str, Cell]] = []
    for nodes in sizes:
        # A process of its own: its peak memory is this size's alone.
        output = subprocess.run(
            [sys.executable, "-m", "benchmarks.growth", str(nodes)],
            env={**os.environ, **KEEP_MEMORY},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        making, preparing, seconds, product, gigabytes = map(float, output.split())
        rows.append(
            {
                "nodes": nodes,
                "edges": 10 * nodes,
                "making the graph, s": making,
                "preparing, s": preparing,
                "step, s": seconds,
                "product, per node, us": 1e6 * product / nodes,
                "step, per node, us": 1e6 * seconds / nodes,
                "peak memory, GB": gigabytes,
            }
        )
    for row in rows:
        row["per node, ratio"] = float(row["step, per node, us"] or 0) / float(rows[0]["step, per node, us"] or 1)
    return Table("Growth: one step of training, synthetic graphs, average degree 20, one fair step per layer", rows)


def _one_size(nodes: int) -> None:
    start = time.perf_counter()
    data = synthetic(nodes, avg_degree=20, seed=0)
    made = time.perf_counter()
    task = Task(data)
    call = gmmd_epoch(GMMD(fair_steps=1), task)
    call()  # builds the operator
    gc.collect()
    ready = time.perf_counter()
    operator, column = task.operator("gcn"), torch.randn(nodes, 1)
    taken = side_by_side({"epoch": call, "product": lambda: operator @ column}, rounds=7, budget=60.0)
    print(made - start, ready - made, taken["epoch"].least, taken["product"].least, peak_gigabytes())


def peak_gigabytes() -> float:
    """Return this process's own peak; `getrusage` would count what its parent held when it was started."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    clock()  # one thread, if that is asked for
    _one_size(int(sys.argv[1]))
