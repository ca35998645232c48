"""`fairpass datasets`: the benchmark graphs, and how to get them."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from fairpass.cli.output import JsonFlag, examples, print_json, print_line, rows, section, table

app = typer.Typer(invoke_without_command=True, epilog=examples("datasets"))

_SYMBOLS = "H and H_f: the share of edges between nodes with equal labels, and between nodes of one group"
_COLUMNS = {"label": "label", "groups": "sensitive"}
_STYLES = {"embedded": "green", "available": "green", "not fetched": "yellow"}


@app.callback()
def list_datasets(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the benchmark graphs: what they are, whether their files are here, and their statistics.

    Some are part of the package. The files of the others are in the directory that
    the environment variable FAIRPASS_DATA names, or else in the user's cache.
    """
    if ctx.invoked_subcommand is not None:
        return
    from fairpass.datasets import names

    known = [_about(name) for name in names()]
    if as_json:
        print_json(known)
    else:
        section("Benchmark graphs", _statistics(known), Text(_SYMBOLS, style="dim"))
        for about in known:
            section(f"{about['name']}: {about['title']}", _details(about))


@app.command()
def fetch(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of those that `fairpass datasets` lists.")],
    as_json: JsonFlag = False,
) -> None:
    """Download the files of a benchmark graph unless they are here, and check that they are the published ones."""
    from fairpass import datasets

    paths = datasets.fetch(name)
    if as_json or (ctx.parent is not None and ctx.parent.params["as_json"]):
        print_json(_about(name))
    elif not paths:
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
        "statistics": asdict(spec.statistics),
        "source": spec.source,
        "citation": spec.citation,
        "licence": spec.licence,
        "caveats": list(spec.caveats),
    }


def _statistics(known: list[dict[str, Any]]) -> Table:
    numbers = ("nodes", "edges", "features", "H", "H_f", "max degree")
    made = table("name", *numbers, "files", numbers=numbers)
    status = {"embedded": "included", "available": "available", "not fetched": "needs download"}
    for about in known:
        found = about["statistics"]
        counts = [f"{found[name]:,}" for name in ("nodes", "undirected_edges", "features")]
        shares = [f"{found[name]:.3f}" for name in ("label_homophily", "sensitive_homophily")]
        files = Text(status[about["status"]], style=_STYLES[about["status"]])
        made.add_row(about["name"], *counts, *shares, f"{found['max_degree']:,}", files)
    return made


def _details(about: dict[str, Any]) -> Table:
    columns = {name: f"{about[key]['column']}: {', '.join(about[key]['names'])}" for name, key in _COLUMNS.items()}
    details = {**columns, "source": about["source"], "licence": about["licence"]}
    paths = ", ".join(file["path"] for file in about["files"])
    status = {
        "embedded": "part of the package",
        "available": f"available at {paths}",
        "not fetched": f"needs download: run `fairpass datasets fetch {about['name']}`, or put the files at {paths}",
    }[about["status"]]
    texts = [(name, Text(text)) for name, text in details.items()]
    return rows([*texts, ("status", Text(status, style=_STYLES[about["status"]]))])
