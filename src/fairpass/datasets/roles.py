"""Which column of a table of nodes plays which part."""

from collections.abc import Mapping, Sequence

from fairpass.datasets.reading import Table
from fairpass.errors import DataError

# Columns that would be taken for a feature by mistake.
_ID_NAMES = {"id", "node_id"}


def columns_of(roles: Mapping[str, str | Sequence[str] | None]) -> dict[str, list[str]]:
    """Return the columns of each role as a list: none, one or, if they are sensitive, several."""
    return {role: [columns] if isinstance(columns, str) else list(columns or ()) for role, columns in roles.items()}


def check_roles(
    roles: Mapping[str, Sequence[str]], features: Sequence[str] | None, drop: Sequence[str], keep_sensitive: bool
) -> None:
    """Refuse a column with two roles, before any table is read."""
    role_of: dict[str, str] = {}
    if not roles["sensitive"]:
        raise DataError("'sensitive' must name at least one column (got none)")
    for role, columns in roles.items():
        for column in columns:
            if role_of.get(column) == role:
                raise DataError(f"'{role}' must not name a column twice (got {list(columns)})")
            if column in role_of:
                raise DataError(f"'{role_of[column]}' and '{role}' must be different columns (both are {column!r})")
            role_of[column] = role
    for name, listed in {"features": features, "drop": drop}.items():
        if isinstance(listed, str):
            raise DataError(f"'{name}' must be a list of columns (got the string {listed!r})")
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
    roles: Mapping[str, Sequence[str]],
    features: Sequence[str] | None,
    drop: Sequence[str],
    sensitive_feature: str | None,
) -> list[str]:
    """Return what shall be features: columns, and the group as `sensitive_feature` if that has a name."""
    others = {column for columns in roles.values() for column in columns}
    candidates = nodes.columns if features is None else list(features)
    for column in [*candidates, *drop]:
        nodes[column]  # an error if it is not there
    if sensitive_feature is not None:
        others.discard(sensitive_feature)
        candidates += [sensitive_feature] if sensitive_feature not in candidates else []
    return [column for column in candidates if column not in others.union(drop)]
