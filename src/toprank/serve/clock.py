"""The time of events, and the time by which old ones are forgotten: neither follows a clock that jumps."""

from __future__ import annotations

import logging
import time

JUMP_SECONDS = 3_600.0
"""A clock that is set by more than this is not followed until the server starts again."""
GAP_SECONDS = 86_400.0
"""Of the time between the last event and a start, no more than this counts for forgetting: the clock may be wrong."""

_log = logging.getLogger("toprank.serve")


def _elapsed() -> float:
    """Return seconds of a clock that nobody sets; where there is one, it also counts while the machine sleeps."""
    sleeping_too = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if sleeping_too is None else time.clock_gettime(sleeping_too)


class Clock:
    """Tells the time from that of the last event on.

    Parameters
    ----------
    last : float
        When the last event of the store came; 0 without one.
    """

    def __init__(self, last: float) -> None:
        started = time.time()
        self._last = self._expected = max(last, started)
        self._at, self._jumped, self._uncounted = _elapsed(), False, 0.0
        gap = started - last if last else 0.0
        if gap > GAP_SECONDS:
            self._uncounted = gap - GAP_SECONDS
            _log.warning(
                "the last event came %.1f days before this start by the clock: for --keep one day of them counts",
                gap / 86_400,
            )
        elif gap < -JUMP_SECONDS:
            _log.warning("the clock is %.1f days before the last event: is it right?", -gap / 86_400)

    def now(self) -> float:
        """Return the time, never before that of the last event; a clock that is set by hours changes nothing."""
        elapsed, wall = _elapsed(), time.time()
        self._expected, self._at = self._expected + elapsed - self._at, elapsed
        jumped = abs(wall - self._expected) > JUMP_SECONDS
        if jumped and not self._jumped:
            _log.warning(
                "the clock was set by %.1f h: events are timed as if it had not been", (wall - self._expected) / 3600
            )
        self._jumped = jumped
        if not jumped:
            self._expected = wall
        self._last = max(self._last, self._expected)
        return self._last

    def for_forgetting(self) -> float:
        """Return the earliest time that it may be: what is forgotten by it is old by any reckoning."""
        return min(self.now(), time.time()) - self._uncounted
