"""What is shown on stderr during long work: a progress bar on terminals, and notes."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from fairpass.cli import output

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.training import EpochRecord

# Smaller graphs are faster with one thread: an epoch of GMMD on German (1,000 nodes) took 33 ms with one thread, 77 ms
# with two, and over a second with two when other programs used the cores as well.
_NODES_WORTH_SHARING = 5_000

Show = Callable[[int, str, str], None]
"""Called with the finished part of the total, what is done now, and details."""


@contextmanager
def bar(total: int, kept: object = None, again: str = "the same command") -> Iterator[Show]:
    """Show a progress bar; after an interruption, say where finished work is `kept` and what continues it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(compact=True),
    )
    console = output.notices
    task: TaskID | None = None
    with Progress(*columns, console=console, transient=True, expand=True, disable=not console.is_terminal) as progress:

        def show(completed: int, label: str, state: str) -> None:
            nonlocal task
            if task is None:  # what an earlier session did must not count as speed
                task = progress.add_task(label, total=total, completed=completed, state=state)
            else:
                progress.update(task, completed=completed, description=label, state=state)

        try:
            yield show
        except KeyboardInterrupt:
            if kept is not None:
                note(f"Finished work is in {kept}: {again} continues from there")
            raise


def in_short(record: "EpochRecord") -> str:
    """Return the loss and the validation metrics of an epoch, in percent."""
    metrics = (f"{name} {100 * record.metrics[name]:.1f}" for name in ("AUC", "ACC", "DP", "EO"))
    return " ".join([f"loss {record.loss:.3f}", *metrics])


def note(message: str) -> None:
    """Print a line of any length beside the bar."""
    output.notices.print(Text(message), soft_wrap=True)


def choose_threads(data: "Data | None" = None) -> None:
    """Use one thread for a small graph (or any, without `data`), unless OMP_NUM_THREADS is set."""
    import torch

    small = data is None or data.num_nodes < _NODES_WORTH_SHARING
    if small and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
