"""An interrupted fit on disk: enough of it to go on to the very same result."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from fairpass.errors import ModelFileError
from fairpass.training.history import History
from fairpass.training.program import Program
from fairpass.training.settings import Training
from fairpass.training.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from fairpass.training.loop import Progress

_KIND = "fairpass checkpoint"


@dataclass(frozen=True)
class _Snapshot:
    """A fit as it stood between two epochs."""

    tensors: dict[str, Tensor]
    history: History
    rest: dict[str, Any]


class Checkpoint:
    """A file that holds a fit in progress.

    The fit is kept in memory after every epoch, and written now and then. So an interruption in the middle of
    an epoch, when parameters are half updated, still leaves a whole number of epochs behind.

    Args:
        path: where it is written.
        identity: what the fit is a fit of (method, parameters, settings, data); a checkpoint of anything else
            is an error.
        every: write it after this many epochs,
        seconds: or when it was last written this long ago.
    """

    def __init__(self, path: str | os.PathLike[str], identity: str, every: int = 25, seconds: float = 60.0) -> None:
        if every < 1:
            raise ValueError(f"'every' must be at least 1 (got {every})")
        self.path, self.identity, self.every, self.seconds = Path(path), identity, every, seconds
        self._latest: _Snapshot | None = None
        self._written = time.monotonic()

    def keep(self, program: Program, progress: "Progress") -> None:
        """Remember the fit as it stands between two epochs, or before the first; write it if it is time."""
        self._latest = _snapshot(program, progress)
        overdue = time.monotonic() - self._written > self.seconds
        # The first writing, before any epoch, also finds out early that the path is no good.
        if len(progress.history) % self.every == 0 or overdue:
            self.write()

    def write(self) -> None:
        """Write what was last kept."""
        if self._latest is None:
            return
        header = {"identity": self.identity, "history": self._latest.history.to_list(), **self._latest.rest}
        write_tensors(self.path, _KIND, self._latest.tensors, header)
        self._written = time.monotonic()

    def restore(self, program: Program, progress: "Progress", training: Training) -> bool:
        """Put a stored fit back in place; return whether there was one."""
        if not self.path.exists():
            return False
        tensors, header = read_tensors(self.path, _KIND)
        if header["identity"] != self.identity:
            raise ModelFileError(
                f"'{self.path}' must be a checkpoint of this very fit (it belongs to another method, "
                "setting, graph or version); remove it to start again"
            )
        program.load_state_dict(_under(tensors, "program/"))
        program.configure(training)
        for name, optimizer in program.optimizers.items():
            _restore_optimizer(optimizer, _under(tensors, f"optimizer/{name}/"), header["optimizers"][name])
        _set_random_state(_under(tensors, "random/"))
        progress.history = History.from_list(header["history"])
        progress.best_epoch = header["best_epoch"]
        progress.best_state = _under(tensors, "best/")
        self._latest = _snapshot(program, progress)
        return True

    def remove(self) -> None:
        """Delete the file: the fit is done."""
        self.path.unlink(missing_ok=True)


def _snapshot(program: Program, progress: "Progress") -> _Snapshot:
    tensors = {f"program/{name}": value.detach().clone() for name, value in program.state_dict().items()}
    # These are never written to, only replaced.
    tensors |= {f"best/{name}": value for name, value in progress.best_state.items()}
    tensors |= {f"random/{name}": value for name, value in _random_state().items()}
    layouts = {}
    for name, optimizer in program.optimizers.items():
        entries, layouts[name] = _flatten(optimizer)
        tensors |= {f"optimizer/{name}/{key}": value.clone() for key, value in entries.items()}
    rest = {"best_epoch": progress.best_epoch, "optimizers": layouts}
    return _Snapshot(tensors, History(progress.history), rest)


def _random_state() -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.device_count():
        states |= {f"cuda:{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def _set_random_state(states: dict[str, Tensor]) -> None:
    for device, state in states.items():
        if device == "cpu":
            torch.set_rng_state(state)
        else:
            torch.cuda.set_rng_state(state, device)


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _flatten(optimizer: Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Split an optimizer's state into its tensors, and everything else as plain data."""
    state = optimizer.state_dict()
    tensors: dict[str, Tensor] = {}
    plain: dict[str, Any] = {}
    for index, entries in state["state"].items():
        for key, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{index}/{key}"] = value
            else:
                plain[f"{index}/{key}"] = value
    return tensors, {"groups": state["param_groups"], "plain": plain}


def _restore_optimizer(optimizer: Optimizer, tensors: dict[str, Tensor], layout: dict[str, Any]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for path, value in {**tensors, **layout["plain"]}.items():
        index, key = path.split("/", 1)
        state.setdefault(int(index), {})[key] = value
    # JSON knows lists only; what is a tuple in the new optimizer (Adam's betas) becomes one again.
    groups = [
        {key: tuple(value) if isinstance(fresh.get(key), tuple) else value for key, value in group.items()}
        for group, fresh in zip(layout["groups"], optimizer.param_groups, strict=True)
    ]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
