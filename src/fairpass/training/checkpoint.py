"""An interrupted fit on disk, from which it continues to the same result."""

import copy
import io
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.optim import Optimizer

from fairpass.errors import ModelFileError
from fairpass.training.history import History
from fairpass.training.program import Program
from fairpass.training.tensors import read_tensors, write_tensors
from fairpass.world import world

if TYPE_CHECKING:
    from fairpass.training.loop import FitState

_KIND = "fairpass checkpoint"
_SHOWN = 300  # characters of a reason


class Checkpoint:
    """A file that holds a fit in progress; a checkpoint of a fit with another `identity` is an error.

    The fit is copied in memory after every epoch, and written after `every` epochs, or some seconds. So an
    interruption in the middle of an epoch, when parameters are half updated, leaves a whole number of epochs behind.
    """

    def __init__(self, path: str | os.PathLike[str], identity: str, every: int = 25, seconds: float = 60.0) -> None:
        if every < 1:
            raise ValueError(f"'every' must be at least 1 (got {every})")
        self.path, self.identity, self.every, self.seconds = Path(path), identity, every, seconds
        self._latest: dict[str, Any] | None = None
        self._written = time.monotonic()

    def keep(self, program: Program, state: "FitState") -> None:
        """Copy the fit as it is between two epochs, or before the first; write it if it is time."""
        self._latest = _snapshot(program, state)
        overdue = time.monotonic() - self._written > self.seconds
        # The first writing, before any epoch, also detects early that the path cannot be written.
        if len(state.history) % self.every == 0 or overdue:
            self.write()

    def write(self) -> None:
        if self._latest is None or world().rank:  # all processes have the same
            return
        buffer = io.BytesIO()
        torch.save(self._latest, buffer)
        content = torch.frombuffer(bytearray(buffer.getbuffer()), dtype=torch.uint8)
        header = {"identity": self.identity, "epochs": len(self._latest["history"])}
        write_tensors(self.path, _KIND, {"fit": content}, header)
        self._written = time.monotonic()

    def restore(self, program: Program, state: "FitState") -> bool:
        """Put a stored fit back in place; return whether there was one."""
        content = world().broadcast(world().agree(self._read))
        if content is None:
            return False
        try:
            self._put_back(program, state, content)
        except Exception as error:  # of any kind: whatever is wrong with a file must name it
            reason = f"(damaged: {type(error).__name__}: {error}"[:_SHOWN]
            raise ModelFileError(f"'{self.path}' must be a {_KIND} {reason}); remove it to start again") from error
        return True

    def _put_back(self, program: Program, state: "FitState", content: bytes) -> None:
        stored = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        program.load_state_dict(stored["program"])
        program.configure(state.training)
        for name, optimizer in program.optimizers.items():
            optimizer.load_state_dict(stored["optimizers"][name])
        torch.set_rng_state(stored["random"])
        torch.cuda.set_rng_state_all(stored["cuda_random"])
        state.history = History.from_list(stored["history"])
        state.best_epoch, state.best_state = stored["best_epoch"], stored["best_state"]
        if not -1 <= state.best_epoch < len(state.history):
            raise ValueError(f"its best epoch is not one of {len(state.history)}")
        self._latest = _snapshot(program, state)

    def _read(self) -> bytes | None:
        if world().rank or not self.path.exists():
            return None
        tensors, header = read_tensors(self.path, _KIND)
        if header.get("identity") != self.identity:
            hint = "it belongs to another method, setting, graph or version); remove it to start again"
            raise ModelFileError(f"'{self.path}' must be a checkpoint of this very fit ({hint}")
        return tensors["fit"].numpy().tobytes() if "fit" in tensors else b""


def _snapshot(program: Program, state: "FitState") -> dict[str, Any]:
    return {
        "program": {name: value.detach().clone() for name, value in program.state_dict().items()},
        "optimizers": {name: _optimizer_state(optimizer) for name, optimizer in program.optimizers.items()},
        "random": torch.get_rng_state(),
        "cuda_random": torch.cuda.get_rng_state_all(),
        "history": state.history.to_list(),
        "best_epoch": state.best_epoch,
        "best_state": state.best_state,  # never written to, only replaced
    }


def _optimizer_state(optimizer: Optimizer) -> dict[str, Any]:
    state = copy.deepcopy(optimizer.state_dict())
    # A loader that runs no code knows no numbers of numpy.
    for group in state["param_groups"]:
        group |= {key: value.item() for key, value in group.items() if isinstance(value, np.generic)}
    return state
