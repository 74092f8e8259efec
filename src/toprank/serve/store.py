"""The store: every event, the state it led to, and now and then a snapshot, in one SQLite file.

An event and the state after it are written in one transaction, so a state is always what a replay of the stored events
leads to, to the bit; `verify` does that. Version n is the state after event n. One connection holds the file alone.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..certificates.performance import RunningMean
from ..data.sketch import Sketch
from ..errors import InputError
from ..rankers.persistence import ModelFile
from .bodies import BodyError, Learned, require
from .learning import NO_PROGRESS, Event, Learner

SNAPSHOT_EVERY = 1_000
"""Events between snapshots: so many are replayed at most to see an old version again."""
_MARK, _LAYOUT = 0x746F7072, 1
_SETTINGS = (
    "locking_mode = EXCLUSIVE", "synchronous = FULL", "journal_mode = WAL", "wal_autocheckpoint = 4000",
    "journal_size_limit = 67108864",
)  # fmt: skip
_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL UNIQUE, at REAL NOT NULL, kind TEXT NOT NULL,
    body BLOB NOT NULL, measure REAL, target INTEGER);
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, model TEXT NOT NULL,
    progress TEXT NOT NULL);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, model TEXT NOT NULL, progress TEXT NOT NULL);
PRAGMA application_id = {_MARK};
PRAGMA user_version = {_LAYOUT};
"""


class UnloadableState(BodyError):  # noqa: N818 - what was found
    """A state that this toprank could not load again."""


class Verified(NamedTuple):
    """What a replay of a store found."""

    events: int
    """Events that were replayed."""
    difference: str | None
    """Where the replay and the store part, in words; None where they are equal to the bit."""
    left_behind: list[int]
    """Events that cannot be learned again and do not matter, as a later rollback goes back before them."""


