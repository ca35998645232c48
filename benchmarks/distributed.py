"""A graph in parts: overhead of one process, weak scaling to two, what crosses the wire, memory, and a cost model."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cost_model import fit_costs
from benchmarks.halo_sizes import power_law_edges
from benchmarks.result import Cell, Result, Table
from benchmarks.timing import ONE_THREAD
from fairpass.datasets.graph import GraphArrays
from fairpass.datasets.parts import write_parts
from fairpass.methods import GMMD

DEGREE, FEATURES, EXPONENT, WIDTH, CLASSES = 20, 20, 2.5, 16, 2
ENCODERS = ("mlp", "gcn")
ORDERS = {"random": 0.0, "communities": 0.9}  # share of edges inside communities of consecutive nodes
# Nodes of each process and average degree, for the model; with few nodes an epoch is all messages.
SIZES = ((2_000, 20), (50_000, 5), (50_000, 40), (200_000, 5), (200_000, 20))
UNITS = {
    "epochs": ("ms", 1e3),
    "nodes": ("ns", 1e9),
    "edges": ("ns", 1e9),
    "messages": ("us", 1e6),
    "bytes": ("ns", 1e9),
}

Measured = dict[str, Any]


class Case(NamedTuple):
    """A fit: the nodes of each process, their average degree, the share of edges inside communities."""

    nodes: int
    degree: float
    inside: float
    processes: int
    encoder: str

    def quantities(self, found: Measured) -> dict[str, float]:
        """Return what the cost model counts: of an epoch, and of one process."""
        sent = {name: float(sum(found[name].values())) for name in ("messages", "bytes")}
        return {"epochs": 1.0, "nodes": float(found["nodes"]), "edges": float(found["edges"]), **sent}


MEMORY = ((50_000, 20), (50_000, 160), (200_000, 20), (400_000, 20))


def run(quick: bool) -> Result:
    nodes, epochs, rounds = (20_000, 6, 1) if quick else (200_000, 9, 1)
    scaling = [Case(nodes, DEGREE, inside, 2, encoder) for inside in ORDERS.values() for encoder in ENCODERS]
    sizes = [Case(*size, 0.0, 2, "mlp") for size in SIZES[: 2 if quick else None]]
    pairs = list(dict.fromkeys([*scaling, *sizes]))
    alone = [case._replace(processes=1) for case in pairs]
    before = os.getloadavg()[0]  # others may be using the machine
    with tempfile.TemporaryDirectory(prefix="fairpass-") as folder:
        parts = {case: f"parts:{case.encoder}:{written(case, Path(folder))}" for case in (*alone, *pairs)}
        fits = [parts[case] for case in alone]
        # In turns, so that what disturbs one disturbs all; a case and its rival twice as often.
        rivals = [fit for fit in fits[: len(ENCODERS)] for fit in (fit.replace("parts:", "plain:", 1), fit)] * 2
        taken: dict[str, list[Measured]] = {}
        for _ in range(rounds):
            for processes, all_fits in ((1, fits + rivals), (2, [parts[case] for case in pairs])):
                for fit, one in zip(all_fits, measured(processes, epochs, all_fits), strict=True):
                    taken.setdefault(fit, []).append(one)
        # A process of its own for each: its peak memory is this case's alone.
        wanted = [Case(*size, 0.0, 1, "mlp") for size in (SIZES[:2] if quick else MEMORY)]
        memory = [measured(1, 4, [f"parts:mlp:{written(case, Path(folder))}"])[0] for case in wanted]
    load = f"load average of the machine {before:.1f} to {os.getloadavg()[0]:.1f}"
    joint = {fit: together(runs) for fit, runs in taken.items()}
    found = {case: joint[fit] for case, fit in parts.items()}
    plain = {case.encoder: (joint[parts[case].replace("parts:", "plain:", 1)], found[case]) for case in alone[:2]}
    fitted = {case: found[case] for two in sizes for case in (two._replace(processes=1), two)}
    tables = [
        Table("One process in parts against `fit` of the same graph, one thread, an epoch", overhead_rows(plain)),
        Table(
            f"Weak scaling from one process to two, one thread each, an epoch ({load})", scaling_rows(found, scaling)
        ),
        Table("What one of two processes sends in an epoch", traffic_rows(found, scaling)),
        Table("Peak memory of a process that has the whole graph", memory_rows(memory)),
        *model_tables(fitted),
    ]
    return Result("distributed", tables)


def least(run: Measured) -> float:
    """Return the shortest epoch: of the wall's time or, where others use the machine, of the processor's."""
    return float(min(run["processor" if ONE_THREAD in os.environ else "seconds"]))


def together(runs: Sequence[Measured]) -> Measured:
    """Return one run that has the epochs of several."""
    return runs[0] | {name: [each for run in runs for each in run[name]] for name in ("seconds", "processor")}


def written(case: Case, folder: Path) -> Path:
    """Write a power-law graph in parts, unless it is there; return its directory."""
    directory = folder / "-".join(map(str, case[:-1]))
    if directory.exists():
        return directory
    nodes = case.nodes * case.processes
    generator = np.random.default_rng(0)
    low, high = power_law_edges(nodes, case.degree, EXPONENT, case.inside)
    x = generator.standard_normal((nodes, FEATURES), dtype=np.float32)
    noise, split = generator.standard_normal((2, nodes)), generator.random(nodes)
    sens = (x[:, 1] + noise[0] > 0.5).astype(np.int64)
    arrays = GraphArrays(
        x=x,
        edge_index=np.stack([np.concatenate([low, high]), np.concatenate([high, low])]).astype(np.int64),
        y=(x[:, 0] + 0.5 * sens + noise[1] > 0).astype(np.int64),
        sens=sens,
        train_mask=split < 0.5,
        val_mask=(split >= 0.5) & (split < 0.75),
        test_mask=split >= 0.75,
        feature_names=[f"feature_{number}" for number in range(FEATURES)],
        sens_column=None,
        label_names=["0", "1"],
        group_names=["0", "1"],
        provenance={"source": "synthetic"},
    )
    write_parts(arrays, directory, case.processes)
    return directory


def measured(processes: int, epochs: int, fits: Sequence[str]) -> list[Measured]:
    """Run the processes; return what the first of them measured of each fit."""
    agent = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    loopback = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    output = subprocess.run(
        [sys.executable, *agent, "-m", "benchmarks.part_worker", str(epochs), *fits],
        env={**os.environ, **loopback, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    found: list[Measured] = json.loads(output.strip().splitlines()[-1])
    return found


def overhead_rows(found: Mapping[str, tuple[Measured, Measured]]) -> list[dict[str, Cell]]:
    return [
        {
            "encoder": encoder,
            "nodes": ours["nodes"],
            "epochs": len(ours["seconds"]),
            "plain, least, ms": 1000 * least(plain),
            "in parts, least, ms": 1000 * least(ours),
            "ratio": least(ours) / least(plain),
            "of medians, wall": median(ours["seconds"]) / median(plain["seconds"]),
            "of medians, processor": median(ours["processor"]) / median(plain["processor"]),
        }
        for encoder, (plain, ours) in found.items()
    ]


def scaling_rows(found: Mapping[Case, Measured], cases: Sequence[Case]) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for case in cases:
        one, two = found[case._replace(processes=1)], found[case]
        rows.append(
            {
                "order of nodes": order(case),
                "encoder": case.encoder,
                "nodes of a process": case.nodes,
                "halo / own nodes": two["halo"] / two["nodes"],
                "one, least, ms": 1000 * least(one),
                "two, least, ms": 1000 * least(two),
                "ratio": least(two) / least(one),
                "of medians, wall": median(two["seconds"]) / median(one["seconds"]),
                "of medians, processor": median(two["processor"]) / median(one["processor"]),
            }
        )
    return rows


def order(case: Case) -> str:
    return next(name for name, inside in ORDERS.items() if inside == case.inside)


def least_bytes(case: Case, halo: int, sums: float) -> float:
    """Return what a process must send at least, if others need `halo` of its rows.

    The columns of these rows once forth and once back for each layer of smoothing and of the encoder, on the narrower
    side of its weights, and the sums over all nodes.
    """
    columns = GMMD().K * (CLASSES - 1)
    if case.encoder == "gcn":
        columns += min(FEATURES, WIDTH) + min(WIDTH, CLASSES)
    return 2 * 4 * columns * halo + sums


def traffic_rows(found: Mapping[Case, Measured], cases: Sequence[Case]) -> list[dict[str, Cell]]:
    rows: list[dict[str, Cell]] = []
    for case in cases:
        run = found[case]
        sent, total = run["bytes"], sum(run["bytes"].values())
        least = least_bytes(case, run["rows sent"], sent["reduce"])
        rows.append(
            {
                "order of nodes": order(case),
                "encoder": case.encoder,
                "halos, bytes / node": sent["exchange"] / run["nodes"],
                "validation, bytes / node": sent["gather"] / run["nodes"],
                "sums, bytes": sent["reduce"],
                "all, bytes / node": total / run["nodes"],
                "least, bytes / node": least / run["nodes"],
                "ratio": total / least,
                "messages": sum(run["messages"].values()),
                **{f"{kind} messages": run["messages"][kind] for kind in ("reduce", "exchange", "gather")},
            }
        )
    return rows


def memory_rows(runs: Sequence[Measured]) -> list[dict[str, Cell]]:
    """Return the peaks, and what a node and an edge take of them beside the libraries."""
    design = np.array([[run["nodes"], run["edges"]] for run in runs], float)
    used = np.array([run["peak"] - run["base"] for run in runs])
    node, edge = np.linalg.lstsq(design, used, rcond=None)[0]
    return [
        {
            "nodes": run["nodes"],
            "edges": run["edges"],
            "libraries, GB": run["base"],
            "peak, GB": run["peak"],
            "files of the part, GB": run["files"],
            "bytes / node": 1e9 * node,
            "bytes / edge": 1e9 * edge,
            "fitted, GB": run["base"] + node * run["nodes"] + edge * run["edges"],
        }
        for run in runs
    ]


def model_tables(found: Mapping[Case, Measured]) -> list[Table]:
    counted = [case.quantities(run) for case, run in found.items()]
    model = fit_costs(counted, [least(run) for run in found.values()])
    coefficients: list[dict[str, Cell]] = [
        {"term": f"{name}, {unit} each", "cost": scale * model.seconds[name]} for name, (unit, scale) in UNITS.items()
    ]
    rows: list[dict[str, Cell]] = [
        {
            "processes": case.processes,
            **{name: quantities[name] for name in UNITS if name != "epochs"},
            "measured, ms": 1000 * least(run),
            "model, ms": 1000 * model(quantities),
            "error, %": 100 * (model(quantities) / least(run) - 1),
        }
        for (case, run), quantities in zip(found.items(), counted, strict=True)
    ]
    return [Table("The cost model of an epoch", coefficients), Table("The cost model against measurements", rows)]
