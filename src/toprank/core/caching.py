"""Compiled kernels on disk, in a cache that can only help.

What it cannot read is compiled, what it cannot write stays unwritten, with one warning. A kernel is compiled again when
its file, or a file that its file imports from, has changed: numba itself looks at the first alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from numba.core import caching

PATIENCE = 60.0
"""Seconds that a process waits for another one, which may have been stopped, to compile a kernel."""
_IMPORT = re.compile(rb"^from (\.+)([\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


# Under these names until numba 0.61.
_Provided: Any = getattr(caching, "UserProvidedCacheLocator", None) or caching._UserProvidedCacheLocator
_InTree: Any = getattr(caching, "InTreeCacheLocator", None) or caching._InTreeCacheLocator


def cache_of(function: Any) -> Any:
    """Return the cache of a kernel; where no folder can be written to, one that was filled before may still be read."""
    try:
        return KernelCache(function)
    except RuntimeError:  # numba's way to say that it found no folder
        return _NoFolder()


def source_stamp(file: str | os.PathLike[str]) -> str:
    """Return a hash of a file of kernels and of all that it imports from its package."""
    digest = hashlib.sha256()
    for path in sorted(_sources(Path(file))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(file: Path) -> set[Path]:
    found, waiting = {file}, [file]
    while waiting:
        for path in _imports(waiting.pop()) - found:
            found.add(path)
            if path.name.endswith("_kernels.py"):  # other files give constants, which stand in them
                waiting.append(path)
    return found


@cache
def _imports(file: Path) -> frozenset[Path]:
    places = []
    for dots, module, names in _IMPORT.findall(file.read_bytes()):
        home = (
            file.parents[len(dots) - 1].joinpath(*module.decode().split(".")) if module else file.parents[len(dots) - 1]
        )
        places += [home.with_suffix(".py"), *(home / f"{name.decode()}.py" for name in re.findall(rb"\w+", names))]
    return frozenset(place for place in places if place.is_file())


class _ReadOnly(_InTree):  # type: ignore[misc]
    """Folders beside the sources that cannot be written to: an installation that was filled before."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return the folder if it is there."""
        locator = cls(py_func, py_file)
        return locator if os.path.isdir(locator.get_cache_path()) else None


class _ReadOnlyProvided(_Provided):  # type: ignore[misc]
    """The same for the folder that NUMBA_CACHE_DIR names."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return the folder if it is there."""
        locator = cls(py_func, py_file) if caching.config.CACHE_DIR else None
        return locator if locator is not None and os.path.isdir(locator.get_cache_path()) else None


class _Impl(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (*caching.CompileResultCacheImpl._locator_classes, _ReadOnlyProvided, _ReadOnly)


class KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """numba's cache of one kernel, under a stamp that knows what the kernel is made of.

    What the folder for compiled code has not is looked for beside the sources too, unless they can be written to:
    whoever installed them may have left it there (the container does).
    """

    _impl_class = _Impl
    _cache_file: Any

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._claim: int | None = None
        self._installed = self._cache_file
        with suppress(OSError):  # sources that are no files: numba's own stamp stays
            file, base = function.__code__.co_filename, self._impl.filename_base
            stamp, beside = source_stamp(file), _InTree(function, file).get_cache_path()
            self._cache_file = caching.IndexDataCacheFile(self._cache_path, base, stamp)
            fixed = not os.access(beside, os.W_OK)
            self._installed = caching.IndexDataCacheFile(beside, base, stamp) if fixed else self._cache_file

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the kernel compiled before, or None where there is none that can be read.

        After None the kernel is ours to compile until `release`: other processes wait for it and read it then.
        """
        found = self._read(sig, target_context)
        if found is None and self._claim is None:
            self._claim = _locked(self._lock)
            found = self._read(sig, target_context)
        return found

    def release(self) -> None:
        """Let other processes go on."""
        if self._claim is not None:
            with suppress(OSError):  # cleared meanwhile
                self._lock.unlink()
            os.close(self._claim)
            self._claim = None

    @property
    def _lock(self) -> Path:
        return Path(self._cache_path) / f"{self._impl.filename_base}.lock"

    def _read(self, sig: Any, target_context: Any) -> Any:
        own = self._cache_file
        for file in (own, self._installed):
            try:
                self._cache_file = file
                found = super().load_overload(sig, target_context)
                if found is not None:
                    return found
            except Exception:  # cut short, or made of modules that are gone: unpickling may raise anything
                if file is own:
                    with suppress(Exception):
                        own.flush()  # so that what is compiled now takes its place
            finally:
                self._cache_file = own
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if the disk lets us."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _warn_once(f"{self._cache_path}: {error}")


def _locked(file: Path) -> int | None:
    """Return the file opened and locked, as soon as no other process has it locked; None where that takes too long."""
    if os.name == "nt":
        return None
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        opened = os.open(file, os.O_CREAT | os.O_WRONLY)
    except OSError:  # a folder that can only be read
        return None
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        try:
            flock(opened, LOCK_EX | LOCK_NB)
            return opened
        except BlockingIOError:
            sleep(0.02)
        except OSError:  # a disk without locks
            break
    os.close(opened)
    return None


class NotKept(caching.NullCache):  # type: ignore[misc]
    """For kernels that only go into others."""

    def release(self) -> None:
        """Nobody waits."""


class _NoFolder(NotKept):
    def save_overload(self, sig: Any, data: Any) -> None:
        _warn_once("no folder can be written to")


@cache
def _warned() -> list[str]:
    return []


def _warn_once(reason: str) -> None:
    if not _warned():
        _warned().append(reason)
        warnings.warn(
            f"compiled code is not kept, and compiled again by every process ({reason}): let NUMBA_CACHE_DIR name a "
            "folder that can be written to",
            RuntimeWarning,
            stacklevel=2,
        )
