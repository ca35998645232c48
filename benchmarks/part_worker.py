"""One of the processes whose fits are measured: `torchrun -m benchmarks.part_worker EPOCHS KIND:ENCODER:PARTS ...`.

The first of them prints one line of JSON. The kind is `parts`, or for a process alone `plain`: it then fits the whole
graph without any of the processes' machinery.
"""

import json
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from benchmarks.growth import peak_gigabytes
from fairpass.datasets.parts import join_parts
from fairpass.distributed.processes import joined
from fairpass.distributed.task import PartTask
from fairpass.methods import GMMD
from fairpass.methods.in_parts import fit_in_parts
from fairpass.training.history import EpochRecord
from fairpass.world import SharedWorld, World, inside

WARM_UP = 2  # epochs that are not counted


class Watch:
    """A callback that takes the time at the end of each epoch, and counts what was sent until then."""

    def __init__(self, shared: SharedWorld) -> None:
        self.shared = shared
        self.wall: list[float] = []
        self.processor: list[float] = []
        self.messages: list[dict[str, int]] = []
        self.bytes: list[dict[str, int]] = []

    def __call__(self, record: EpochRecord) -> None:
        self.wall.append(time.perf_counter())
        self.processor.append(time.process_time())
        self.messages.append(dict(self.shared.messages))
        self.bytes.append(dict(self.shared.sent_bytes))

    def result(self) -> dict[str, Any]:
        """Return the seconds of every epoch, and what was sent in one, by kind."""
        counted = slice(WARM_UP - 1, None)
        return {
            "seconds": [b - a for a, b in pairwise(self.wall[counted])],
            "processor": [b - a for a, b in pairwise(self.processor[counted])],
            "messages": _each_epoch(self.messages[counted]),
            "bytes": _each_epoch(self.bytes[counted]),
        }


def _each_epoch(counts: list[dict[str, int]]) -> dict[str, float]:
    first, last = counts[0], counts[-1]
    return {kind: (count - first.get(kind, 0)) / (len(counts) - 1) for kind, count in last.items()}


def fitted_in_parts(directory: Path, encoder: str, epochs: int, shared: SharedWorld) -> dict[str, Any]:
    start, watch = time.perf_counter(), Watch(shared)
    task = PartTask(directory, shared)
    fit_in_parts(_classifier(encoder, epochs), task, callbacks=[watch])
    return {
        **task.manifest.statistics["parts"][shared.rank],
        **watch.result(),
        "set-up": watch.wall[0] - start,
        "rows sent": len(task.halo.sent),
        "files": sum(file.bytes for file in task.manifest.files[shared.rank].values()) / 1e9,
        "peak": peak_gigabytes(),
    }


def fitted_plainly(directory: Path, encoder: str, epochs: int, shared: SharedWorld) -> dict[str, Any]:
    watch, data = Watch(shared), join_parts(directory).to_data()
    with inside(World()):
        _classifier(encoder, epochs).fit(data, callbacks=[watch])
    return watch.result()


def _classifier(encoder: Any, epochs: int) -> GMMD:
    return GMMD(encoder=encoder, training=GMMD.recommended_training.but(epochs=epochs, patience=None))


def main(epochs: int, fits: list[str]) -> None:
    torch.set_num_threads(1)
    kinds, base, found = {"parts": fitted_in_parts, "plain": fitted_plainly}, peak_gigabytes(), []
    with joined() as shared:
        for fit in fits:
            kind, encoder, directory = fit.split(":", 2)
            found.append({**kinds[kind](Path(directory), encoder, epochs, shared), "base": base})
        if shared.rank == 0:
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
