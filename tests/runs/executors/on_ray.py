"""What a process of its own does on a Ray of two nodes, one of which is lost in the middle; it prints what came out.

`python -m tests.runs.executors.on_ray DIRECTORY`, with a directory for marks. In a process of its own, because Ray
leaves threads, handlers and open files in the process that uses it.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from threading import Thread
from typing import Any

import ray
import torch
from ray.cluster_utils import Cluster
from tests.methods.ingredients import small_graph
from torch_geometric.data import Data

from fairpass.methods import GCN, Constant, NodeClassifier
from fairpass.parameters import parameter
from fairpass.runs import Comparison, Executor, executor_for, run
from fairpass.runs.executors import ray_cluster
from fairpass.training import Program, Task, Training

SEEDS = range(3)
CLOSED = 3  # times: about one in five has a task on its way to a worker, which Ray can fail to cancel


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)


class Held(GCN):
    """On the node that will be lost it goes no further, and says so; on the other it waits for that."""

    name = "held"
    marks: str = parameter("")

    def build(self, task: Task) -> Program:
        doomed, reached = Path(self.marks, "doomed"), Path(self.marks, "reached")
        if doomed.exists():
            if doomed.read_text() == ray.get_runtime_context().get_node_id():
                reached.touch()
                time.sleep(3600)
            wait_for(reached)
        return super().build(task)


def methods(marks: str) -> dict[str, NodeClassifier]:
    training = Training(epochs=3)
    return {"constant": Constant(), "held": Held(hidden=4, marks=marks, training=training)}


def records(marks: str, executor: Executor | None = None) -> dict[str, Any]:
    """Return what `run` keeps of every run, as plain values, without its time."""
    data = small_graph()
    comparison = Comparison.of(methods(marks), data)
    specs = comparison.specs(comparison.methods, SEEDS)
    run(specs, comparison, graphs={comparison.graph: data}, executor=executor, together=False)
    return {f"{each.method} {each.seed}": each.to_dict() | {"seconds": None} for each in comparison.runs}


def fail(_: Data, batch: int) -> None:
    raise KeyError(batch)


def kill_own_process(_: Data, batch: int) -> int:
    if batch:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch


def wait(data: Data, batch: float) -> int:
    time.sleep(batch)
    return data.num_nodes or 0


def close_early() -> tuple[float, int | None, bool]:
    """Return the first of three results, which is not waited for longer, and whether the others are cancelled."""
    # Two at once, on two processors: which of several waiting tasks Ray begins first is not known.
    results = executor_for(2, executor="ray://auto").map(wait, small_graph(), [0.0, 3600.0, 3600.0])
    first = next(results)
    results.close()
    return *first, is_free()


def is_free() -> bool:
    """Return whether both processors are free within some minutes: nothing runs on them any more."""
    end = time.monotonic() + 240
    while time.monotonic() < end:
        if ray.available_resources().get("CPU", 0) == 2:  # type: ignore[no-untyped-call] # of Ray
            return True
        time.sleep(0.1)
    return False


def main(marks: str) -> None:
    torch.set_num_threads(1)
    found: dict[str, Any] = {}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    os.environ["RAY_ADDRESS"] = cluster.address
    try:
        doomed = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        Path(marks, "doomed").write_text(doomed.node_id)

        def lose_node() -> None:
            wait_for(Path(marks, "reached"))
            cluster.remove_node(doomed, allow_graceful=False)

        thread = Thread(target=lose_node)
        with executor_for(executor="ray://auto") as executor:
            found["jobs"] = executor.jobs
            thread.start()
            found["records"] = records(marks, executor)
            thread.join()
            try:
                list(executor.map(fail, small_graph(), [7]))
            except KeyError as error:
                found["error"] = repr(error)
            ray_cluster.RETRIES = 0
            found["killed"] = sorted(executor.map(kill_own_process, small_graph(), [0, 1]))
            found["closed"] = [close_early() for _ in range(CLOSED)]
        found["disconnected"] = not ray.is_initialized()
    finally:
        cluster.shutdown()  # type: ignore[no-untyped-call] # of Ray
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
