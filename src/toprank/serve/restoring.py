"""A backup that takes the place of a store."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from .._files import draft_of, sync
from ..errors import InputError
from . import history
from .layout import beside, check_log
from .store import Store

_PARTS = ("", "-wal", "-shm", "-mark")
"""What a store may consist of."""
_LOCKED_BYTES = (0x40000000, 512)
"""Where SQLite locks a file: https://sqlite.org/fileformat2.html#the_lock_byte_page."""


def restore(backup: Path, path: Path) -> tuple[int, Path | None]:
    """Put a copy of a backup into the place of a store; return its version, and where the old store is now.

    The copy is checked and loaded before anything is moved. It gets a new id, since its next versions are others than
    those that the store had.
    """
    if not backup.is_file():
        raise InputError(f"{backup}: there is no such backup")
    if path.exists() and path.samefile(backup):
        raise InputError(f"{backup} is the store itself: name a backup of it")
    if _is_in_use(path):
        raise InputError(f"{path} is in use by a server: stop it first")
    check_log(backup)
    draft = draft_of(path)
    try:
        _copy(backup, draft)
        with closing(Store(draft)) as copied:
            if (damage := copied.damage()) is not None:
                raise InputError(f"{backup} is damaged: {damage}")
            version = history.newest_version(copied).version
            copied.renew_id()
        aside = _move_aside(path)
        os.rename(draft, path)
        sync(path.parent)
    except OSError as error:
        raise InputError(f"{path} cannot be restored: {error.strerror or error}") from None
    finally:
        for part in _PARTS:
            beside(draft, part).unlink(missing_ok=True)
    return version, aside


def _copy(backup: Path, draft: Path) -> None:
    """Copy a store with what is in its log; the backup stays as it is."""
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    alone = "" if beside(backup, "-wal").exists() else "&immutable=1"
    try:
        with (
            closing(sqlite3.connect(f"{backup.resolve().as_uri()}?mode=ro{alone}", uri=True)) as source,
            closing(sqlite3.connect(draft)) as target,
        ):
            source.backup(target)
    except sqlite3.DatabaseError as error:
        raise InputError(f"{backup} is not a store of toprank serve: {error}") from None


def _move_aside(path: Path) -> Path | None:
    """Give a store that is there another name, with all that belongs to it; it can still be opened."""
    if not any(beside(path, part).exists() for part in _PARTS):
        return None
    aside = path.with_name(f"{path.stem}-replaced-{time.time_ns()}{path.suffix}")
    for part in _PARTS:
        if beside(path, part).exists():
            os.rename(beside(path, part), beside(aside, part))
    return aside


def _is_in_use(path: Path) -> bool:
    """Say whether a server has a store open, without opening it: SQLite would take a log beside it for its own."""
    if sys.platform == "win32" or not path.exists():
        return False
    import fcntl

    start, length = _LOCKED_BYTES
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
        except OSError:
            return True
    return False
