"""A plan for graphs that were not measured: the fitted costs and simulated halos, with assumptions about machines."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.result import Cell, Result, Table

STORED = Path(__file__).parent / "results"
DEGREE, EPOCHS = 20, 300
HALO_BYTES = 40  # counted: a halo node's number and its place, and a few columns
GRAPHS = ((10**8, 4), (10**8, 16), (10**9, 32), (10**9, 64))  # nodes and machines


class Machines(NamedTuple):
    """What was not measured."""

    memory: float = 256.0  # GB
    thread_speed_up: float = 8.0  # of a process with all threads of a machine, against one thread
    bytes_per_second: float = 1.25e9  # 10 Gbit/s each way
    hop: float = 50e-6  # seconds for a small message from one machine to another
    dollars_per_hour: float = 2.0


class Costs(NamedTuple):
    """What was measured, for one thread: seconds, and bytes of memory."""

    epoch: float
    node: float
    edge: float
    node_bytes: float
    edge_bytes: float
    messages: Mapping[str, float]
    out_of_cache: float = 1.0  # how much longer a node of ten million takes than one of a hundred thousand


def run(quick: bool) -> Result:
    costs, machines = stored_costs(), Machines()
    rows = [
        planned(nodes, count, order, halo, costs, machines)
        for nodes, count in GRAPHS
        for order, halo in stored_halos(count).items()
    ]
    title = f"Plan: average degree {DEGREE}, 20 features, GMMD with encoder mlp, {EPOCHS} epochs"
    return Result("scale_plan", [Table(title, rows)])


def planned(nodes: int, machines: int, order: str, halo: float, costs: Costs, each: Machines) -> dict[str, Cell]:
    """Return what one epoch and a fit take, if every own node comes with `halo` nodes of other processes."""
    own, edges = nodes / machines, DEGREE * nodes / machines
    computing = costs.epoch + costs.out_of_cache * (costs.node * own + costs.edge * edges) / each.thread_speed_up
    # Five exchanges of a column in four bytes, and the validation scores, a quarter of all nodes, from all to all.
    received = 5 * 4 * halo * own + 4 * nodes / 4 * (machines - 1) / machines
    # A sum goes twice around a ring of machines, gathered rows go around once.
    hops = (machines - 1) * (2 * costs.messages["reduce"] + costs.messages["gather"]) + costs.messages["exchange"]
    network, waiting = received / each.bytes_per_second, hops * each.hop
    seconds = computing + network + waiting
    hours = EPOCHS * seconds / 3600
    return {
        "nodes": f"{nodes:.0e}",
        "machines": machines,
        "order of nodes": order,
        "halo / own nodes": halo,
        "memory of each, GB": (own * (costs.node_bytes + halo * HALO_BYTES) + costs.edge_bytes * edges) / 1e9,
        "received by each, GB": received / 1e9,
        "computing, s": computing,
        "network, s": network,
        "waiting, s": waiting,
        "epoch, s": seconds,
        "fit, h": hours,
        "fit, $": hours * machines * each.dollars_per_hour,
    }


def _tables(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((STORED / f"{name}.json").read_text())["tables"]
    return found


def stored_costs() -> Costs:
    """Return the costs that `python -m benchmarks distributed growth` measured."""
    tables = _tables("distributed")
    memory, model = tables[3]["rows"][0], {row["term"].partition(",")[0]: row["cost"] for row in tables[4]["rows"]}
    messages = tables[2]["rows"][0]
    return Costs(
        epoch=model["epochs"] / 1e3,
        node=model["nodes"] / 1e9,
        edge=model["edges"] / 1e9,
        node_bytes=memory["bytes / node"],
        edge_bytes=memory["bytes / edge"],
        messages={kind: messages[f"{kind} messages"] for kind in ("reduce", "exchange", "gather")},
        out_of_cache=_tables("growth")[0]["rows"][-1]["per node, ratio"],
    )


def stored_halos(machines: int) -> dict[str, float]:
    """Return the simulated halos for each own node, of degrees with exponent 2.5."""
    rows = [row for row in _tables("halo_sizes")[1]["rows"] if row["parts"] == machines and row["exponent"] == 2.5]
    wanted = {None: "random", 0.9: "communities"}
    return {wanted[row["edges inside"]]: row["halo / own nodes"] for row in rows if row["edges inside"] in wanted}
