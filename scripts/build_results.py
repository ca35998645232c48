"""Make `docs/results.md` and its figures from the records in `results`, or pack records into that directory.

Run from the repository's root, where fairpass is installed:

    python scripts/build_results.py
    python scripts/build_results.py --pack reproduction/records
"""

import argparse
from pathlib import Path

from fairpass.experiments import ITEMS, write_results_page
from fairpass.experiments.benchmark import BenchmarkResults, Protocol
from fairpass.experiments.benchmark.protocol import SPLITS
from fairpass.experiments.benchmark.tables import summary_table
from fairpass.experiments.settings import DATASETS
from fairpass.files import write_text
from fairpass.runs import RunStore


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=Path, default=Path("results"), help="where the packed records are")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="where results.md is written")
    parser.add_argument("--pack", type=Path, metavar="DIRECTORY", help="first pack the records of this directory")
    parser.add_argument("--pack-benchmark", type=Path, metavar="DIRECTORY", help="first pack the benchmark's records")
    arguments = parser.parse_args()
    if arguments.pack is not None:
        for path, count in pack(arguments.pack, arguments.records).items():
            print(f"{count} records in {path}")
    packed = arguments.records / "benchmark"
    if arguments.pack_benchmark is not None:
        for path, count in pack_benchmark(arguments.pack_benchmark, packed).items():
            print(f"{count} records in {path}")
    benchmark = whole_rounds(RunStore(packed))
    print(write_results_page(RunStore(arguments.records), arguments.docs, benchmark=benchmark))
    summary = summary_table(benchmark)
    if summary is not None:
        print(update(Path("README.md"), summary.to_markdown()))


def update(page: Path, summary: str) -> Path:
    """Put the first rows of the summary between the marks of a page."""
    start, end = "<!-- summary -->\n", "<!-- /summary -->"
    before, _, rest = page.read_text().partition(start)
    _, _, after = rest.partition(end)
    rows = [line for line in summary.splitlines() if line.startswith("|")][:12]
    return write_text(page, before + start + "\n".join(rows) + "\n" + end + after)


def whole_rounds(store: RunStore) -> BenchmarkResults:
    """Return the results of the splits that are complete on every graph, so that all methods have the same ones."""
    made = 0
    while made < SPLITS and not store.missing(Protocol.of(splits=made + 1).specs()):
        made += 1
    return BenchmarkResults(Protocol.of(splits=made), store)


def pack_benchmark(source: Path, target: Path) -> dict[Path, int]:
    """Write the records of the benchmark's whole rounds into one file for each graph; return how many each has."""
    store = RunStore(source)
    keys: dict[str, list[str]] = {}
    for record in whole_rounds(store).records:
        keys.setdefault(record["dataset"], []).append(record["key"])
    return {target / f"{graph}.jsonl": store.pack(found, target / f"{graph}.jsonl") for graph, found in keys.items()}


def pack(source: Path, target: Path) -> dict[Path, int]:
    """Write the records that the experiments use into one file for each data set; return how many each has."""
    store = RunStore(source)
    specs = [spec for item in ITEMS.values() for cell in item.cells() for spec in cell.specs()]
    found = {}
    for dataset in DATASETS:
        path = target / f"{dataset}.jsonl"
        found[path] = store.pack((spec.key for spec in specs if spec.dataset == dataset), path)
    return found


if __name__ == "__main__":
    main()
