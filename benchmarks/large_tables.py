"""Partition 10 million people with 20 columns and 100 million edges: `python -m benchmarks.large_tables DIRECTORY`.

It makes the tables, which takes 2 GB of disk and the parts 3 GB more, and prints time and largest resident memory.
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path

ROLES = ["--id", "person", "--label", "hired", "--sensitive", "sex"]


def write_tables(folder: Path, people: int, friends: int) -> tuple[Path, Path]:
    """Write a table of nodes, and one of edges with more edges at the first nodes than at the last."""
    import duckdb

    nodes, edges = folder / "nodes.parquet", folder / "edges.parquet"
    measures = ", ".join(f"round(random() * 100, 3) AS number_{k}" for k in range(12))
    counts = ", ".join(f"CAST(random() * 90 AS INTEGER) AS count_{k}" for k in range(5))
    id_of = "(CAST(floor({} * {}) AS BIGINT) * 7919) % 100000007"  # a prime: ids differ, and are in no order
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '3GB'")
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT (i * 7919) % 100000007 AS person, {measures}, {counts}, "
            "['north', 'south', 'east', 'west'][1 + CAST(floor(random() * 4) AS INTEGER)] AS region, "
            "CASE WHEN random() < 0.5 THEN 'female' ELSE 'male' END AS sex, "
            "CASE WHEN random() < 0.4 THEN 'yes' ELSE 'no' END AS hired "
            f"FROM range({people}) t(i)) TO '{nodes}'"
        )
        connection.execute(
            f"COPY (SELECT {id_of.format(people, 'pow(random(), 1.5)')} AS source, "
            f"{id_of.format(people, 'random()')} AS target FROM range({friends})) TO '{edges}'"
        )
    return nodes, edges


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_tables", description=__doc__)
    parser.add_argument("directory", type=Path, help="an empty directory for tables and parts")
    parser.add_argument("--people", type=int, default=10_000_000)
    parser.add_argument("--friends", type=int, default=100_000_000)
    parser.add_argument("--memory", default="4GB")
    chosen = parser.parse_args()
    chosen.directory.mkdir(parents=True, exist_ok=True)
    tables = write_tables(chosen.directory, chosen.people, chosen.friends)
    out = ["--parts", "4", "--memory", chosen.memory, "--out", str(chosen.directory / "parts")]
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "fairpass", "partition", *map(str, tables), *ROLES, *out], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.perf_counter() - start:.0f} s, of the processor {used.ru_utime + used.ru_stime:.0f} s")
    print(f"largest resident memory {used.ru_maxrss * 1024 / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
