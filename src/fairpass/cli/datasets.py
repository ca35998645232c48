"""`fairpass datasets`: which benchmark graphs there are, and how to get them."""

from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from fairpass.cli.output import JsonFlag, examples, print_json, print_line, rows, section, table

app = typer.Typer(
    invoke_without_command=True,
    epilog=examples(
        {
            "What is there?": "fairpass datasets",
            "Get the files of a graph that is not part of the package": "fairpass datasets fetch bail",
            "The same, to a place of your choice": "FAIRPASS_DATA=~/graphs fairpass datasets fetch bail",
        }
    ),
)

_SYMBOLS = "H and H_f: the share of edges that join equal labels, and nodes of one group"

_STATUS = {"embedded": "included", "available": "available", "not fetched": "needs download"}
_STYLES = {"embedded": "green", "available": "green", "not fetched": "yellow"}


@app.callback()
def list_datasets(ctx: typer.Context, as_json: JsonFlag = False) -> None:
    """List the benchmark graphs: what they are, whether they are here, and their statistics.

    Some are part of the package. The files of the others are looked for, and
    put, in the directory that the environment variable FAIRPASS_DATA names,
    else in the user's cache.
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
    """Download the files of a benchmark graph, unless they are here, and check that they are the published ones."""
    from fairpass import datasets

    paths = datasets.fetch(name)
    if as_json or (ctx.parent is not None and ctx.parent.params["as_json"]):
        print_json(_about(name))
    elif not paths:
        print_line(f"{name} is part of the package: there is nothing to fetch.")
    else:
        print_line(f"{name} is here, and is as published: {', '.join(map(str, paths))}")


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


def _statistics(known: list[dict[str, Any]]) -> Table:
    numbers = ("nodes", "edges", "features", "H", "H_f", "max degree")
    made = table("name", *numbers, "files", numbers=numbers)
    for about in known:
        found = about["statistics"]
        made.add_row(
            about["name"],
            f"{found['nodes']:,}",
            f"{found['undirected_edges']:,}",
            f"{found['features']:,}",
            f"{found['label_homophily']:.3f}",
            f"{found['sensitive_homophily']:.3f}",
            f"{found['max_degree']:,}",
            Text(_STATUS[about["status"]], style=_STYLES[about["status"]]),
        )
    return made


def _details(about: dict[str, Any]) -> Table:
    label, sensitive = about["label"], about["sensitive"]
    details = {
        "label": f"{label['column']}: {', '.join(label['names'])}",
        "groups": f"{sensitive['column']}: {', '.join(sensitive['names'])}",
        "source": about["source"],
        "licence": about["licence"],
    }
    return rows([*((name, Text(text)) for name, text in details.items()), ("status", _status(about))])


def _status(about: dict[str, Any]) -> Text:
    paths = ", ".join(file["path"] for file in about["files"])
    sentences = {
        "embedded": "part of the package",
        "available": f"available at {paths}",
        "not fetched": f"needs download: run `fairpass datasets fetch {about['name']}`, or put the files at {paths}",
    }
    return Text(sentences[about["status"]], style=_STYLES[about["status"]])
