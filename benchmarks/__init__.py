"""Benchmarks: competitors measured side by side in one run, and reported as ratios.

`python -m benchmarks` runs all of them, `python -m benchmarks kernels --quick` one of them, in less time.
Each is a module with a function `run(quick: bool) -> Result`, named in :data:`benchmarks.__main__.NAMES`.
"""
