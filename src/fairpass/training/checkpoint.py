"""An interrupted fit on disk: enough of it to go on to the very same result."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fairpass.errors import ModelFileError
from fairpass.training.history import History
from fairpass.training.program import Program
from fairpass.training.settings import Training
from fairpass.training.tensors import read_tensors, write_tensors

if TYPE_CHECKING:
    from fairpass.training.loop import Progress

_KIND = "fairpass checkpoint"


class Checkpoint:
    """A file that holds a fit in progress.

    Args:
        path: where it is written.
        identity: what the fit is a fit of (method, parameters, settings, data); a checkpoint of anything else is an error.
        every: write it after this many epochs.
    """

    def __init__(self, path: str | Path, identity: str, every: int = 25) -> None:
        if every < 1:
            raise ValueError(f"'every' must be at least 1 (got {every})")
        self.path, self.identity, self.every = Path(path), identity, every

    def is_due(self, epochs_done: int) -> bool:
        """Return whether the fit should be written now."""
        return epochs_done % self.every == 0

    def save(self, program: Program, progress: "Progress") -> None:
        """Write the fit as it stands after a whole epoch."""
        tensors = {f"parameter/{name}": value for name, value in program.state_dict().items()}
        tensors |= {f"best/{name}": value for name, value in progress.best_state.items()}
        tensors["random"] = torch.get_rng_state()
        layouts = {}
        for name, optimizer in program.optimizers.items():
            flat, layouts[name] = _flatten(optimizer.state_dict())
            tensors |= {f"optimizer/{name}/{key}": value for key, value in flat.items()}
        header = {
            "identity": self.identity,
            "history": progress.history.to_list(),
            "best_epoch": progress.best_epoch,
            "best_selection": progress.best_selection,
            "best_threshold": progress.best_threshold,
            "optimizers": layouts,
        }
        write_tensors(self.path, _KIND, tensors, header)

    def restore(self, program: Program, progress: "Progress", training: Training) -> bool:
        """Put a stored fit back in place; return whether there was one."""
        if not self.path.exists():
            return False
        tensors, header = read_tensors(self.path, _KIND)
        if header["identity"] != self.identity:
            raise ModelFileError(
                f"'{self.path}' must be a checkpoint of this very fit (it belongs to another method, setting or graph); "
                "remove it to start anew"
            )
        program.configure(training)
        program.load_state_dict(_under(tensors, "parameter/"))
        for name, optimizer in program.optimizers.items():
            optimizer.load_state_dict(_unflatten(_under(tensors, f"optimizer/{name}/"), header["optimizers"][name]))
        torch.set_rng_state(tensors["random"])
        progress.history = History.from_list(header["history"])
        progress.best_epoch, progress.best_selection = header["best_epoch"], header["best_selection"]
        progress.best_threshold = header["best_threshold"]
        progress.best_state = _under(tensors, "best/")
        return True

    def remove(self) -> None:
        """Delete the file: the fit is done."""
        self.path.unlink(missing_ok=True)


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def _flatten(state: dict[str, Any]) -> tuple[dict[str, Tensor], str]:
    """Split an optimizer's state into its tensors and, as JSON, everything else."""
    tensors, plain = {}, {}
    for index, entries in state["state"].items():
        for key, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"{index}/{key}"] = value
            else:
                plain[f"{index}/{key}"] = value
    return tensors, json.dumps({"groups": state["param_groups"], "plain": plain})


def _unflatten(tensors: dict[str, Tensor], layout: str) -> dict[str, Any]:
    rest = json.loads(layout)
    state: dict[int, dict[str, Any]] = {}
    for path, value in {**tensors, **rest["plain"]}.items():
        index, key = path.split("/", 1)
        state.setdefault(int(index), {})[key] = value
    return {"state": state, "param_groups": rest["groups"]}
