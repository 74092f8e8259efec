"""Databases that are at hand run exported SQL: SQLite always, DuckDB where it is installed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._typing import Floats, Ints
from ..errors import InputError, naming, needed
from .replicas import Replica


@dataclass(frozen=True, eq=False)
class SqlReplica(Replica):
    """A statement that an engine runs over the rows, as a table of that name."""

    names: tuple[str, ...]
    statement: str
    table: str
    keys: tuple[str, str]
    runner: Callable[[str, str, dict[str, Any]], list[tuple[Any, ...]]]
    path: str
    rule: str = "float64; NULL and NaN are missing values"
    engine: str = ""
    text: bool = False
    """Whether features are kept as text, as an import of CSV does."""

    def score_rows(self, X: Floats, query: Ints | None = None) -> Floats:
        """Return the scores; NULL is NaN."""
        if not len(X):
            return np.empty(0)
        qid, doc_id = self.keys
        columns: dict[str, Any] = {name: X[:, j].copy() for j, name in enumerate(self.names)}
        columns |= {qid: np.zeros(len(X), dtype=np.int64) if query is None else query, doc_id: np.arange(len(X))}
        with naming(self.path):
            rows = self.runner(self.statement, self.table, {**columns, **self._as_text(X)} if self.text else columns)
        out = np.full(len(X), np.nan)
        first = 1 if self.statement.startswith("WITH ") else 0
        for row in rows:
            score = row[first + 1]
            out[row[first]] = np.nan if score is None else score
        return out

    def _as_text(self, X: Floats) -> dict[str, Any]:
        """Return the features as text; a missing cell is empty, or NULL for DuckDB, which refuses an empty text."""
        gap = None if self.runner is run_duckdb else ""
        cells = ([gap if cell != cell else repr(cell) for cell in column] for column in X.T.tolist())
        return {name: np.array(column, dtype=object) for name, column in zip(self.names, cells, strict=True)}

    def with_text_columns(self) -> SqlReplica | None:
        """Return the same over columns of text."""
        return replace(self, text=True)


def runner_of(dialect: str) -> tuple[Any, str]:
    """Return what runs SQL of a dialect (SQLite in its place, where it cannot be had), and its name."""
    if dialect == "duckdb":
        return run_duckdb, f"run by DuckDB {needed('duckdb', 'running SQL for DuckDB').__version__}"
    how = "" if dialect == "sqlite" else f"{dialect} restated for and "
    return run_sqlite, f"{how}{sqlite_engine()}"


def sqlite_engine() -> str:
    """Say which SQLite runs."""
    return f"run by SQLite {sqlite3.sqlite_version}"


def run_sqlite(statement: str, table: str, columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement over a table of these columns."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
    where = '"' + table.replace('"', '""') + '"'
    cells = ([None if cell != cell else cell for cell in values.tolist()] for values in columns.values())
    rows = zip(*cells, strict=True)
    connection = sqlite3.connect(":memory:")
    try:
        text = [" TEXT" if values.dtype == object else "" for values in columns.values()]
        kinds = ", ".join(f"{name}{kind}" for name, kind in zip(quoted, text, strict=True))
        connection.execute(f"CREATE TABLE {where} ({kinds})")
        connection.executemany(f"INSERT INTO {where} VALUES ({', '.join('?' * len(quoted))})", rows)
        return connection.execute(statement).fetchall()
    except sqlite3.Error as error:
        raise InputError(f"SQLite cannot run it: {error}") from None
    finally:
        connection.close()


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
