"""The comparison that holds: many splits, every method with the same budget, each against its own control."""

from fairpass.experiments.benchmark.page import benchmark_section, write_benchmark
from fairpass.experiments.benchmark.protocol import Entry, Protocol, entries
from fairpass.experiments.benchmark.results import BenchmarkResults, run_benchmark

__all__ = ["BenchmarkResults", "Entry", "Protocol", "benchmark_section", "entries", "run_benchmark", "write_benchmark"]
