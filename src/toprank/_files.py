"""Files that appear whole or not at all, under the name and with the rights that were asked for."""

from __future__ import annotations

import glob
import io
import os
import platform
import secrets
import shutil
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ._progress import aside
from .errors import InputError

_STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a draft of the same suffix, and put it in the place of `path` when the block ends without an error.

    A link is followed, and a file that is replaced keeps its mode and, where that is allowed, its owner. What is no
    regular file (a pipe, a device, `-` for standard output) is written to when the draft is whole, and never replaced.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with replacing(folder / "a.txt") as draft:
    ...     _ = draft.write_text("whole")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    if is_stream(path):
        with tempfile.TemporaryDirectory(prefix="toprank-") as folder:
            draft = Path(folder, f"draft-{Path(path).name}"[-100:])
            draft.touch()
            yield draft
            with open_stream(path) as out, draft.open("rb") as whole:
                shutil.copyfileobj(whole, out)
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"{path} is a folder: name a file to write")
    draft = draft_of(target)
    try:
        with _naming_the_file(path, draft, target, target.parent):
            draft.touch(mode=0o600, exist_ok=False)
            yield draft
            _copy_rights(draft, target)
            sync(draft)
            os.replace(draft, target)
            sync(target.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


LOCK_TIMEOUT = 30.0
"""Seconds that a command waits for another one to let go of a file."""


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let nobody else inside who locks the same file: what is read, changed and replaced here loses nothing.

    The lock is held on a file beside it that ends in `.lock` and stays there: the file itself is replaced.
    """
    beside = f"{os.path.realpath(path)}.lock"
    try:
        opened = os.open(beside, os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise InputError(f"{path} cannot be locked: {beside}: {error.strerror}") from None
    try:
        deadline = time.monotonic() + LOCK_TIMEOUT
        while not _try_lock(opened, path):
            if time.monotonic() > deadline:
                raise InputError(f"{path} is being changed by another command: try again when it is done")
            time.sleep(0.01)
        yield
    finally:
        os.close(opened)  # which unlocks it


def _try_lock(opened: int, path: str | os.PathLike[str]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(opened, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:
        raise InputError(f"{path} cannot be locked on this disk: {error.strerror}") from None
    return True


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Say whether `path` names standard output, in which nothing else may then stand."""
    return os.fspath(path) in _STANDARD_OUTPUT


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Say whether `path` is written to and never replaced: standard output, a pipe, a device, a file descriptor."""
    name = os.fspath(path)
    if is_standard_output(name) or os.path.abspath(name).startswith(("/dev/", "/proc/")):
        return not name.startswith("/dev/shm/")
    try:
        mode = os.stat(name).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def read_whole(path: str | os.PathLike[str]) -> tuple[bytes, str]:
    """Return what a file holds, `-` being standard input, and what an error message calls it."""
    if os.fspath(path) == "-":
        return sys.stdin.buffer.read(), "<stdin>"
    try:
        return Path(path).read_bytes(), os.fspath(path)
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: {error.strerror}") from None


@contextmanager
def open_stream(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open what `is_stream` says is one; standard output stays open."""
    if is_standard_output(path):
        with aside():
            sys.stdout.flush()
            if hasattr(sys.stdout, "buffer"):
                yield sys.stdout.buffer
                sys.stdout.buffer.flush()
            else:  # that of a notebook takes text alone
                kept = io.BytesIO()
                yield kept
                sys.stdout.write(kept.getvalue().decode())
        return
    with _naming_the_file(path), open(path, "wb") as file:
        yield file


def draft_of(target: Path) -> Path:
    """Name a draft beside `target`, and remove the drafts that killed processes of this machine left there."""
    host, name = f"{zlib.crc32(platform.node().encode()):08x}", target.name[-100:]
    for old in target.parent.glob(f".toprank-{host}-*-{glob.escape(name)}"):
        process = old.name.split("-")[2]
        if process.isdecimal() and not _is_alive(int(process)):
            shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    return target.with_name(f".toprank-{host}-{os.getpid()}-{secrets.token_hex(4)}-{name}")


def sync(path: Path) -> None:
    """Have the disk keep a file, or the names in a folder, before going on."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if not path.is_dir():  # not every system can do that for a folder
            raise error
    finally:
        os.close(handle)


def umask() -> int:
    """Return which rights new files do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _copy_rights(draft: Path, target: Path) -> None:
    try:
        old = os.stat(target)
    except FileNotFoundError:
        os.chmod(draft, 0o666 & ~umask())
        return
    with suppress(PermissionError, AttributeError):
        os.chown(draft, old.st_uid, old.st_gid)
    os.chmod(draft, stat.S_IMODE(old.st_mode))


@contextmanager
def _naming_the_file(path: str | os.PathLike[str], *ours: Path) -> Iterator[None]:
    """Say which file could not be written; other errors inside the block pass as they are."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and error.filename not in (os.fspath(path), *map(str, ours)):
            raise
        raise InputError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from None


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
