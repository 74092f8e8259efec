"""The store: every event, the state it led to, and now and then a snapshot, in one SQLite file.

An event and the state after it are written in one transaction, so a state is always what a replay of the stored events
leads to, to the bit; `verify` does that. Version n is the state after event n. One connection holds the file alone.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from .._version import __version__
from ..errors import InputError
from ..rankers.persistence import ModelFile
from .bodies import BodyError, Learned
from .learning import Event, Learner

EVERY = 1_000
"""Events between snapshots: so many are replayed at most to see an old version again."""
_MARK, _LAYOUT = 0x746F7072, 1
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, at REAL NOT NULL, kind TEXT NOT NULL,
    body BLOB NOT NULL, measure REAL, target INTEGER);
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, model TEXT NOT NULL,
    progress TEXT NOT NULL);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, model TEXT NOT NULL, progress TEXT NOT NULL);
"""


class Row(NamedTuple):
    """An event as it is written; a rollback has the version it goes back to as its target."""

    seq: int
    event_id: str
    at: float
    kind: str
    body: bytes
    measure: float | None = None
    target: int | None = None


@dataclass(frozen=True)
class Verdict:
    """What a replay found."""

    events: int
    oldest: int
    version: int
    difference: str | None
    """Where the replay and the store part, in words; None where they are equal to the bit."""

    def __str__(self) -> str:
        what = f"{self.events:,} events replayed from version {self.oldest:,} to {self.version:,}"
        return f"{what}: {self.difference or 'snapshots and state are equal to the bit'}"


