"""The store: every event, the state it led to, and now and then a snapshot, in one SQLite file.

An event and the state after it are written in one transaction, so a state is always what a replay of the stored events
leads to, to the bit (`history.verify`). Version n is the state after event n. A list of documents is stored once,
however many events name it. Every row has a checksum, which is compared when the row is read. One connection holds the
file alone.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..certificates.performance import RunningMean
from ..data.documents import DocumentList
from ..errors import InputError
from . import layout
from .bodies import BodyError, Learned, require
from .clock import Clock
from .learning import NO_PROGRESS, Event, Learner, content_of_list, list_digest, pack_list, unpack_list

SNAPSHOT_EVERY = 1_000
"""Events between snapshots: so many are replayed at most to see an old version again."""
OTHER_CONTENT = "another event was learned under this id, as number {}: give this one an id of its own"


class UnloadableState(BodyError):  # noqa: N818 - what was found
    """A state that this toprank could not load again."""


class Row(NamedTuple):
    """An event as it is written; of a rollback, `target` is the version that it goes back to."""

    seq: int
    event_id: str
    at: float
    kind: str
    body: bytes
    measure: float | None = None
    target: int | None = None
    docs: DocumentList | None = None
    digest: bytes | None = None
    """The digest of the list."""
    content: bytes | None = None
    """The digest of what the event tells."""


class StoredState(NamedTuple):
    """A version as it is stored, in a snapshot or as the state."""

    seq: int
    model: str
    progress: str
    checksum: bytes | None
    """None where an earlier version of toprank wrote it."""


def checksum(*values: Any) -> bytes:
    """Return what tells the values of a row from all others."""
    return hashlib.blake2b(msgspec.msgpack.encode(values), digest_size=16).digest()


class Store:
    """An open store; with a model it is begun, or compared with the model that it was begun with."""

    def __init__(self, path: str | os.PathLike[str], model: Learner | None = None) -> None:
        self.path = Path(path)
        if model is not None and not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        elif not self.path.is_file():
            raise InputError(f"{path}: there is no such store; give the MODEL to begin one with")
        layout.check_log(self.path)
        try:
            with ExitStack() as undo:
                self._db = sqlite3.connect(self.path, timeout=1.0, isolation_level=None, check_same_thread=False)
                undo.callback(self.close)
                for setting in layout.SETTINGS:
                    self._db.execute(f"PRAGMA {setting}")
                self._db.execute("BEGIN EXCLUSIVE")
                self._begin(model)
                undo.pop_all()
        except sqlite3.DatabaseError as error:
            if "locked" in str(error):
                raise InputError(f"{path} is in use by another server: stop it, or work on a backup") from None
            what = "" if isinstance(error, sqlite3.OperationalError) else " is not a store of toprank serve"
            raise InputError(f"{path}{what}: {error}") from None

    def _begin(self, model: Learner | None) -> None:
        if layout.prepare(self._db, self.path, may_create=model is not None) and model is not None:
            self._write([], model, snapshot=True)
        self._db.execute("COMMIT")
        layout.mark(self._db, self.path)
        self.store_id = str(self._first_value("SELECT value FROM meta WHERE key = 'store'"))
        """What tells this store from others; its backups have it too, until they take its place."""
        self._list: tuple[int | None, DocumentList | None] = None, None
        """The list that was read last."""
        self.clock = Clock(self._first_value("SELECT at FROM events ORDER BY seq DESC LIMIT 1") or 0.0)
        first = self._first_value("SELECT model FROM snapshots WHERE seq = 0")
        if model is not None and first and not model.is_same_model(self.load(StoredState(0, first, NO_PROGRESS, None))):
            advice = "leave MODEL out to go on with it, or take another store"
            raise InputError(f"{self.path} was begun with another model: {advice}")

    def _first_value(self, query: str, *values: Any) -> Any:
        """Return the first value of the first row; None without one."""
        return (self._db.execute(query, values).fetchone() or (None,))[0]

    def close(self) -> None:
        """Close the file; what is in the write-ahead log goes into it."""
        self._db.close()
        if not layout.beside(self.path, "-wal").exists():
            layout.beside(self.path, "-mark").unlink(missing_ok=True)

    def renew_id(self) -> None:
        """Become another store: versions that come from now on are not those of before."""
        self._db.execute("UPDATE meta SET value = ? WHERE key = 'store'", (secrets.token_hex(8),))

    @property
    def oldest_and_newest(self) -> tuple[int, int]:
        """The oldest version that can be seen again, and the newest."""
        return self._first_value("SELECT min(seq) FROM snapshots"), self._first_value("SELECT seq FROM state")

    @property
    def frozen(self) -> bool:
        """Whether learning is stopped."""
        return bool(self._first_value("SELECT value FROM meta WHERE key = 'frozen'"))

    def freeze(self, frozen: bool) -> None:
        """Stop learning, or let it go on."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('frozen', ?)", ("1" if frozen else "",))

    def find(self, event: Event, content: bytes) -> Learned | None:
        """Return what became of an event that is known already; refuse another one with its id.

        Ids of the first layout are those of any key.
        """
        found = self._db.execute(
            "SELECT seq, measure, content, body, kind FROM events WHERE event_id = ?"
            " OR (event_id = ? AND content IS NULL AND target IS NULL)",
            (event.event_id, event.given_id),
        ).fetchone()
        if found is None:
            return None
        seq, measure, known, body, kind = found
        if known is None:
            old = Event.unpack("", kind, body, None)
            known = old.content(content_of_list(old.docs))
        require(known == content, OTHER_CONTENT.format(seq), "$.event_id", 409)
        return Learned("duplicate", seq, seq, measure)

    def commit(self, rows: Sequence[Row], learner: Learner, *, snapshot: bool = False) -> None:
        """Write events and the state after them in one transaction, durably, or nothing at all.

        A state that could not be loaded again raises `UnloadableState`, and nothing is written.
        """
        try:
            self._db.execute("BEGIN")
            self._write(rows, learner, snapshot)
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise write_refused(error) if isinstance(error, sqlite3.OperationalError) else error from None

    def _write(self, rows: Sequence[Row], learner: Learner, snapshot: bool) -> None:
        state = (learner.version, learner.model_text().decode(), learner.progress_text())
        check_loads(*state)
        for row in rows:
            number = None if row.docs is None else self._number_of_list(row.docs, row.digest)
            values = (*row[:7], number, row.content)
            self._db.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, checksum(*values, row.digest))
            )
        stored = (*state, checksum(*state))
        self._db.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?, ?)", stored)
        if snapshot:
            self._db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", stored)

    def has_list(self, digest: bytes) -> bool:
        """Say whether a list is stored already."""
        return self._first_value("SELECT 1 FROM lists WHERE digest = ?", digest) is not None

    def _number_of_list(self, docs: DocumentList, digest: bytes | None) -> int:
        """Return the number of a list; it is written where it is not yet there."""
        number = self._first_value("SELECT id FROM lists WHERE digest = ?", digest)
        if number is None:
            written = self._db.execute("INSERT INTO lists (digest, body) VALUES (?, ?)", (digest, pack_list(docs)))
            number = written.lastrowid
        return int(number)

    def _read_list(self, number: int) -> DocumentList:
        """Return a list by its number; refuse one that is not what was written."""
        if self._list[0] != number:
            found = self._db.execute("SELECT digest, body FROM lists WHERE id = ?", (number,)).fetchone()
            if found is None or list_digest(docs := unpack_list(found[1])) != found[0]:
                raise InputError(f"list {number} of {self.path.name} is {'missing' if found is None else 'damaged'}")
            self._list = number, docs
        assert self._list[1] is not None
        return self._list[1]

    def load(self, state: StoredState) -> Learner:
        """Return a version that is stored; refuse one that is not what was written."""
        problem = f"version {state.seq} of {self.path.name} cannot be loaded"
        if state.checksum not in (None, checksum(*state[:3])):
            raise InputError(f"{problem}: it is not what was written")
        return Learner.load(*state[:3], problem)

    @property
    def newest(self) -> StoredState:
        """The state: the version that learning goes on from."""
        found = self._db.execute("SELECT seq, model, progress, checksum FROM state").fetchone()
        if found is None:
            raise InputError(f"the state of {self.path.name} cannot be loaded: it is missing")
        return StoredState._make(found)

    def states(self, which: str, *values: Any) -> Iterator[StoredState]:
        """Yield snapshots and the state."""
        both = "SELECT * FROM snapshots UNION ALL SELECT seq, model, progress, checksum FROM state"
        return map(StoredState._make, self._db.execute(f"SELECT * FROM ({both}) {which}", values))

    def events(self, after: int, until: int) -> Iterator[tuple[int, Event | int]]:
        """Yield numbers with events; of a rollback, with the version that it goes back to."""
        chosen = "SELECT * FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
        for *values, written in self._db.execute(chosen, (after, until)):
            seq, event_id, _, kind, body, _, target, number, _ = values
            docs = None if number is None else self._read_list(number)
            if written not in (None, checksum(*values, None if docs is None else list_digest(docs))):
                raise InputError(f"event {seq} of {self.path.name} is damaged: it is not what was written")
            try:
                yield seq, Event.unpack(event_id, kind, body, docs) if target is None else target
            except (msgspec.DecodeError, ValueError, TypeError) as error:
                raise InputError(f"event {seq} of {self.path.name} is damaged: {error}") from None

    def damage(self) -> str | None:
        """Return what SQLite finds wrong with the file: its pages, its tables, and their indexes."""
        found = [text for (text,) in self._db.execute("PRAGMA integrity_check(3)")]
        return None if found == ["ok"] else "; ".join(found)

    def check(self) -> None:
        """Refuse a file that SQLite finds something wrong with."""
        if (damage := self.damage()) is not None:
            advice = f"restore a backup by toprank serve --restore BACKUP --store {self.path}"
            raise InputError(f"{self.path} is damaged ({damage}): {advice}")

    def progress(self) -> list[tuple[int, RunningMean]]:
        """Return the versions of snapshots that no rollback took back, with what the stream had shown until then."""
        kept = self._db.execute(
            "SELECT seq, progress FROM snapshots s WHERE NOT EXISTS"
            " (SELECT 1 FROM events e WHERE e.target < s.seq AND s.seq < e.seq) ORDER BY seq"
        )
        return [(seq, RunningMean(*msgspec.json.decode(text)[:3])) for seq, text in kept]

    @property
    def target_of_newest(self) -> int | None:
        """The version that the newest one went back to, where it was made by a rollback."""
        found: int | None = self._first_value("SELECT target FROM events ORDER BY seq DESC LIMIT 1")
        return found

    def since_the_start(self, most: int) -> list[Event] | None:
        """Return all events since version 0; None where they are not all there, more than `most`, or not all labels."""
        oldest, newest = self.oldest_and_newest
        if oldest > 0 or newest > most or self._first_value("SELECT 1 FROM events WHERE kind <> 'labels'"):
            return None
        return [event for _, event in self.events(0, newest) if isinstance(event, Event)]

    def drop_before(self, at: float) -> None:
        """Forget what came before a time, up to the last snapshot before it, a thousand events at a time.

        A snapshot can be the oldest only if no later rollback goes back beyond it.
        """
        base = self._first_value(
            "SELECT max(seq) FROM snapshots s WHERE seq < (SELECT coalesce(min(seq), 9e15) FROM events WHERE at >= ?)"
            " AND NOT EXISTS (SELECT 1 FROM events e WHERE e.seq > s.seq AND e.target < s.seq)",
            at,
        )
        last = self._first_value("SELECT min(?, min(seq) + 999) FROM events", base)
        self._db.execute("BEGIN")
        try:
            self._db.execute("DELETE FROM snapshots WHERE seq < ?", (base,))
            self._db.execute(
                "DELETE FROM lists WHERE id IN (SELECT list FROM events WHERE seq <= ?)"
                " AND NOT EXISTS (SELECT 1 FROM events WHERE list = lists.id AND seq > ?)",
                (last, last),
            )
            self._db.execute("DELETE FROM events WHERE seq <= ?", (last,))
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def backup(self) -> str:
        """Copy the store beside itself, whole and compact; return the name of the copy."""
        copy = self.path.with_name(f"{self.path.stem}-{self.oldest_and_newest[1]}-{time.time_ns()}{self.path.suffix}")
        try:
            os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            self._db.execute("VACUUM INTO ?", (str(copy),))
        except (sqlite3.OperationalError, OSError) as error:
            copy.unlink(missing_ok=True)
            raise write_refused(error) from None
        return copy.name


def check_loads(version: int, model: str, progress: str) -> None:
    """Refuse a state that could not be loaded again, by loading it."""
    try:
        Learner.load(version, model, progress, "the state")
    except InputError as error:
        why = f"this leads to a model that could not be loaded again ({error}), so nothing was learned"
        raise UnloadableState(f"{why}: scale features or grades down", "$") from None


def write_refused(error: Exception) -> BodyError:
    """Return the answer when the disk refuses to write: nothing was learned, and trying again is safe."""
    why = getattr(error, "strerror", None) or str(error).partition(":")[0]  # what comes after may be a path
    return BodyError(f"the store cannot be written ({why}): nothing was learned, try again later", status=507)
