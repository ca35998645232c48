"""From a table of edges to pairs of row numbers, each pair once: the part of the work that does not fit in memory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairpass.datasets.edges import LEAST_WEIGHT, WeightProblem, unused_columns, weight_error
from fairpass.datasets.graph import AnyInts, missing_ends_error, missing_text, unknown_ends_error
from fairpass.datasets.options import TableOptions
from fairpass.datasets.out_of_core.engine import Engine, name, parquet
from fairpass.datasets.out_of_core.stored_table import StoredTable
from fairpass.datasets.table_files import Table

_SAMPLE = 1_000
_LEADING_ZERO = "^ *[+-]?0[0-9xX]"  # such texts are not numbers
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_NUMBERS = (*_WHOLE, *(f"U{kind}" for kind in _WHOLE), "FLOAT", "DOUBLE", "DECIMAL")


@dataclass(frozen=True)
class EdgeTable:
    """A stored table of edges, the nodes it refers to, and the expressions of SQL that find them."""

    engine: Engine
    edges: StoredTable
    nodes: StoredTable
    ends: tuple[str, str]  # the columns with them
    options: TableOptions

    @property
    def _numbered(self) -> str:
        """The query for the row numbers of both ends of each edge, NULL where an end is not a node."""
        weight = self.options.edge_weight
        also = "" if weight is None else f", {self._weight(weight)} AS weight"
        source, target = self.ends
        if self.options.id is None:
            rows = ", ".join(f"{self._row(end)} AS {as_}" for end, as_ in ((source, "source"), (target, "target")))
            return f"SELECT {rows}{also} FROM {parquet(self.edges.path)} e"
        return (
            f"SELECT s.number AS source, t.number AS target{also} FROM {parquet(self.edges.path)} e "
            f"LEFT JOIN ({self._ids}) s ON {self._end(source)} = s.id "
            f"LEFT JOIN ({self._ids}) t ON {self._end(target)} = t.id"
        )

    @property
    def _number(self) -> str:
        """The type of a row number."""
        return "INTEGER" if len(self.nodes) < 2**31 else "BIGINT"

    @property
    def _ids(self) -> str:
        column = self.options.id or ""
        key = self._text(self.nodes, column, "n") if self._as_texts else f"n.{name(column)}"
        rows = parquet(self.nodes.path, numbered=True)
        return f"SELECT CAST(file_row_number AS {self._number}) AS number, {key} AS id FROM {rows} n"

    @property
    def _as_texts(self) -> bool:
        return self.nodes.typed != self.edges.typed  # in a CSV file, ids are text

    def _end(self, column: str) -> str:
        """The id that an end names; NULL if it is of another type than those of the nodes."""
        if self._as_texts:
            return self._text(self.edges, column, "e")
        own, other = self._kind(self.nodes, self.options.id or ""), self._kind(self.edges, column)
        return f"e.{name(column)}" if own == other else "NULL"

    def _row(self, column: str) -> str:
        """The row number that an end without ids names."""
        kind = self._kind(self.edges, column)
        number = f"e.{name(column)}"
        if kind == "text" and not self.edges.typed:
            number = f"CASE WHEN NOT regexp_matches({number}, '{_LEADING_ZERO}') THEN TRY_CAST({number} AS DOUBLE) END"
        elif kind != "number":
            return "NULL"
        valid = f"{number} >= 0 AND {number} < {len(self.nodes)} AND {number} = floor({number})"
        return f"CASE WHEN {valid} THEN CAST({number} AS {self._number}) END"

    def _kind(self, table: StoredTable, column: str) -> str:
        """Return "number", "text", or the type of any other column; only columns of the same kind are compared."""
        found = self._type(table, column)
        return "number" if found.startswith(_NUMBERS) else "text" if found == "VARCHAR" else found

    def _type(self, table: StoredTable, column: str) -> str:
        return str(self.engine.row(f"DESCRIBE SELECT {name(column)} FROM {parquet(table.path)}")[1])

    def _text(self, table: StoredTable, column: str, alias: str) -> str:
        """The text that a CSV file would contain: whole numbers have no decimal point."""
        value = f"{alias}.{name(column)}"
        if self._type(table, column) in ("FLOAT", "DOUBLE"):
            whole = f"{value} = floor({value}) AND abs({value}) < 9e18"
            return f"CASE WHEN {whole} THEN CAST(CAST({value} AS BIGINT) AS VARCHAR) ELSE CAST({value} AS VARCHAR) END"
        return f"CAST({value} AS VARCHAR)"

    def _weight(self, column: str) -> str:
        return f"TRY_CAST(e.{name(column)} AS DOUBLE)"

    def ignored_columns(self) -> list[str]:
        """Return the columns of the edges without a role; one that seems to be a weight is refused."""
        used = {*self.ends, self.options.edge_weight}
        others = [name(column) for column in self.edges.columns if column not in used]
        if not others:
            return []
        # Some rows, and two that show whether a column has more than one value.
        table, some = parquet(self.edges.path), ", ".join(others)
        least, largest = (", ".join(f"{which}({column})" for column in others) for which in ("min", "max"))
        query = f"(SELECT {some} FROM {table} LIMIT {_SAMPLE}) UNION ALL SELECT {least} FROM {table}"
        (sample,) = self.engine.batches(f"{query} UNION ALL SELECT {largest} FROM {table}")
        frame = pd.DataFrame(sample).reindex(columns=self.edges.columns)
        return unused_columns(Table("edges", frame, self.edges.origin, typed=self.edges.typed), self.options)

    def write_numbered(self, path: Path) -> dict[str, Any]:
        """Write the edges between nodes as row numbers, after all checks; return counts of edges."""
        if self.options.edge_weight is not None:
            self._check_weights(self.options.edge_weight)
        self.engine.write(self._numbered, path)
        rows, dangling, loops = self.engine.row(
            "SELECT count(*), count(*) FILTER (source IS NULL OR target IS NULL), "
            f"count(*) FILTER (source = target) FROM {parquet(path)}"
        )
        if dangling and self.options.dangling == "error":
            self.check_ends()
        return {"rows": rows, "dangling": dangling, "loops": loops}

    def numbers(self) -> tuple[AnyInts, AnyInts]:
        """Return the rows of both ends of all edges, in any order, -1 where an end is not a node."""
        query = f"SELECT coalesce(source, -1) AS source, coalesce(target, -1) AS target FROM ({self._numbered})"
        source, target = (np.empty(len(self.edges), np.min_scalar_type(-len(self.nodes))) for _ in range(2))
        start = 0
        for batch in self.engine.batches(query):
            rows = slice(start, start := start + len(batch["source"]))
            source[rows], target[rows] = batch["source"], batch["target"]
        return source, target

    def check_ends(self) -> None:
        """Refuse edges whose ends are not both nodes."""
        for end in self.ends:
            self._check_end(end)

    def _check_weights(self, column: str) -> None:
        rows = parquet(self.edges.path, numbered=True)
        given, number = f"e.{name(column)}", self._weight(column)
        wrong: dict[WeightProblem, str] = {
            "missing": f"{given} IS NULL",
            "number": f"{given} IS NOT NULL AND ({number} IS NULL OR isnan({number}))",
            "positive": f"NOT {number} > 0",
            "finite": f"isinf({number})",
            "large": f"{number} > {float(np.finfo(np.float32).max)}",
            "small": f"{number} < {LEAST_WEIGHT} * (SELECT avg({number}) FROM {rows} e)",
        }
        for problem, condition in wrong.items():
            count, first = self.engine.row(f"SELECT count(*), min(file_row_number) FROM {rows} e WHERE {condition}")
            if count:
                query = f"SELECT {name(column)} FROM {rows} e WHERE file_row_number = {first}"
                raise weight_error(column, problem, count, first, self.engine.row(query)[0])

    def _check_end(self, end: str) -> None:
        """Refuse edges that have an end without an id, or with one that no node has."""
        rows = f"{parquet(self.edges.path, numbered=True)} e"
        value = f"e.{name(end)}"
        count, first = self.engine.row(f"SELECT count(*), min(file_row_number) FROM {rows} WHERE {value} IS NULL")
        if count:
            raise missing_ends_error(end, missing_text(count, first))
        if self.options.id is None:
            unknown = f"SELECT {value} AS id, file_row_number AS row FROM {rows} WHERE {self._row(end)} IS NULL"
        else:
            among = f"SELECT 1 FROM ({self._ids}) n WHERE n.id = {self._end(end)}"
            unknown = f"SELECT {value} AS id, file_row_number AS row FROM {rows} WHERE NOT EXISTS ({among})"
        count, distinct, first = self.engine.row(f"SELECT count(*), count(DISTINCT id), min(row) FROM ({unknown})")
        if count:
            examples = self.engine.rows(f"SELECT id, min(row) r FROM ({unknown}) GROUP BY id ORDER BY r LIMIT 6")
            node: Any = None
            if self.options.id is not None:
                key = "CAST(id AS VARCHAR)" if self._as_texts else "id"
                node = self.engine.row(f"SELECT {key} FROM ({self._ids}) WHERE number = 0")[0]
            shown = [str(value) if self._as_texts else value for value, _ in examples]
            raise unknown_ends_error(end, shown, distinct, count, first, node, len(self.nodes))


def write_pairs(engine: Engine, numbered: Path, path: Path, *, weighted: bool) -> dict[str, Any]:
    """Write every pair of nodes with an edge once, the smaller number first, with the sum of its weights."""
    # The exact order of additions is not known: `fsum` makes it matter less.
    weight = ", fsum(weight) AS weight" if weighted else ""
    engine.write(
        "SELECT least(source, target) AS low, greatest(source, target) AS high, "
        f"bool_or(source < target) AND bool_or(source > target) AS both_ways{weight} "
        f"FROM {parquet(numbered)} WHERE source <> target GROUP BY low, high",
        path,
    )
    mean = "fsum(weight) / greatest(count(*), 1)" if weighted else "NULL"
    pairs, both_ways, average = engine.row(f"SELECT count(*), count(*) FILTER (both_ways), {mean} FROM {parquet(path)}")
    # Twelve digits do not depend on the order of additions either.
    rounded = None if average is None else float(f"{average:.12g}") or 1.0
    return {"pairs": pairs, "both_ways": both_ways, "mean_weight": rounded}
