"""How much each key may take in a time: of requests, and of bytes in the store."""

from __future__ import annotations

import time
from dataclasses import dataclass

DAY = 86_400.0


class Allowance:
    """What each name has left: it fills at a rate, up to a most; seconds are those of a clock that is never set.

    >>> bytes_left = Allowance()
    >>> bytes_left.wait("shop", 60.0, rate=1.0, most=100.0)
    0.0
    >>> bytes_left.take("shop", 60.0)
    >>> round(bytes_left.wait("shop", 60.0, rate=1.0, most=100.0))
    20
    """

    def __init__(self) -> None:
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, name: str, amount: float, *, rate: float, most: float) -> float:
        """Return after how many seconds a name may take an amount: 0 means now."""
        now = time.monotonic()
        left, at = self._left.get(name, (most, now))
        left = min(most, left + (now - at) * rate)
        self._left[name] = (left, now)
        return max(0.0, (amount - left) / rate)

    def take(self, name: str, amount: float) -> None:
        """Take an amount that there was no wait for."""
        if amount:
            left, at = self._left[name]
            self._left[name] = (left - amount, at)


@dataclass(frozen=True)
class StorageLimits:
    """Most bytes that events may add to the store."""

    request: float = 256e6
    """By one request."""
    key_per_day: float = 20e9
    """By one key in a day."""
