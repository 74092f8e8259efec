"""Arrays that grow at their end without ever being in memory twice."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from typing import Any

import numpy as np

from .._typing import AnyArray


class GrowingArray:
    """An array that grows in place: its pages move instead of their contents, where the system can do that.

    (An ndarray cannot: `resize` copies an array of huge pages, and writes to all memory that it adds.)
    """

    def __init__(self, dtype: Any) -> None:
        self.size = 0
        self._dtype = np.dtype(dtype)
        self._map: mmap.mmap | None = None

    def extend(self, n: int, fraction: float | None = None) -> AnyArray:
        """Add n values and return them, to be written and forgotten before the array grows again."""
        size, have = self.size + n, 0 if self._map is None else len(self._map)
        if size * self._dtype.itemsize > have:
            if size * self._dtype.itemsize > physical_memory():
                raise MemoryError
            # A generous guess: memory that is never written to takes none.
            self._resize(int(1.2 * size / fraction) if fraction and not have else size + size // 2, size)
        self.size = size
        return self.whole()[size - n :]

    def append(self, block: AnyArray, fraction: float | None = None) -> None:
        """Add values."""
        self.extend(len(block), fraction)[:] = block

    def _resize(self, size: int, least: int) -> None:
        for wanted in (size, least):
            try:
                self._map = resized(self._map, wanted * self._dtype.itemsize)
                return
            except OSError:  # more than the system grants
                pass
        raise MemoryError

    def whole(self) -> AnyArray:
        """Return all values, without a copy."""
        if self._map is None:
            return np.empty(0, dtype=self._dtype)
        return np.frombuffer(self._map, dtype=self._dtype, count=self.size)

    def cut(self, size: int) -> None:
        """Give back the memory behind the first `size` values."""
        self.size = size
        if self._map is not None:
            self._map = resized(self._map, size * self._dtype.itemsize) if size else None

    def take(self) -> AnyArray:
        """Return all values and forget them."""
        self.cut(self.size)
        array = self.whole()
        self.size, self._map = 0, None
        return array if array.nbytes > 1 << 16 else array.copy()


def resized(old: mmap.mmap | None, size: int) -> mmap.mmap:
    """Return anonymous memory of another size with the same contents."""
    if old is not None:
        try:
            old.resize(size)
            return old
        except (SystemError, ValueError):  # not on this system
            pass
    flags = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
    new = mmap.mmap(-1, size, **flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            new.madvise(mmap.MADV_HUGEPAGE)
    if old is not None:
        with memoryview(old) as source, memoryview(new) as target:
            n = min(len(source), len(target))
            target[:n] = source[:n]
        old.close()
    return new


def mostly_empty(size: int, written: int) -> bool:
    """Say whether an array of so many bytes is large, and all but nothing of it is written: a mistake, not data."""
    return size > max(1 << 28, 512 * written)


def physical_memory() -> float:
    """Return the bytes of memory that the machine has, or infinity if it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")
