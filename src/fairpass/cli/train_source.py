"""What `fairpass train` trains on: a whole graph in this process, or one process's part of a graph."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import typer

from fairpass.cli import output
from fairpass.cli.data_options import GraphOptions
from fairpass.cli.output import STARTING, choose_threads, note, working
from fairpass.errors import FairpassError

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from fairpass.distributed.task import PartTask
    from fairpass.methods import NodeClassifier
    from fairpass.metrics import Evaluation


class Source(Protocol):
    """A graph to fit a classifier to."""

    provenance: dict[str, Any]
    label_names: list[str]
    data: Any  # the whole graph, if this process has it
    is_first: bool  # whether this process writes the files and prints

    def fit(
        self, model: "NodeClassifier", callbacks: Sequence[Any], checkpoint: Path | None, to: Path | None
    ) -> None: ...

    def evaluate(self, model: "NodeClassifier") -> "Evaluation": ...

    def label_counts(self) -> list[int]:
        """Return how many test nodes have each label."""
        ...


class WholeGraph:
    """A graph in this process."""

    is_first = True

    def __init__(self, data: "Data") -> None:
        self.data, self.provenance, self.label_names = data, data.provenance, data.label_names

    def fit(self, model: "NodeClassifier", callbacks: Sequence[Any], checkpoint: Path | None, to: Path | None) -> None:
        model.fit(self.data, callbacks=callbacks, checkpoint=checkpoint, save_to=to)

    def evaluate(self, model: "NodeClassifier") -> "Evaluation":
        return model.evaluate(self.data, undefined="nan")

    def label_counts(self) -> list[int]:
        y = self.data.y[self.data.test_mask & (self.data.y >= 0)]
        counts: list[int] = y.bincount(minlength=len(self.label_names)).tolist()
        return counts


class SharedGraph:
    """A graph of which this process has a part."""

    data = None

    def __init__(self, task: "PartTask", rank: int) -> None:
        self.task, self.provenance, self.label_names = task, task.manifest.provenance, task.label_names
        self.is_first = rank == 0

    def fit(self, model: "NodeClassifier", callbacks: Sequence[Any], checkpoint: Path | None, to: Path | None) -> None:
        from fairpass.methods.in_parts import fit_in_parts

        shown = callbacks if self.is_first else ()
        fit_in_parts(model, self.task, callbacks=shown, checkpoint=checkpoint, save_to=to)

    def evaluate(self, model: "NodeClassifier") -> "Evaluation":
        from fairpass.methods.in_parts import evaluate_in_parts

        return evaluate_in_parts(model, self.task, undefined="nan")

    def label_counts(self) -> list[int]:
        from fairpass.world import world

        y = self.task.y[self.task.nodes("test")]
        counts: list[int] = world().total(y.bincount(minlength=self.task.num_classes)).tolist()
        return counts


@contextmanager
def opened(graph: GraphOptions, model: "NodeClassifier") -> Iterator[Source]:
    """Load the graph, or join the other processes that have parts of it."""
    if graph.parts is None:
        data = graph.load()
        choose_threads(data)
        yield WholeGraph(data)
        return
    from fairpass.distributed.processes import joined, local_device
    from fairpass.distributed.task import PartTask

    with joined() as shared:
        if shared.rank:
            # All processes know the same; the first one says it.
            output.console.quiet = output.notices.quiet = True
        yield SharedGraph(PartTask(graph.parts, shared, local_device(model.training.device)), shared.rank)


@contextmanager
def explained_to_parent() -> Iterator[None]:
    """Hand a user's mistake to the process that started this one, if that is fairpass, which then says it once."""
    from fairpass.distributed.launch import has_told_parent, tell_parent

    try:
        yield
    except ConnectionError:
        if has_told_parent():  # that is why the connection was lost
            raise typer.Exit(0) from None
        raise  # the next start may succeed
    except (FairpassError, ValueError, OSError) as error:
        if tell_parent(output.explain(error)):
            raise typer.Exit(0) from None
        raise


def start_workers(parts: Path, workers: int | None, model: "NodeClassifier") -> None:
    """Check everything that can be checked here, and run this very command in as many processes as there are parts."""
    with working(STARTING):
        from fairpass.datasets.parts import Manifest
        from fairpass.distributed.launch import launch
        from fairpass.distributed.task import check_size
        from fairpass.methods.in_parts import check_in_parts

        manifest = Manifest.read(parts)
        check_size(parts, manifest, manifest.parts if workers is None else workers)
        check_in_parts(model)
    note(f"Starting {manifest.parts} processes, one for each part of {parts}")
    launch(manifest.parts, sys.argv[1:])


def check_options(graph: GraphOptions, workers: int | None, track: Sequence[str]) -> None:
    """Refuse options that do not go together."""
    if graph.parts is None and workers is not None:
        raise typer.BadParameter("--workers is for a graph in parts: give the directory that `fairpass partition` made")
    if graph.parts is not None and track:
        raise typer.BadParameter("--track cannot be used with a graph in parts")
