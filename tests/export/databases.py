"""Databases that tests run SQL in: SQLite, DuckDB and a PostgreSQL server that is started for them."""

import contextlib
import io
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import numpy as np

POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None) or (
    Path(found).parent if (found := shutil.which("initdb")) else None
)


if POSTGRES is not None and os.getuid() == 0:
    try:
        pwd.getpwnam("postgres")
    except KeyError:  # the server refuses to run as root
        POSTGRES = None


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Sqlite:
    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def fill(self, table, columns, kind="REAL"):
        names = ", ".join(
            quoted(name) + ("" if values.dtype.kind in "iu" else f" {kind}") for name, values in columns.items()
        )
        self.connection.execute(f"CREATE TABLE {quoted(table)} ({names})")
        rows = zip(*([None if v != v else v for v in values.tolist()] for values in columns.values()), strict=True)
        self.connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({', '.join('?' * len(columns))})", rows)

    def rows(self, statement):
        return self.connection.execute(statement).fetchall()

    def drop(self, table):
        self.connection.execute(f"DROP TABLE IF EXISTS {quoted(table)}")


class DuckDB:
    """NaN stays NaN here: that it is a missing value is for the SQL to know."""

    def __init__(self):
        import duckdb

        self.connection = duckdb.connect()
        # Over 2,000 features it looks for equal parts in seconds, and there are none.
        self.connection.execute("SET disabled_optimizers = 'common_subexpressions'")

    def fill(self, table, columns, kind="DOUBLE"):
        self.connection.register("given", {name: np.ascontiguousarray(values) for name, values in columns.items()})
        chosen = ", ".join(
            quoted(name) if values.dtype.kind in "iu" else f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}"
            for name, values in columns.items()
        )
        self.connection.execute(f"CREATE TABLE {quoted(table)} AS SELECT {chosen} FROM given")

    def rows(self, statement):
        return self.connection.execute(statement).fetchall()

    def drop(self, table):
        self.connection.execute(f"DROP TABLE IF EXISTS {quoted(table)}")


class Postgres:
    def __init__(self, folder):
        self.folder = folder

    def psql(self, text):
        command = [POSTGRES / "psql", "-h", self.folder, "-U", "postgres", "-d", "postgres", "-X", "-q", "-A", "-t"]
        options = ["-v", "ON_ERROR_STOP=1", "-F", "\t"]
        done = subprocess.run([*command, *options], input=text, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:500]
        return done.stdout

    def fill(self, table, columns, kind="float8"):
        """NULL for every other gap, NaN for the rest."""
        types = ", ".join(f"{quoted(n)} {'bigint' if v.dtype.kind in 'iu' else kind}" for n, v in columns.items())
        lines = io.StringIO()
        for i, row in enumerate(zip(*(values.tolist() for values in columns.values()), strict=True)):
            print("\t".join(("\\N" if i % 2 else "NaN") if v != v else repr(v) for v in row), file=lines)
        self.psql(f"CREATE TABLE {quoted(table)} ({types});\nCOPY {quoted(table)} FROM STDIN;\n{lines.getvalue()}\\.\n")

    def rows(self, statement):
        out = self.psql(statement + ";\n")
        return [tuple(float(v) if v else None for v in line.split("\t")) for line in out.splitlines()]

    def drop(self, table):
        self.psql(f"SET client_min_messages = error; DROP TABLE IF EXISTS {quoted(table)} CASCADE;")


@contextlib.contextmanager
def postgres():
    """A server in a folder of its own, reached by a socket in it, and gone afterwards."""
    user = {"user": "postgres"} if os.getuid() == 0 else {}  # it refuses to run as root
    folder = Path(tempfile.mkdtemp(prefix="toprank-pg"))
    if user:
        shutil.chown(folder, "postgres")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True, "cwd": folder, **user}
    options = f"-c listen_addresses='' -c fsync=off -k {folder}"
    try:
        subprocess.run(
            [
                POSTGRES / "initdb",
                "-D",
                folder / "data",
                "-U",
                "postgres",
                "-A",
                "trust",
                "-N",
                "--locale=C",
                "-E",
                "UTF8",
            ],
            **quiet,
        )
        start = [POSTGRES / "pg_ctl", "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start"]
        subprocess.run(start, **quiet)
        try:
            yield Postgres(folder)
        finally:
            subprocess.run([POSTGRES / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
