"""The tables of a store, how files of earlier layouts get those of this one, and which log belongs to a file.

SQLite takes a write-ahead log that lies beside a file for that file's own. A backup that is copied over a store whose
server was killed would be mixed with the log of that server. So every start gives the file a new mark, and writes it
beside the file as long as there may be a log: another file in its place is refused.
"""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

from .._files import replacing
from ..errors import InputError

MARK, LAYOUT = 0x746F7072, 3
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
    body BLOB NOT NULL, measure REAL, target INTEGER, list INTEGER, content BLOB, checksum BLOB);
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, model TEXT NOT NULL,
    progress TEXT NOT NULL, checksum BLOB);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, model TEXT NOT NULL, progress TEXT NOT NULL, checksum BLOB);
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
_FROM_SECOND = """
ALTER TABLE events ADD COLUMN checksum BLOB;
ALTER TABLE state ADD COLUMN checksum BLOB;
ALTER TABLE snapshots ADD COLUMN checksum BLOB;
"""
"""Rows of the first two layouts have no checksum."""
_UPGRADES = {1: _FROM_FIRST + _FROM_SECOND, 2: _FROM_SECOND}


def beside(path: Path, part: str) -> Path:
    """Return a file that belongs to a store: `-wal` is SQLite's log, `-mark` names the file whose log it is."""
    return path.with_name(path.name + part)


def check_log(path: Path) -> None:
    """Refuse a log that was written for another file."""
    log, mark = beside(path, "-wal"), beside(path, "-mark")
    if not path.exists() or not log.exists() or not log.stat().st_size or not mark.exists():
        return
    try:
        # As it is without the log. Where a kill left half of a page, the log is needed to read it: then it is its own.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as db:
            found = db.execute("SELECT value FROM meta WHERE key = 'mark'").fetchone()
    except sqlite3.DatabaseError:
        return
    if found is None or found[0] != mark.read_text(encoding="ascii").strip():
        advice = (
            f"restore a backup by toprank serve --restore BACKUP --store {path}, or remove {log.name} and {mark.name}"
        )
        raise InputError(f"{log} was written for another file than {path}, which was replaced since: {advice}")


def mark(db: sqlite3.Connection, path: Path) -> None:
    """Give a file a new mark, before anything of this start is in its log."""
    new = secrets.token_hex(8)
    db.execute("INSERT OR REPLACE INTO meta VALUES ('mark', ?)", (new,))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with replacing(beside(path, "-mark")) as draft:
        draft.write_text(new, encoding="ascii")


def prepare(db: sqlite3.Connection, path: Path, *, may_create: bool) -> bool:
    """Bring the tables of a file up to date, inside a transaction; say whether the file was empty."""
    mark, layout = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    empty = may_create and not mark and not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not empty and mark != MARK:
        raise InputError(f"{path} is not a store of toprank serve")
    if not empty and layout not in (*_UPGRADES, LAYOUT):
        raise InputError(f"{path} has layout {layout}; this toprank reads layouts 1 to {LAYOUT}")
    if empty or layout != LAYOUT:
        for statement in (_TABLES if empty else _UPGRADES[layout]).split(";")[:-1]:
            db.execute(statement)
        db.execute("INSERT OR IGNORE INTO meta VALUES ('store', ?)", (secrets.token_hex(8),))
        db.execute(f"PRAGMA user_version = {LAYOUT}")
    return empty
