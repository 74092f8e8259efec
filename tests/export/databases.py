"""Databases that tests run SQL in: SQLite, DuckDB, and PostgreSQL and MariaDB servers that are started for them."""

import contextlib
import io
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import time
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


MARIADB = shutil.which("mariadbd")
"""MariaDB runs SQL for MySQL; Debian's mariadb-server-core and mariadb-client-core are enough."""


def quoted(name, quote='"'):
    return quote + name.replace(quote, 2 * quote) + quote


def texts(columns, gap):
    """The columns as a table of text has them, in which a missing cell is `gap`."""
    made = {}
    for name, values in columns.items():
        cells = values.tolist()
        made[name] = values if values.dtype.kind in "iu" else [gap if v != v else repr(v) for v in cells]
    return made


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

    def fill_text(self, table, columns):
        """As `.import` of a CSV file leaves it: every feature is TEXT, and a missing cell is an empty text."""
        cells = texts(columns, "")
        kinds = [quoted(name) + (" TEXT" if isinstance(values, list) else "") for name, values in cells.items()]
        self.connection.execute(f"CREATE TABLE {quoted(table)} ({', '.join(kinds)})")
        marks = ", ".join("?" * len(cells))
        self.connection.executemany(
            f"INSERT INTO {quoted(table)} VALUES ({marks})",
            zip(*(list(map(_plain, values)) for values in cells.values()), strict=True),
        )

    def rows(self, statement):
        return self.connection.execute(statement).fetchall()

    def drop(self, table):
        self.connection.execute(f"DROP TABLE IF EXISTS {quoted(table)}")


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


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

    def fill_text(self, table, columns):
        cells = texts(columns, None)
        kinds = [quoted(n) + (" VARCHAR" if isinstance(v, list) else " BIGINT") for n, v in cells.items()]
        self.connection.execute(f"CREATE TABLE {quoted(table)} ({', '.join(kinds)})")
        marks = ", ".join("?" * len(cells))
        rows = [list(map(_plain, row)) for row in zip(*cells.values(), strict=True)]
        self.connection.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", rows)

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

    def fill_text(self, table, columns):
        self.fill(table, columns, "text")

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


class Mariadb:
    def __init__(self, folder):
        self.folder = folder

    def run(self, text):
        command = ["mariadb", "--no-defaults", f"--socket={self.folder}/s", "-u", "root", "-N", "-B"]
        done = subprocess.run(
            [*command, "--default-character-set=utf8mb4", "test"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[:500]
        return done.stdout

    def fill(self, table, columns, kind="DOUBLE", gap="NULL"):
        names = {name: quoted(name, "`") for name in columns}
        types = ", ".join(f"{names[n]} {'BIGINT' if v.dtype.kind in 'iu' else kind}" for n, v in columns.items())
        text = "'{}'" if kind == "TEXT" else "{}"
        rows = (
            ", ".join(gap if v != v else str(v) if isinstance(v, int) else text.format(_with_exponent(v)) for v in row)
            for row in zip(*(values.tolist() for values in columns.values()), strict=True)
        )
        values = ",\n".join(f"({row})" for row in rows)
        self.run(f"CREATE TABLE {quoted(table, '`')} ({types});\nINSERT INTO {quoted(table, '`')} VALUES {values};\n")

    def fill_text(self, table, columns):
        self.fill(table, columns, "TEXT", gap="''")

    def rows(self, statement):
        lines = self.run(statement + ";\n").splitlines()
        return [tuple(None if v == "NULL" else float(v) for v in line.split("\t")) for line in lines]

    def drop(self, table):
        self.run(f"DROP TABLE IF EXISTS {quoted(table, '`')};\n")


def _with_exponent(value):
    return repr(value) if "e" in repr(value) else f"{value!r}e0"


@contextlib.contextmanager
def mariadb():
    """A server in a folder of its own, reached by a socket in it, and gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="toprank-mariadb"))
    home = Path(MARIADB).resolve().parent.parent
    mine = ["--no-defaults", f"--datadir={folder}/data", f"--user={pwd.getpwuid(os.getuid()).pw_name}"]
    mine.append(f"--lc-messages-dir={home}/share/mysql")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        root = "--auth-root-authentication-method=normal"
        subprocess.run(["mariadb-install-db", *mine[:3], f"--basedir={home}", root], check=True, cwd=folder, **quiet)
        sql_mode = "--sql-mode=STRICT_TRANS_TABLES,NO_ZERO_DATE"
        with subprocess.Popen(
            [MARIADB, *mine, f"--socket={folder}/s", "--skip-networking", sql_mode], cwd=folder, **quiet
        ) as server:
            try:
                for _ in range(300):
                    if (folder / "s").exists():
                        break
                    time.sleep(0.1)
                yield Mariadb(folder)
            finally:
                server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
