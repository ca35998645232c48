"""`fairpass audit`, and the options that say which graph is meant."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from typer.testing import Result

from fairpass.cli.data_options import GraphOptions
from fairpass.datasets import describe, find_bias, from_tables, load, names, registry
from fairpass.datasets.graph_gain import graph_gain
from fairpass.datasets.options import TableOptions

Run = Callable[..., Result]
RunJson = Callable[..., Any]
Tables = dict[str, Any]


def audit_tables(paths: Tables, **changes: str | Path) -> list[str]:
    options = paths | {"id": "name", "label": "hired", "sensitive": "sex"} | changes
    return ["audit", *(text for name, value in options.items() for text in (f"--{name}", str(value)))]


def test_benchmark(run: Run) -> None:
    result = run("audit", "german")
    assert (result.exit_code, result.stderr) == (0, "")
    for finding in find_bias(describe(load("german"), leakage_auc=True)):
        assert finding.sentence in result.stdout
    for text in ("German Credit", "CC BY 4.0", "21,742 undirected", "100 train, 250 val, 250 test", "0.805"):
        assert text in result.stdout
    assert graph_gain(load("german")).sentence in " ".join(result.stdout.split())
    for caveat in load("german").provenance["caveats"]:
        assert caveat in result.stdout


def test_benchmark_as_json(run_json: RunJson) -> None:
    document = run_json("audit", "german", "--json")
    data = load("german")
    statistics = describe(data, leakage_auc=True)
    assert document["provenance"] == data.provenance
    assert document["statistics"] == statistics.to_dict()
    assert document["findings"] == [finding.to_dict() for finding in find_bias(statistics)]
    assert document["graph_gain"] == graph_gain(data).to_dict()


def test_whether_the_edges_help_is_not_measured_without_edges(run: Run, run_json: RunJson, tmp_path: Path) -> None:
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    rows = [f"{number},{number % 7},{number % 2},{number // 2 % 2}" for number in range(80)]
    nodes.write_text("\n".join(["name,skill,hired,sex", *rows]))
    edges.write_text("source,target\n")
    arguments = audit_tables({"nodes": nodes, "edges": edges})
    sentence = "Whether the edges help was not measured: the graph has no edges."
    assert run_json(*arguments, "--json")["graph_gain"]["sentence"] == sentence
    assert sentence in run(*arguments).stdout


def test_in_a_process_of_its_own(run_process: "Callable[..., subprocess.CompletedProcess[str]]") -> None:
    done = run_process("audit", "german")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Where bias can come from" in done.stdout


@pytest.mark.parametrize("command", [["audit", "german"], ["datasets"]])
def test_without_the_heavy_libraries(
    run_process: "Callable[..., subprocess.CompletedProcess[str]]", command: list[str]
) -> None:
    script = (
        "import sys\nfrom fairpass.cli import main\n"
        "try: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = run_process(*command, script=script)
    loaded = set(done.stderr.split())
    assert "fairpass.datasets.registry" in loaded
    assert loaded.isdisjoint({"torch", "torch_geometric", "sklearn", "fairlearn", "matplotlib", "optuna"})


def test_options_of_benchmarks(run_json: RunJson) -> None:
    arguments = ["--drop-sensitive", "--scale", "standard", "--split-seed", "7"]
    document = run_json("audit", "german", *arguments, "--json")
    assert document["provenance"]["options"] == {"keep_sensitive": False, "scale": "standard", "split_seed": 7}
    assert document["statistics"]["leakage"]["sensitive_feature"] is None


def test_own_tables(run: Run, own_tables: Tables) -> None:
    result = run(*audit_tables(own_tables))
    assert result.exit_code == 0
    assert result.stderr == "Warning: column 'planet' is constant and is left out\n"
    for text in (
        f"{own_tables['nodes']} and {own_tables['edges']}",
        "40 undirected, 1 duplicates merged",
        "20 no, 20 yes",
        "P(yes)",
        "'shoe'",
    ):
        assert text in result.stdout


def test_own_tables_as_json(run_json: RunJson, own_tables: Tables) -> None:
    document = run_json(*audit_tables(own_tables), "--drop", "planet", "--drop", "age", "--json")
    data = from_tables(**own_tables, id="name", label="hired", sensitive="sex", drop=["planet", "age"])
    assert document["provenance"] == data.provenance
    assert document["statistics"] == describe(data, leakage_auc=True).to_dict()


def test_every_option_of_tables_arrives(run_json: RunJson, own_tables: Tables, tmp_path: Path) -> None:
    nodes = tmp_path / "more.csv"
    lines = own_tables["nodes"].read_text(encoding="utf-8").splitlines()
    lines = [
        lines[0] + ",part",
        *(f"{line},{('train', 'val', 'test', 'test')[i // 5 % 4]}" for i, line in enumerate(lines[1:])),
    ]
    lines[1] = lines[1].replace("p0,20,", "p0,,").replace("earth,m", "mars,")
    nodes.write_text("\n".join(lines), encoding="utf-16")
    edges = tmp_path / "edges.csv"
    edges.write_text(own_tables["edges"].read_text().replace("one,other", "other,one"), encoding="utf-16")
    options = {
        "source": "one", "target": "other", "split": "part", "positive": "no", "missing": "indicator",
        "missing-sensitive": "unknown", "max-levels": "9", "text-encoding": "utf-16", "scale": "none",
        "split-seed": "5",
    }  # fmt: skip
    arguments = audit_tables({"nodes": nodes, "edges": edges}, **options)
    document = run_json(*arguments, "--feature", "age", "--feature", "planet", "--keep-sensitive", "--json")
    used = document["provenance"]["options"]
    assert (
        used
        | {
            "source": "one",
            "target": "other",
            "split": "part",
            "positive": "no",
            "missing": "indicator",
            "missing_sensitive": "unknown",
            "max_levels": 9,
            "scale": "none",
            "seed": 5,
            "features": ["age", "planet"],
            "keep_sensitive": True,
        }
        == used
    )
    assert document["statistics"]["unknown_group"] == 1
    assert list(document["statistics"]["label_counts"]) == ["yes", "no"]


def test_many_labels_and_no_edges(run: Run, own_tables: Tables) -> None:
    """What is not defined is a dash, what has no room is left out, and brackets are no markup."""
    people = own_tables["nodes"].read_text().splitlines()
    marks = [f"{line},[mark {i // 3 % 6}]" for i, line in enumerate(people[1:])]
    own_tables["nodes"].write_text("\n".join([people[0] + ",mark", *marks]))
    own_tables["edges"].write_text("one,other")
    result = run(*audit_tables(own_tables, label="mark"), "--drop", "planet")
    assert result.exit_code == 0, result.output
    assert "P([mark 4])" in result.stdout
    assert "P([mark 5])" not in result.stdout
    assert "40 nodes isolated" in result.stdout
    (edges,) = (line.split() for line in result.stdout.splitlines() if "H_f" in line)
    assert edges[-3:] == ["-", "-", "-"]
    assert result.stderr == "Warning: --edges has no rows: the graph has no edges\n"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"nodes": "nowhere.csv"}, "--nodes: there is no file 'nowhere.csv'"),
        ({"label": "hird"}, "--nodes has no column 'hird': did you mean 'hired'?"),
        ({"sensitive": "hired"}, "--label and --sensitive must be different columns (both are 'hired')"),
        ({"max-levels": "1"}, "--max-levels must be at least 2 (got 1)"),
        ({"text-encoding": "klingon"}, "--text-encoding must be an encoding that Python knows (got 'klingon')"),
        ({"text-encoding": "hex"}, "--text-encoding must be an encoding that Python knows (got 'hex')"),
        ({"scale": "published"}, "--scale must be one of 'minmax', 'standard', 'none' (got 'published')"),
    ],
)
def test_wrong_tables(run: Run, own_tables: Tables, changes: dict[str, str], line: str) -> None:
    result = run(*audit_tables(own_tables, **changes))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {line}")
    assert result.stderr.count("\n") == 1


def test_unknown_benchmark(run: Run) -> None:
    result = run("audit", "nodes.csv", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        f"Error: there is no data set 'nodes.csv': choose one of {', '.join(names())}, "
        "a .mat file of Facebook100, or own tables with --nodes and --edges\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a benchmark, or give own tables (--nodes, --label, --sensitive, --edges is missing)"),
        (["--nodes", "a.csv", "--label", "y"], "(--sensitive, --edges is missing)"),
        (["german", "--label", "y", "--feature", "x"], "--label, --feature cannot be used with the benchmark 'german'"),
        (["german", "--scale", "big"], "'big' is not one of 'minmax'"),
        (["german", "credit"], "unexpected extra argument"),
    ],
)
def test_usage_errors(run: Run, arguments: list[str], message: str) -> None:
    result = run("audit", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_choices_are_those_of_the_library() -> None:
    options = {option.name: get_args(get_args(option.annotation)[0])[0] for option in GraphOptions.parameters()}
    assert get_args(options["scale"]) == get_args(registry.Scale)
    assert options["missing"] == TableOptions.model_fields["missing"].annotation


def test_options_are_those_of_the_library() -> None:
    help = {option.name: get_args(option.annotation)[1].help for option in GraphOptions.parameters()}
    of_tables = TableOptions.model_fields.keys() & help.keys()
    assert len(of_tables) == 22
    assert all(str(TableOptions.model_fields[name].description) in help[name] for name in of_tables)


def test_defaults_for_what_was_not_said(own_tables: Tables) -> None:
    """A fitted model knows its label, its groups and its encoding; the user only names the tables."""
    known = from_tables(**own_tables, id="name", label="hired", sensitive="sex").provenance["encoding"]
    graph = GraphOptions(**own_tables, id="name").load(encoding=known, label="hired", sensitive="sex")
    assert graph.provenance["encoding"] == known
    assert torch.equal(graph.test_mask, torch.ones(40, dtype=torch.bool))
    assert GraphOptions(name="german", scale="none").load(scale="standard").provenance["options"]["scale"] == "none"
