"""Graphs to learn from: the benchmarks, a user's own tables, and synthetic ones."""

from fairpass.datasets.findings import Finding, find_bias
from fairpass.datasets.joining import join
from fairpass.datasets.joining_tables import join_tables
from fairpass.datasets.registry import fetch, graph_spec, is_available, load, names
from fairpass.datasets.statistics import GraphStatistics, describe
from fairpass.datasets.synthetic import synthetic
from fairpass.datasets.tables import from_tables

__all__ = [
    "Finding",
    "GraphStatistics",
    "describe",
    "fetch",
    "find_bias",
    "from_tables",
    "graph_spec",
    "is_available",
    "join",
    "join_tables",
    "load",
    "names",
    "synthetic",
]
