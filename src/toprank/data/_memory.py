"""What a machine can hold: its memory, and arrays that would fill it with nothing."""

from __future__ import annotations

import os


def mostly_empty(size: int, written: int) -> bool:
    """Say whether an array of so many bytes is large, and all but nothing of it is written: a mistake, not data."""
    return size > max(1 << 28, 512 * written)


def physical_memory() -> float:
    """Return the bytes of memory that the machine has, or infinity if it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")