class Store:
    """An open store; with a model it is begun, or compared with the model that it was begun with."""

    def __init__(self, path: str | os.PathLike[str], model: Learner | None = None) -> None:
        self.path = Path(path)
        if model is not None and not self.path.exists():
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        elif not self.path.is_file():
            raise InputError(f"{path}: there is no such store; give the MODEL to begin one with")
        try:
            with ExitStack() as undo:
                self._db = sqlite3.connect(self.path, timeout=1.0, isolation_level=None, check_same_thread=False)
                undo.callback(self.close)
                for setting in _SETTINGS:
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
        mark, layout = (self._first_value(f"PRAGMA {name}") for name in ("application_id", "user_version"))
        if model is not None and not mark and not self._first_value("SELECT count(*) FROM sqlite_master"):
            for statement in _TABLES.split(";")[:-1]:
                self._db.execute(statement)
            self._write([], model, snapshot=True)
        elif mark != _MARK:
            raise InputError(f"{self.path} is not a store of toprank serve")
        elif layout != _LAYOUT:
            raise InputError(f"{self.path} has layout {layout}; this toprank reads layout {_LAYOUT}")
        self._db.execute("COMMIT")
        self._last: float = self._first_value("SELECT at FROM events ORDER BY seq DESC LIMIT 1") or 0.0
        first = self._first_value("SELECT model FROM snapshots WHERE seq = 0")
        if model is not None and first and not _same_model(model, self._load(0, first, NO_PROGRESS)):
            advice = "leave MODEL out to go on with it, or take another store"
            raise InputError(f"{self.path} was begun with another model: {advice}")

    def _first_value(self, query: str, *values: Any) -> Any:
        """Return the first value of the first row; None without one."""
        return (self._db.execute(query, values).fetchone() or (None,))[0]

    def close(self) -> None:
        """Close the file; what is in the write-ahead log goes into it."""
        self._db.close()

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

    def find(self, event_id: str) -> Learned | None:
        """Return what became of an event that is known already."""
        found = self._db.execute("SELECT seq, seq, measure FROM events WHERE event_id = ?", (event_id,)).fetchone()
        return None if found is None else Learned("duplicate", *found)

    def commit(self, rows: Sequence[tuple[Any, ...]], learner: Learner, *, snapshot: bool = False) -> None:
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

    def _write(self, rows: Sequence[tuple[Any, ...]], learner: Learner, snapshot: bool) -> None:
        state = (learner.version, learner.model_text().decode(), learner.progress_text())
        check_loads(*state)
        self._db.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._db.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?, ?)", state)
        if snapshot:
            self._db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", state)

    def _states(self, which: str, *values: Any) -> Iterator[tuple[int, str, str]]:
        """Yield snapshots and the state: versions, models and progress."""
        both = "SELECT * FROM snapshots UNION ALL SELECT seq, model, progress FROM state"
        return iter(self._db.execute(f"SELECT * FROM ({both}) {which}", values))

    def _events(self, after: int, until: int) -> Iterator[tuple[int, Event | int]]:
        """Yield numbers with events; of a rollback, with the version that it goes back to."""
        chosen = "SELECT seq, target, event_id, kind, body FROM events WHERE seq > ? AND seq <= ? ORDER BY seq"
        for seq, target, *event in self._db.execute(chosen, (after, until)):
            yield seq, Event.unpack(*event) if target is None else target

    def _load(self, seq: int, model: str, progress: str) -> Learner:
        """Return a version that is kept."""
        return Learner.load(seq, model, progress, f"version {seq} of {self.path.name} cannot be loaded")

    def _replayed(self, kept: tuple[int, str, str], until: int) -> Iterator[tuple[int, Learner | InputError]]:
        """Yield what is kept, then what every event behind it leads to, with the number that the event has.

        From an event on that cannot be learned again, up to the next rollback, there is only the error.
        """
        learner: Learner | InputError = self._load(*kept)
        yield kept[0], learner
        for seq, what in self._events(kept[0], until):
            if isinstance(what, int):
                learner = replace(self.version(what), version=seq)
            elif isinstance(learner, Learner):
                try:
                    learner = learner.after(what)[0]
                except InputError as error:
                    learner = BodyError(f"event {seq} cannot be learned again: {error}", "$.version", 409)
            yield seq, learner

    def version(self, seq: int | None = None) -> Learner:
        """Return the model as it was after event `seq`, or as it is."""
        oldest, newest = self.oldest_and_newest
        if seq is None:
            try:
                return self._load(*next(self._states("ORDER BY seq DESC LIMIT 1")))
            except InputError as error:
                advice = f"toprank serve --rollback N --store {self.path} goes back to version N"
                raise InputError(f"{error}; {advice}, from {oldest} to {newest - 1}") from None
        require(oldest <= seq <= newest, f"there are versions {oldest} to {newest}, not {seq}", "$.version", 404)
        nearest = next(self._states("WHERE seq <= ? ORDER BY seq DESC LIMIT 1", seq))
        found = deque(self._replayed(nearest, seq), maxlen=1)[0][1]
        if isinstance(found, InputError):
            raise found
        return found

    def roll_back(self, version: int) -> Learner:
        """Make an old version the newest one, as a new version; return it."""
        new = replace(self.version(version), version=self.oldest_and_newest[1] + 1)
        row = (new.version, f"rollback {secrets.token_hex(8)}", self.now(), "rollback", b"", None, version)
        self.commit([row], new, snapshot=True)
        return new

    def now(self) -> float:
        """Return the time, never before that of the last event, whatever the clock does."""
        self._last = max(self._last, time.time())
        return self._last

    def verify(self) -> Verified:
        """Replay every stored event from the oldest version on; load each snapshot and the state, and compare them."""
        if (damage := self._first_value("PRAGMA quick_check")) != "ok":
            return Verified(0, f"the file is damaged: {damage}", [])
        oldest, newest = self.oldest_and_newest
        at, difference, left_behind = oldest - 1, None, list[int]()
        kept = {seq for seq, *_ in self._states("")}
        try:
            for seq, learner in self._replayed(next(self._states("ORDER BY seq LIMIT 1")), newest):
                if seq != at + 1:
                    break
                at = seq
                if isinstance(learner, InputError):
                    left_behind.append(seq)
                if seq in kept:
                    for state in self._states("WHERE seq = ?", seq):
                        difference = difference or self._difference(learner, *state)
            if at < newest:
                difference = difference or f"event {at + 1} is missing"
        except InputError as error:  # a version to begin with, or to go back to, cannot be loaded
            difference = difference or str(error)
        return Verified(max(at - oldest, 0), difference, left_behind)

    def _difference(self, replayed: Learner | InputError, seq: int, model: str, progress: str) -> str | None:
        """Return in words what is wrong with a state, where something is."""
        try:
            loaded = self._load(seq, model, progress)
        except InputError as error:
            return str(error)
        if isinstance(replayed, InputError):
            return str(replayed)
        if _same_model(replayed, loaded) and replayed.progress_text() == loaded.progress_text():
            return None
        by = msgspec.json.decode(model, type=ModelFile).toprank
        return f"version {seq} DIFFERS from the replay (toprank {by} learned it)"

    def progress(self) -> list[tuple[int, RunningMean]]:
        """Return the versions of the snapshots, with what the stream had shown until then."""
        kept = self._db.execute("SELECT seq, progress FROM snapshots ORDER BY seq")
        return [(seq, RunningMean(*msgspec.json.decode(text)[:3])) for seq, text in kept]

    def since_the_start(self, most: int) -> list[Event] | None:
        """Return all events since version 0; None where they are not all there, more than `most`, or not all labels."""
        oldest, newest = self.oldest_and_newest
        if oldest > 0 or newest > most or self._first_value("SELECT 1 FROM events WHERE kind <> 'labels'"):
            return None
        return [event for _, event in self._events(0, newest) if isinstance(event, Event)]

    def drop_before(self, at: float) -> None:
        """Forget what came before a time, up to the last snapshot before it, a thousand events at a time.

        A snapshot can be the oldest only if no later rollback goes back beyond it.
        """
        base = self._first_value(
            "SELECT max(seq) FROM snapshots s WHERE seq < (SELECT coalesce(min(seq), 9e15) FROM events WHERE at >= ?)"
            " AND NOT EXISTS (SELECT 1 FROM events e WHERE e.seq > s.seq AND e.target < s.seq)",
            at,
        )
        self._db.execute("DELETE FROM snapshots WHERE seq < ?", (base,))
        self._db.execute("DELETE FROM events WHERE seq <= ? AND seq < (SELECT min(seq) + 1000 FROM events)", (base,))

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


def _same_model(one: Learner, other: Learner) -> bool:
    """Say whether the files of two models are the same; both are written by this toprank.

    Marks of the rows learned from are compared where both are complete: older versions did not note rows.
    """
    files = [msgspec.json.decode(learner.model_text(), type=ModelFile) for learner in (one, other)]
    if not all((learner.ranker.learned_from_ or Sketch.unknown()).complete for learner in (one, other)):
        files = [msgspec.structs.replace(file, learned_from=None) for file in files]
    return bool(files[0] == files[1])


def write_refused(error: Exception) -> BodyError:
    """Return the answer when the disk refuses to write: nothing was learned, and trying again is safe."""
    why = getattr(error, "strerror", None) or str(error).partition(":")[0]  # what comes after may be a path
    return BodyError(f"the store cannot be written ({why}): nothing was learned, try again later", status=507)