class Store:
    """An open store."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = Path(path)
        if create and not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        elif not self.path.is_file():
            raise InputError(f"{path}: there is no such store")
        try:
            self._db = sqlite3.connect(self.path, timeout=1.0, isolation_level=None, check_same_thread=False)
            for setting in ("locking_mode = EXCLUSIVE", "synchronous = FULL", "journal_mode = WAL"):
                self._db.execute(f"PRAGMA {setting}")
            self._db.execute("PRAGMA wal_autocheckpoint = 4000")
            self._db.execute("PRAGMA journal_size_limit = 67108864")
            self._db.execute("BEGIN EXCLUSIVE")
            self._begin(create)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise InputError(f"{path} is in use by another server: stop it, or work on a backup") from None
            raise InputError(f"{path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise InputError(f"{path} is not a store of toprank serve: {error}") from None

    def _begin(self, create: bool) -> None:
        mark, layout = (self._one(f"PRAGMA {name}")[0] for name in ("application_id", "user_version"))
        if create and not mark and not self._one("SELECT count(*) FROM sqlite_master")[0]:
            for statement in _TABLES.split(";")[:-1]:
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id = {_MARK}")
            self._db.execute(f"PRAGMA user_version = {_LAYOUT}")
        elif mark != _MARK:
            raise InputError(f"{self.path} is not a store of toprank serve")
        elif layout != _LAYOUT:
            raise InputError(f"{self.path} has layout {layout}; this toprank reads layout {_LAYOUT}")

    def _one(self, query: str, *values: Any) -> Any:
        return self._db.execute(query, values).fetchone()

    def close(self) -> None:
        """Close the file; what is in the write-ahead log goes into it."""
        self._db.close()

    @property
    def empty(self) -> bool:
        """Whether no model was put in yet."""
        return not self._one("SELECT count(*) FROM state")[0]

    def start(self, learner: Learner) -> None:
        """Begin with a model: version 0."""
        self.commit([], 0, learner, snapshot=True)

    def state(self) -> tuple[int, Learner]:
        """Return the last version."""
        seq, model, progress = self._one("SELECT seq, model, progress FROM state")
        return seq, Learner.read(model.encode(), str(self.path), progress)

    @property
    def frozen(self) -> bool:
        """Whether learning is stopped."""
        return bool(self._one("SELECT count(*) FROM meta WHERE key = 'frozen'")[0])

    def freeze(self, frozen: bool) -> None:
        """Stop learning, or let it go on."""
        self._db.execute(
            "INSERT OR REPLACE INTO meta VALUES ('frozen', '1')" if frozen else "DELETE FROM meta WHERE key = 'frozen'"
        )

    @property
    def oldest(self) -> int:
        """The oldest version that can be seen again."""
        return int(self._one("SELECT min(seq) FROM snapshots")[0])

    @property
    def last_at(self) -> float:
        """When the last event came: time never goes back in a store, whatever the clock does."""
        row = self._one("SELECT at FROM events ORDER BY seq DESC LIMIT 1")
        return 0.0 if row is None else float(row[0])

    def find(self, event_id: str) -> Learned | None:
        """Return what became of an event that is known already."""
        found = self._one("SELECT seq, seq, measure FROM events WHERE event_id = ?", event_id)
        return None if found is None else Learned("duplicate", *found)

    def commit(self, rows: Sequence[Row], seq: int, learner: Learner, *, snapshot: bool = False) -> None:
        """Write events and the state after them in one transaction, durably, or nothing at all."""
        state = (seq, learner.model_text().decode(), learner.progress_text())
        try:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            self._db.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?)", state)
            if snapshot:
                self._db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", state)
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise full(error) from None
            raise

    def _events(self, after: int, until: int) -> Iterator[Row]:
        rows = self._db.execute("SELECT * FROM events WHERE seq > ? AND seq <= ? ORDER BY seq", (after, until))
        return map(Row._make, rows)

    def version(self, seq: int) -> Learner:
        """Return the model as it was after event `seq`."""
        newest = self._one("SELECT seq FROM state")[0]
        if not self.oldest <= seq <= newest:
            raise BodyError(f"there are versions {self.oldest} to {newest}, not {seq}", "$.version", 404)
        found = self._one("SELECT * FROM snapshots WHERE seq <= ? ORDER BY seq DESC LIMIT 1", seq)
        learner = self._read(found)
        for row in self._events(found[0], seq):
            learner = self._replayed(learner, row)
        return learner

    def _read(self, snapshot: tuple[int, str, str]) -> Learner:
        return Learner.read(snapshot[1].encode(), f"{self.path} (version {snapshot[0]})", snapshot[2])

    def _replayed(self, learner: Learner, row: Row) -> Learner:
        if row.target is not None:
            return self.version(row.target)
        return learner.after(Event.unpack(row.event_id, row.kind, row.body))[0]

    def verify(self) -> Verdict:
        """Replay every stored event from the oldest version on, and hold each snapshot and the state against it."""
        damage = self._one("PRAGMA quick_check")[0]
        newest, oldest = self._one("SELECT seq FROM state")[0], self.oldest
        if damage != "ok":
            return Verdict(0, oldest, newest, f"the file is damaged: {damage}")
        kept = self._db.execute("SELECT * FROM snapshots UNION ALL SELECT seq, model, progress FROM state ORDER BY seq")
        first, *others = kept.fetchall()
        learner, before, count = self._read(first), first[0], 0
        for seq, model, progress in others:
            for expected, row in enumerate(self._events(before, seq), start=before + 1):
                if row.seq != expected:
                    return Verdict(count, oldest, newest, f"event {expected} is missing")
                learner, count = self._replayed(learner, row), count + 1
            if count != seq - oldest:
                return Verdict(count, oldest, newest, f"event {oldest + count + 1} is missing")
            mine, theirs = (msgspec.json.decode(text, type=ModelFile) for text in (learner.model_text(), model))
            by = "" if mine.toprank == theirs.toprank else f" (it was learned by toprank {theirs.toprank})"
            theirs.toprank = mine.toprank
            if mine != theirs or learner.progress_text() != progress:
                return Verdict(count, oldest, newest, f"version {seq} DIFFERS from the replay after {before}{by}")
            before = seq
        return Verdict(count, oldest, newest, None)

    def measures(self) -> list[tuple[int, str]]:
        """Return what the stream had shown at each snapshot: version and progress."""
        return self._db.execute("SELECT seq, progress FROM snapshots ORDER BY seq").fetchall()

    def events_for_certificates(self, most: int) -> list[Event] | None:
        """Return all events since version 0; None where they are not all there, or more than `most`."""
        count, strange = self._one("SELECT count(*), sum(kind <> 'labels') FROM events")
        if self.oldest > 0 or count > most or strange:
            return None
        return [Event.unpack(row.event_id, row.kind, row.body) for row in self._events(0, count)]

    def drop_before(self, at: float) -> int:
        """Forget what came before a time, up to the last snapshot before it; return how many events went.

        A snapshot can be the oldest only if no later rollback goes back beyond it. A thousand events go at a time.
        """
        base = self._one(
            "SELECT max(seq) FROM snapshots s WHERE seq < (SELECT coalesce(min(seq), 9e15) FROM events WHERE at >= ?)"
            " AND NOT EXISTS (SELECT 1 FROM events e WHERE e.seq > s.seq AND e.target < s.seq)",
            at,
        )[0]
        if base is None:
            return 0
        self._db.execute("DELETE FROM snapshots WHERE seq < ?", (base,))
        gone = self._db.execute(
            "DELETE FROM events WHERE seq <= ? AND seq < (SELECT min(seq) + 1000 FROM events)", (base,)
        )
        return gone.rowcount

    def backup(self) -> str:
        """Copy the store beside itself, whole and compact; return the name of the copy."""
        seq = self._one("SELECT seq FROM state")[0]
        copy = self.path.with_name(f"{self.path.stem}-{seq}-{time.time_ns()}{self.path.suffix}")
        try:
            os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self._db.execute("VACUUM INTO ?", (str(copy),))
        except (sqlite3.OperationalError, OSError) as error:
            copy.unlink(missing_ok=True)
            raise full(error) from None
        return copy.name


def full(error: Exception) -> BodyError:
    """Return what to answer when the disk refuses: nothing was learned, and trying again is safe."""
    why = getattr(error, "strerror", None) or str(error).partition(":")[0]  # what comes after may be a path
    return BodyError(f"the store cannot be written ({why}): nothing was learned, try again later", status=507)


def begun_with(model: bytes, store: Store) -> None:
    """Refuse a model that is not the one a store began with, as far as the store still knows."""
    mine = msgspec.json.decode(model, type=ModelFile)
    theirs = msgspec.json.decode(store._one("SELECT model FROM snapshots ORDER BY seq LIMIT 1")[0], type=ModelFile)
    mine.toprank = theirs.toprank = __version__
    if store.oldest == 0 and mine != theirs:
        raise InputError(
            f"{store.path} was begun with another model: leave MODEL out to go on with it, or take another store"
        )
