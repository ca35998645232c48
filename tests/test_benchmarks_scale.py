"""The benchmarks of graphs in parts: halos that are known, costs that are recovered."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from benchmarks.cost_model import fit_costs
from benchmarks.distributed import Case, least_bytes
from benchmarks.halo_sizes import Edges, degrees_of, halo_sizes, power_law_edges
from benchmarks.scale_plan import Costs, Machines, planned

from fairpass.datasets.parts import balanced_offsets, local_columns


def as_edges(pairs: list[tuple[int, int]]) -> Edges:
    low, high = np.asarray(pairs, np.int32).T
    return low, high


def test_parts_of_a_ring_have_two_halo_nodes() -> None:
    ring = as_edges([(i, (i + 1) % 60) for i in range(60)])
    assert halo_sizes(ring, (0, 20, 40, 60)).tolist() == [2, 2, 2]


def test_parts_of_a_complete_graph_have_all_others_as_halo() -> None:
    complete = as_edges([(i, j) for i in range(12) for j in range(i)])
    assert halo_sizes(complete, (0, 2, 7, 12)).tolist() == [10, 7, 7]


def test_halos_are_those_of_the_partitioner() -> None:
    low, high = edges = power_law_edges(600, 8, 2.3, 0.5, community=50)
    offsets = balanced_offsets(degrees_of(edges, 600), 5)
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    expected = []
    for first, last in pairwise(offsets):
        own = (target >= first) & (target < last)
        expected.append(len(local_columns(source[own].astype(np.int64), first, last)[1]))
    assert halo_sizes(edges, offsets).tolist() == expected


def test_edges_are_simple_and_as_many_as_asked_for() -> None:
    low, high = edges = power_law_edges(20_000, 10, 2.5)
    assert (low < high).all()
    assert len(np.unique(low.astype(np.int64) * 20_000 + high)) == len(low)
    degrees = degrees_of(edges, 20_000)
    assert degrees.mean() == pytest.approx(10, rel=0.05)
    assert degrees.max() > 10 * np.median(degrees)  # hubs


def test_edges_inside_communities_stay_there() -> None:
    low, high = power_law_edges(20_000, 10, 2.5, 1.0, community=500)
    assert (low // 500 == high // 500).all()
    low, high = power_law_edges(20_000, 4, 2.9, 0.5, community=2000)
    assert np.mean(low // 2000 == high // 2000) == pytest.approx(0.5 + 0.5 / 10, abs=0.03)


def test_the_cost_model_recovers_known_costs() -> None:
    generator = np.random.default_rng(0)
    true = {"epochs": 3e-3, "nodes": 2e-7, "edges": 5e-9, "messages": 3e-4, "bytes": 1e-9}
    sizes = {"epochs": 1, "nodes": 1e5, "edges": 1e7, "messages": 50, "bytes": 1e7}
    rows = [
        {name: size * (1 if name == "epochs" else generator.random()) for name, size in sizes.items()}
        for _ in range(12)
    ]
    model = fit_costs(rows, [sum(true[name] * row[name] for name in row) for row in rows])
    assert model.seconds == pytest.approx(true, rel=1e-6)
    assert model(sizes) == pytest.approx(sum(true[name] * sizes[name] for name in sizes))


def test_costs_are_never_negative() -> None:
    rows = [{"nodes": 1.0, "edges": 2.0}, {"nodes": 2.0, "edges": 1.0}, {"nodes": 3.0, "edges": 3.0}]
    model = fit_costs(rows, [2.0, 0.5, 2.0])
    assert min(model.seconds.values()) >= 0


def test_at_least_each_layer_sends_its_columns_forth_and_back() -> None:
    assert least_bytes(Case(10, 2, 0.0, 2, "mlp"), 100, 7) == 2 * 2 * 4 * 100 + 7
    assert least_bytes(Case(10, 2, 0.0, 2, "gcn"), 100, 0) == 2 * (2 + 16 + 2) * 4 * 100


def test_a_plan_is_computing_and_network_and_waiting() -> None:
    messages = {"reduce": 40.0, "exchange": 5.0, "gather": 1.0}
    costs = Costs(epoch=0.01, node=8e-7, edge=8e-9, node_bytes=100, edge_bytes=10, messages=messages, out_of_cache=2)
    each = Machines(thread_speed_up=8, bytes_per_second=1e9, hop=1e-4, dollars_per_hour=3.6)
    row: dict[str, Any] = {**planned(4_000_000, 4, "random", 0.5, costs, each)}
    assert row["computing, s"] == pytest.approx(0.01 + 2 * (0.8 + 0.16) / 8)
    assert row["network, s"] == pytest.approx((5 * 4 * 0.5e6 + 4 * 0.75e6) / 1e9)
    assert row["waiting, s"] == pytest.approx((3 * (80 + 1) + 5) * 1e-4)
    assert row["fit, $"] == pytest.approx(300 * row["epoch, s"] * 4 * 3.6 / 3600)
    assert row["memory of each, GB"] == pytest.approx((1e6 * (100 + 0.5 * 40) + 2e7 * 10) / 1e9)
