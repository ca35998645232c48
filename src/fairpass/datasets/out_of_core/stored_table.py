"""A table on disk whose columns are read one at a time."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from fairpass.datasets.graph import Column
from fairpass.datasets.table_files import Table
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
        self.check(column)
        if column not in self._read:
            while len(self._read) >= _KEPT:
                self._read.pop(next(iter(self._read)))
            self._read[column] = self._column(column)
        return self._read[column]

    def forget(self) -> None:
        """Free the memory of the columns that were read."""
        self._read.clear()

    def _column(self, column: str) -> Column:
        frame = pd.read_parquet(self.path, engine="pyarrow", columns=[column]).reset_index(drop=True)
        if not self.typed:
            frame = with_types(frame, self.text_columns, comma=self.decimal == ",")
        return frame[column]
