"""Which column of a table of nodes plays which part."""

from collections.abc import Mapping, Sequence

from fairpass.datasets.reading import Table
from fairpass.errors import DataError

# Columns that would be taken for a feature by mistake.
_ID_NAMES = {"id", "node_id"}


def check_roles(
    roles: Mapping[str, str | None],
    features: Sequence[str] | None,
    drop: Sequence[str],
    keep_sensitive: bool,
) -> None:
    """Refuse a column with two roles, before any table is read."""
    role_of: dict[str, str] = {}
    for role, column in roles.items():
        if column in role_of:
            raise DataError(f"'{role_of[column]}' and '{role}' must be different columns (both are {column!r})")
        if column is not None:
            role_of[column] = role
    for name, columns in {"features": features, "drop": drop}.items():
        if isinstance(columns, str):
            raise DataError(f"'{name}' must be a list of columns (got the string {columns!r})")
    for column in features or ():
        other = role_of.get(column)
        if other == "sensitive" and not keep_sensitive:
            raise DataError(f"'features' may hold the sensitive column {column!r} only with keep_sensitive=True")
        if other not in {None, "sensitive"}:
            raise DataError(f"'features' must not hold the column given as '{other}' ({column!r})")
    if len(set(features or ())) < len(features or ()):
        raise DataError(f"'features' must not hold a column twice (got {list(features or ())})")


def check_no_id_column(nodes: Table, mentioned: Sequence[str | None]) -> None:
    """Refuse a column that looks like ids and that no argument mentions."""
    for column in nodes.columns:
        if column.lower() in _ID_NAMES and column not in mentioned:
            raise DataError(
                f"'nodes' has a column {column!r}: give id={column!r} if that is what edges refer to, "
                f"or drop=[{column!r}] if they refer to row numbers"
            )


def feature_columns(
    nodes: Table,
    roles: Mapping[str, str | None],
    features: Sequence[str] | None,
    drop: Sequence[str],
    keep_sensitive: bool,
) -> list[str]:
    """Return the columns that shall be features."""
    others = set(roles.values())
    candidates = nodes.columns if features is None else list(features)
    if keep_sensitive:
        sensitive = str(roles["sensitive"])
        others.remove(sensitive)
        candidates += [sensitive] if sensitive not in candidates else []
    for column in [*candidates, *drop]:
        nodes[column]  # an error if it is not there
    return [column for column in candidates if column not in others.union(drop)]
