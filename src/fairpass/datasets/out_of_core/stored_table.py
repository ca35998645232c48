"""A table on disk whose columns are read one at a time."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fairpass.datasets.graph import Column
from fairpass.datasets.single_values import odd_value
from fairpass.datasets.table_files import Table, read_parquet
from fairpass.datasets.text_tables import TextColumns, with_types

_KEPT = 2  # columns in memory: the label and the sensitive attribute are read several times


@dataclass(frozen=True, kw_only=True)
class StoredTable(Table):
    """A table in a Parquet file; `frame` has its names, but no rows.

    The columns of a text file are stored as text, and get their types when they are read.
    """

    path: Path
    rows: int
    text_columns: TextColumns = None
    _read: dict[str, Column] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def load(cls, name: str, about: dict[str, Any], text_columns: TextColumns = None) -> "StoredTable":
        """Return a table that `import_table` has imported, given its result."""
        from pyarrow import parquet

        path = Path(about["path"])
        with parquet.ParquetFile(path) as file:
            rows, header = file.metadata.num_rows, file.schema_arrow.empty_table().to_pandas()
        header.columns = pd.Index([str(column) for column in header.columns], dtype="str")
        others = {key: value for key, value in about.items() if key != "path"}
        return cls(name=name, frame=header, path=path, rows=rows, text_columns=text_columns, **others)

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, column: str) -> Column:
        if column not in self._read:
            self.check_values(column)
            while len(self._read) >= _KEPT:
                self._read.pop(next(iter(self._read)))
            self._read[column] = self._column(column)
        return self._read[column]

    def odd_value(self, column: str) -> str:
        """Look at the first rows that have a value: all values of a Parquet file's column are of one type."""
        from pyarrow import parquet

        def read(path: Path) -> str:
            start = 0
            with parquet.ParquetFile(path) as file:
                for batch in file.iter_batches(columns=[column]):
                    values = batch.to_pandas(ignore_metadata=True)[column]
                    if values.notna().any():
                        return odd_value(values.set_axis(range(start, start + len(values))))
                    start += len(values)
            return ""

        return read_parquet(self.path, self.name, read) if self.typed else ""

    def forget(self) -> None:
        """Free the memory of the columns that were read."""
        self._read.clear()

    def _column(self, column: str) -> Column:
        def read(path: Path) -> pd.DataFrame:
            return pd.read_parquet(path, engine="pyarrow", columns=[column]).reset_index(drop=True)

        frame = read_parquet(self.path, self.name, read)
        if not self.typed:
            frame = with_types(frame, self.text_columns, comma=self.decimal == ",")
        return frame[column]
