"""`fairpass datasets`: the benchmark graphs, and how to get them."""

from typing import Any

import typer
from rich.text import Text

from fairpass.cli.options import TEXTS, Result, command, examples
from fairpass.cli.output import Cells, facts, print_line, section, table

datasets = typer.Typer(invoke_without_command=True, add_completion=False, epilog=examples("datasets"))

_SYMBOLS = "H and H_f: the share of edges between nodes with equal labels, and between nodes of one group"
_HEADER = ("name", "nodes", "edges", "features", "H", "H_f", "max degree", "files")
# In the document: fields of the description of a graph.
_TEXTS = ("name", "title", "source", "citation", "licence", "caveats", "statistics", "split", "labels_for_training")
_SHOWN: Any = dict.fromkeys(_TEXTS, True) | {key: {"column", "names"} for key in ("label", "sensitive")}
_SPLITS = {
    "balanced": "published: {labels:,} for training, half of each label; a quarter for validation, a quarter for test",
    "stratified": "random in each label: at most {labels:,} for training, a quarter for validation, the rest for test",
}
_STATUS = {
    "embedded": ("included", "green"),
    "available": ("available", "green"),
    "not fetched": ("needs download", "yellow"),
}


@datasets.callback(help=TEXTS["datasets"]["help"])
@command
def list_datasets(ctx: typer.Context) -> Result:
    if ctx.invoked_subcommand is not None:
        return
    from fairpass.datasets import names

    known = [_about(name) for name in names()]
    yield known
    lines: list[Cells] = []
    for about in known:
        found, (status, style) = about["statistics"], _STATUS[about["status"]]
        counts = [_measured(found[name], ",") for name in ("nodes", "undirected_edges", "features")]
        shares = [_measured(found[name], ".3f") for name in ("label_homophily", "sensitive_homophily")]
        lines.append([about["name"], *counts, *shares, _measured(found["max_degree"], ","), Text(status, style=style)])
    section("Benchmark graphs", table(_HEADER, lines, words=["files"]), Text(_SYMBOLS, style="dim"))
    for about in known:
        paths, fetching = ", ".join(file["path"] for file in about["files"]), f"fairpass datasets fetch {about['name']}"
        where = {
            "embedded": "part of the package",
            "available": f"available at {paths}",
            "not fetched": f"needs download: run `{fetching}`, or put the files at {paths}",
        }
        label, groups = (f"{about[key]['column']}: {', '.join(about[key]['names'])}" for key in ("label", "sensitive"))
        others = {"source": about["source"], "licence": about["licence"], "status": where[about["status"]]}
        split = _SPLITS[about["split"]].format(labels=about["labels_for_training"])
        rest = {"split": split, **others, "caveats": "\n".join(about["caveats"])}
        section(f"{about['name']}: {about['title']}", facts({"label": label, "groups": groups, **rest}))


@datasets.command()
@command
def fetch(ctx: typer.Context, name: str) -> Result:
    """Download the files of a benchmark graph unless they are here, and check that they are the published ones."""
    from fairpass.datasets import fetch, graph_spec

    paths = fetch(name)
    yield _about(name)
    if not paths:
        where = "part of the package" if graph_spec(name).embedded else "a file of your own"
        print_line(f"{name} is {where}: there is nothing to fetch.")
    else:
        print_line(f"{name} is here and as published: {', '.join(map(str, paths))}")


def _measured(value: float | None, form: str) -> str:
    """Return a statistic as text, and a dash for one that was not measured."""
    return "-" if value is None else format(value, form)


def _about(name: str) -> dict[str, Any]:
    """Return what is known of a benchmark graph before it is loaded."""
    from fairpass.datasets import graph_spec, is_available
    from fairpass.datasets.download import data_directory

    spec = graph_spec(name)
    files = [file for file in spec.files if file.url is not None]
    return {
        **spec.model_dump(mode="json", include=_SHOWN),
        "status": "embedded" if spec.embedded else "available" if is_available(name) else "not fetched",
        "files": [
            {"path": str(data_directory() / file.path), "url": file.url, "sha256": file.sha256} for file in files
        ],
    }
