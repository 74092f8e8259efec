"""The tables of a store, and how a file of the first layout gets those of the second."""

from __future__ import annotations

import secrets
import sqlite3
from pathlib import Path

from ..errors import InputError

MARK, LAYOUT = 0x746F7072, 2
SETTINGS = (
    "locking_mode = EXCLUSIVE", "synchronous = FULL", "journal_mode = WAL", "wal_autocheckpoint = 4000",
    "journal_size_limit = 67108864",
)  # fmt: skip
_LISTS = """
CREATE TABLE lists (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body BLOB NOT NULL);
CREATE INDEX events_of_list ON events (list) WHERE list IS NOT NULL;
"""
_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, at REAL NOT NULL, kind TEXT NOT NULL,
    body BLOB NOT NULL, measure REAL, target INTEGER, list INTEGER, content BLOB);
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, model TEXT NOT NULL,
    progress TEXT NOT NULL);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, model TEXT NOT NULL, progress TEXT NOT NULL);
{_LISTS}
PRAGMA application_id = {MARK};
"""
_FROM_FIRST = f"""
ALTER TABLE events ADD COLUMN list INTEGER;
ALTER TABLE events ADD COLUMN content BLOB;
{_LISTS}
"""
"""Events of the first layout stay as they are: they hold their lists themselves, their ids are not scoped by a key, and
`list` and `content` are NULL in them."""


def prepare(db: sqlite3.Connection, path: Path, *, may_create: bool) -> bool:
    """Bring the tables of a file up to date, inside a transaction; say whether the file was empty."""
    mark, layout = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    empty = may_create and not mark and not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not empty and mark != MARK:
        raise InputError(f"{path} is not a store of toprank serve")
    if not empty and layout not in (1, LAYOUT):
        raise InputError(f"{path} has layout {layout}; this toprank reads layouts 1 and {LAYOUT}")
    if empty or layout != LAYOUT:
        for statement in (_TABLES if empty else _FROM_FIRST).split(";")[:-1]:
            db.execute(statement)
        db.execute("INSERT INTO meta VALUES ('store', ?)", (secrets.token_hex(8),))
        db.execute(f"PRAGMA user_version = {LAYOUT}")
    return empty
