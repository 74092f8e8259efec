"""The folder in which numba keeps compiled kernels: private, made from these sources, and undamaged.

numba chooses it (`NUMBA_CACHE_DIR`, beside the sources, or in the user's cache folder) and reads it by pickle, so who
can write to it can run code here. Its files are removed where numba would not notice that they must not be used.
"""

from __future__ import annotations

import os
import re
import stat
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

from ..errors import InputError

IMPORT = re.compile(rb"^from (\.+)([\w.]+) import", re.MULTILINE)


@cache
def source_stamp(package: Path) -> str:
    """Return a hash of all files of kernels, and of the files from which these import helpers and constants."""
    files = set((package / "core").glob("*.py"))
    for file in package.rglob("_*kernels.py"):
        names = IMPORT.findall(file.read_bytes())
        imported = (file.parents[len(dots) - 1].joinpath(*name.decode().split(".")) for dots, name in names)
        files |= {file, *(path.with_suffix(".py") for path in imported)}
    return sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()[:12]


@cache
def prepare(folder: Path, stamp: str) -> None:
    """Check that a folder of kernels is private; remove files that other sources left, and those that were cut short.

    Who can write beside the sources can change these as well, so that nothing is gained by a check there.
    """
    if folder.name != "__pycache__":
        check_private(folder)
    for file in folder.glob("*.nb[ic]"):
        if stamp not in file.name or not _is_whole(file):
            with suppress(OSError):
                file.unlink()


def _is_whole(file: Path) -> bool:
    """Say whether a file ends with a full stop, as a pickle does. Another would stop all that need the kernel."""
    try:
        with file.open("rb", buffering=0) as opened:
            opened.seek(-1, os.SEEK_END)
            return opened.read() == b"."
    except OSError:  # it is empty
        return False


def check_private(folder: Path) -> None:
    """Refuse a folder that another user can change, or has written to, where this is root; warn any other user."""
    if hasattr(os, "geteuid") and (problem := next(_problems(folder.absolute()), None)):
        message = f"{problem}, and who can write compiled code can run it: let NUMBA_CACHE_DIR name a private folder"
        if os.geteuid() == 0:
            raise InputError(message)
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _problems(folder: Path) -> Iterator[str]:
    """Say who else can change a folder, what is in it, or the way to it, also where a link leads elsewhere."""
    inside = [os.fspath(folder), *(entry.path for entry in os.scandir(folder))] if folder.is_dir() else []
    way = map(os.fspath, (folder, *folder.parents, *folder.resolve().parents))
    for place, within in (*((path, True) for path in inside), *((path, False) for path in way)):
        with suppress(FileNotFoundError):
            found = os.lstat(place)
            by_group = within and found.st_mode & stat.S_IWGRP and found.st_gid != os.getegid()
            by_all = found.st_mode & stat.S_IWOTH and (within or not found.st_mode & stat.S_ISVTX)
            if found.st_uid not in (0, os.geteuid()):
                yield f"{place} belongs to user {found.st_uid}"
            elif stat.S_ISLNK(found.st_mode):
                if within:
                    yield f"{place} is a link"
            elif by_group or by_all:
                yield f"other users can write to {place}"
