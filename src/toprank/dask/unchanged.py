"""Files that must stay what they were: what a store says of a file is noted at the scan and compared at every load.

A worker that is lost is replaced by one that reads its parts again. If a file were another one by then, old and new
rows would be mixed without a word.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InputError, naming

Marks = dict[str, str]
"""What is known of a file: size, times and checksums, as far as its file system tells them."""

_TOLD = ("size", "mtime", "LastModified", "last_modified", "Last-Modified", "ETag", "etag", "Content-MD5", "md5Hash")


def marks_of(fs: Any, file: str) -> Marks:
    """Return what the file system says of a file now, not what it remembers of it."""
    with naming(file, Exception):  # every file system has errors of its own
        fs.invalidate_cache(file)
        told = fs.info(file)
    return {name: str(told[name]) for name in _TOLD if told.get(name) is not None}


def marks_of_folder(folder: Path) -> dict[str, Marks]:
    """Return size and time of the arrays of a folder."""
    with naming(str(folder), OSError):
        found = {entry.name: entry.stat() for entry in os.scandir(folder)}
    return {name: {"size": str(stat.st_size), "mtime": str(stat.st_mtime_ns)} for name, stat in sorted(found.items())}


def check_marks(file: str, before: Marks, now: Marks) -> None:
    """Refuse a file of which anything else is told now.

    >>> check_marks("train.txt", {"size": "10", "mtime": "1.5"}, {"size": "10", "mtime": "2.5"})
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: train.txt changed after it was scanned (mtime was 1.5 and is 2.5): read the data again
    """
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            what = f"{name} was {before.get(name, 'not told')} and is {now.get(name, 'not told')}"
            raise InputError(f"{file} changed after it was scanned ({what}): read the data again")


@contextmanager
def unchanged(fs: Any, file: str, marks: Marks) -> Iterator[None]:
    """Refuse a file that is another one than at the scan, before it is read or while it is."""
    check_marks(file, marks, marks_of(fs, file))
    yield
    check_marks(file, marks, marks_of(fs, file))


def digest(content: bytes) -> str:
    """Return what tells bytes from others."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def footer_digest(stream: Any) -> str:
    """Return the digest of the end of a Parquet file: where its columns are, how large, and what range of values."""
    stream.seek(-8, os.SEEK_END)
    length = int.from_bytes(stream.read(8)[:4], "little")
    stream.seek(-8 - length, os.SEEK_END)
    found = digest(stream.read(length))
    stream.seek(0)
    return found
