"""Databases that are at hand run exported SQL: SQLite always, DuckDB where it is installed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Floats, Ints
from ..errors import InputError, MissingExtraError
from .replicas import Replica


@dataclass(frozen=True, eq=False)
class SqlReplica(Replica):
    """A statement that an engine runs over the rows, as a table of that name."""

    names: tuple[str, ...] | None
    statement: str
    table: str
    keys: tuple[str, str]
    runner: Callable[[str, str, dict[str, Any]], list[tuple[Any, ...]]]
    place: str
    rule: str = "float64; NULL and NaN are missing values"
    engine: str = ""

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return len(self.names or ())

    def score_rows(self, X: Floats) -> Floats:
        """Return the scores, all rows being one query."""
        return self.score_queries(X, np.zeros(len(X), dtype=np.int64))

    def score_queries(self, X: Floats, query: Ints) -> Floats:
        """Return the scores; NULL is NaN."""
        if not len(X):
            return np.empty(0)
        qid, doc_id = self.keys
        columns: dict[str, Any] = {name: X[:, j].copy() for j, name in enumerate(self.names or ())}
        columns |= {qid: query, doc_id: np.arange(len(X))}
        try:
            rows = self.runner(self.statement, self.table, columns)
        except InputError as error:
            raise InputError(f"{self.place}: {error}") from None
        out = np.full(len(X), np.nan)
        place = 1 if self.statement.startswith("WITH ") else 0
        for row in rows:
            score = row[place + 1]
            out[row[place]] = np.nan if score is None else score
        return out

    def rounding(self, X: Floats) -> None:
        """Say nothing: the model's own size decides."""
        return


def runner_of(dialect: str) -> tuple[Any, str]:
    """Return what runs SQL of a dialect (SQLite in its place, where it cannot be had), and its name."""
    if dialect == "duckdb":
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", extra="sql", purpose="running SQL for DuckDB") from None
        return run_duckdb, f"run by DuckDB {duckdb.__version__}"
    how = "" if dialect == "sqlite" else f"{dialect} restated for and "
    return run_sqlite, f"{how}{sqlite_engine()}"


def sqlite_engine() -> str:
    """Say which SQLite runs."""
    return f"run by SQLite {sqlite3.sqlite_version}"


def run_sqlite(statement: str, table: str, columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement over a table of these columns."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
    where = '"' + table.replace('"', '""') + '"'
    rows = zip(*(_as_list(values) for values in columns.values()), strict=True)
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE {where} ({', '.join(quoted)})")
        connection.executemany(f"INSERT INTO {where} VALUES ({', '.join('?' * len(quoted))})", rows)
        return connection.execute(statement).fetchall()
    except sqlite3.Error as error:
        raise InputError(f"SQLite cannot run it: {error}") from None
    finally:
        connection.close()


def _as_list(values: Any) -> list[Any]:
    return [None if value != value else value for value in values.tolist()]


def run_duckdb(statement: str, table: str, columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement over a table of these columns."""
    import duckdb

    connection = duckdb.connect()
    try:
        where = '"' + table.replace('"', '""') + '"'
        connection.register("toprank_rows", columns)
        connection.execute(f"CREATE TABLE {where} AS SELECT * FROM toprank_rows")
        found: list[tuple[Any, ...]] = connection.execute(statement).fetchall()
        return found
    except duckdb.Error as error:
        raise InputError(f"DuckDB cannot run it: {str(error).splitlines()[0]}") from None
    finally:
        connection.close()
