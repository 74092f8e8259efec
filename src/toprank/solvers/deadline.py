"""A time by which every solver ends with what it has: processor seconds of this process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf

OUT_OF_TIME = "the time that was given ran out"

_END: ContextVar[float] = ContextVar("end of the time that was given", default=inf)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Let solvers inside stop after so many processor seconds with what they have; the earliest deadline counts.

    >>> with deadline(0.0):
    ...     out_of_time()
    True
    >>> out_of_time()
    False
    """
    token = _END.set(min(_END.get(), time.process_time() + seconds))
    try:
        yield
    finally:
        _END.reset(token)


def out_of_time() -> bool:
    """Say whether the deadline has passed: a solver asks after each of its steps."""
    return time.process_time() >= _END.get()
