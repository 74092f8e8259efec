"""Rankings that wait for feedback."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict

import numpy as np

from ..data.documents import DocumentList
from .bodies import BodyError


class WaitingRankings:
    """Rankings that may still get feedback: so many bytes and seconds at most, the oldest go first."""

    def __init__(self, most: float = 256e6, seconds: float = 1800.0) -> None:
        self._most, self._seconds, self.nbytes = most, seconds, 0
        self.lists: OrderedDict[str, tuple[float, DocumentList, int]] = OrderedDict()

    def put(self, docs: DocumentList) -> str:
        """Keep a ranking for a while; return its id."""
        name, now, size = secrets.token_urlsafe(12), time.monotonic(), docs.nbytes
        self.lists[name] = (now, docs, size)
        self.nbytes += size
        while self.lists:
            at, _, oldest = next(iter(self.lists.values()))
            if self.nbytes <= self._most and now - at <= self._seconds:
                break
            self.lists.popitem(last=False)
            self.nbytes -= oldest
        return name

    def get(self, name: str) -> DocumentList:
        """Return a ranking that still waits."""
        at, docs, _ = self.lists.get(name, (-np.inf, None, 0))
        if docs is None or time.monotonic() - at > self._seconds:
            raise BodyError("this ranking is unknown, or was forgotten by now: send items with the event", status=404)
        return docs
