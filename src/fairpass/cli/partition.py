"""`fairpass partition`: a graph in parts on disk, from tables of any size."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from fairpass.cli.data_options import GraphOptions
from fairpass.cli.options import Result, command
from fairpass.cli.output import STARTING, bar, print_line, section, table, working

if TYPE_CHECKING:
    from fairpass.datasets.parts import Manifest

_SHARES = 1000  # of the progress bar


class PartitionOptions(GraphOptions):
    """The options of a graph whose tables are arguments of the command."""

    @staticmethod
    def parameters() -> list[inspect.Parameter]:
        arguments = ("name", "nodes", "edges", "similarity")
        return [option for option in GraphOptions.parameters() if option.name not in arguments]


@command
def partition(
    nodes: str, graph: PartitionOptions, parts: int, out: Path, edges: Path | None = None, memory: str = "4GB"
) -> Result:
    if edges is not None:
        manifest = _partition_tables(Path(nodes), edges, graph, parts, out, memory)
    elif Path(nodes).is_file() and Path(nodes).suffix.lower() != ".mat":
        raise typer.BadParameter(f"{nodes!r} is a table of nodes: give a table of edges, too")
    else:
        graph.name = graph.given["name"] = nodes
        made_from = dict(graph.given)
        arrays = graph.load_arrays()
        with working("Writing the parts"):
            from fairpass.datasets.out_of_core.partition import partition_graph

            manifest = partition_graph(arrays, out, parts=parts, made_from=made_from)
    yield {"directory": str(out), **manifest.model_dump(mode="json", exclude={"provenance", "files"})}
    _show(manifest, out)


def _partition_tables(
    nodes: Path, edges: Path, graph: PartitionOptions, parts: int, out: Path, memory: str
) -> "Manifest":
    options = graph.table_options()
    with working(STARTING):
        from fairpass.datasets.out_of_core.partition import partition as partition_tables

    with bar(_SHARES, out) as show:

        def progress(share: float, what: str) -> None:
            show(round(_SHARES * share), what, f"{share:.0%}")

        return partition_tables(nodes, edges, out, parts=parts, memory=memory, progress=progress, **dict(options))


def _show(manifest: "Manifest", out: Path) -> None:
    columns = ("part", "nodes", "edges", "halo")
    lines = [
        (str(number), *(f"{about[name]:,}" for name in columns[1:]))
        for number, about in enumerate(manifest.statistics["parts"])
    ]
    section(f"{manifest.num_nodes:,} nodes, {manifest.num_edges // 2:,} edges", table(columns, lines))
    print_line("\nA part's edges count in both directions; its halo are the nodes of other parts with an edge to it.")
    print_line(f"The parts are in {out}.")
