"""`fairpass datasets`: the benchmark graphs, and how to get them."""

from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from fairpass.cli.options import Result, command, examples
from fairpass.cli.output import Cells, facts, print_line, section, table

app = typer.Typer(invoke_without_command=True, epilog=examples("datasets"))

_SYMBOLS = "H and H_f: the share of edges between nodes with equal labels, and between nodes of one group"
_HEADER = ("name", "nodes", "edges", "features", "H", "H_f", "max degree", "files")
_COLUMNS = {"label": "label", "groups": "sensitive"}
_STATUS = {
    "embedded": ("included", "green"),
    "available": ("available", "green"),
    "not fetched": ("needs download", "yellow"),
}


@app.callback()
@command
def list_datasets(ctx: typer.Context) -> Result:
    """List the benchmark graphs: what they are, whether their files are here, and their statistics.

    Some are part of the package. The files of the others are in the directory that
    the environment variable FAIRPASS_DATA names, or else in the user's cache.
    """
    if ctx.invoked_subcommand is not None:
        return
    from fairpass.datasets import names

    known = [_about(name) for name in names()]
    yield known
    statistics = table(_HEADER, map(_statistics, known), words=["files"])
    section("Benchmark graphs", statistics, Text(_SYMBOLS, style="dim"))
    for about in known:
        section(f"{about['name']}: {about['title']}", _details(about))


@app.command()
@command
def fetch(ctx: typer.Context, name: str) -> Result:
    """Download the files of a benchmark graph unless they are here, and check that they are the published ones."""
    from fairpass import datasets

    paths = datasets.fetch(name)
    yield _about(name)
    if not paths:
        print_line(f"{name} is part of the package: there is nothing to fetch.")
    else:
        print_line(f"{name} is here and as published: {', '.join(map(str, paths))}")


def _about(name: str) -> dict[str, Any]:
    """Return what is known of a benchmark graph before it is loaded."""
    from fairpass.datasets import graph_spec, is_available
    from fairpass.datasets.download import data_directory

    spec = graph_spec(name)
    directory = data_directory()
    return {
        "name": name,
        "title": spec.title,
        "status": "embedded" if spec.embedded else "available" if is_available(name) else "not fetched",
        "files": [
            {"path": str(directory / file.path), "url": file.url, "sha256": file.sha256}
            for file in spec.files
            if file.url is not None
        ],
        "label": {"column": spec.label.column, "names": list(spec.label.names)},
        "sensitive": {"column": spec.sensitive.column, "names": list(spec.sensitive.names)},
        "statistics": spec.statistics.model_dump(mode="json"),
        "source": spec.source,
        "citation": spec.citation,
        "licence": spec.licence,
        "caveats": list(spec.caveats),
    }


def _statistics(about: dict[str, Any]) -> Cells:
    found = about["statistics"]
    counts = [f"{found[name]:,}" for name in ("nodes", "undirected_edges", "features")]
    shares = [f"{found[name]:.3f}" for name in ("label_homophily", "sensitive_homophily")]
    status, style = _STATUS[about["status"]]
    return [about["name"], *counts, *shares, f"{found['max_degree']:,}", Text(status, style=style)]


def _details(about: dict[str, Any]) -> Table:
    paths = ", ".join(file["path"] for file in about["files"])
    where = {
        "embedded": "part of the package",
        "available": f"available at {paths}",
        "not fetched": f"needs download: run `fairpass datasets fetch {about['name']}`, or put the files at {paths}",
    }
    columns = {name: f"{about[key]['column']}: {', '.join(about[key]['names'])}" for name, key in _COLUMNS.items()}
    return facts({**columns, "source": about["source"], "licence": about["licence"], "status": where[about["status"]]})
