"""What every reader promises for any bytes: a result or one clear line, in bounded time and bounded memory."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toprank.errors import InputError


class BrokenPromiseError(AssertionError):
    """A reader did what it must not."""


@dataclass(frozen=True)
class Promise:
    """`read` takes bytes; it returns something or raises `InputError`, within `seconds` and `memory(len(bytes))`."""

    name: str
    read: Callable[[bytes], Any]
    fixed: int
    """Bytes that may be held whatever the input is: buffers, tables of the standard library, first imports."""
    factor: int
    """Bytes that may be held at once for each byte of input."""
    seconds: float = 10.0
    """Most time that inputs of the sizes that are drawn here (some KB) may take."""

    def memory(self, size: int) -> int:
        """Most bytes that reading an input of this size may hold at once."""
        return self.fixed + self.factor * size

    def check(self, data: bytes) -> str | None:
        """Read `data`; return None for a result, the message for a refusal, and raise for anything else."""
        refusal, took, held = self._once(data)
        if took > self.seconds or held > self.memory(len(data)):  # it may have compiled kernels: they are there now
            refusal, took, held = self._once(data)
        if took > self.seconds:
            raise BrokenPromiseError(f"{self.name}: {len(data)} bytes took {took:.1f} s")
        self._check_memory(data, held)
        return refusal

    def _check_memory(self, data: bytes, held: int) -> None:
        if held > self.memory(len(data)):
            raise BrokenPromiseError(f"{self.name}: {len(data)} bytes of input held {held / 1e6:.0f} MB")

    def _once(self, data: bytes) -> tuple[str | None, float, int]:
        arrow = _Arrow()
        started = time.monotonic()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")
                _, refusal = self.read(data), None
        except InputError as error:
            refusal = str(error)
            if not refusal.strip() or len(refusal.splitlines()) != 1:
                raise BrokenPromiseError(f"{self.name}: a refusal is one line, not {refusal!r}") from error
            if len(refusal) > 2000:
                raise BrokenPromiseError(f"{self.name}: a refusal of {len(refusal)} letters") from error
        took, held = time.monotonic() - started, arrow.peak()
        self._check_memory(data, held)  # no kernel is compiled into it, and a second reading would not tell it again
        if tracemalloc.is_tracing():
            held += tracemalloc.get_traced_memory()[1] - arrow.before
        return refusal, took, held


class _Arrow:
    """What was held before. Arrow counts its memory apart from Python, and tells only the highest peak so far."""

    def __init__(self) -> None:
        try:
            import pyarrow as pa
        except ImportError:
            self._pool = None
        else:
            self._pool = pa.default_memory_pool()
        self._highest = self._pool.max_memory() if self._pool else 0
        self.before = 0
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()
            self.before = tracemalloc.get_traced_memory()[0]

    def peak(self) -> int:
        highest = self._pool.max_memory() if self._pool else 0
        return highest if highest > self._highest else 0
