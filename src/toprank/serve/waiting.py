"""Rankings that wait for feedback."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict

import numpy as np

from ..data.documents import DocumentList
from .bodies import BodyError

OF_REPLICA = "replica-"
"""What the ids of rankings begin with that a replica made: they wait nowhere, since it does not learn."""
_ADVICE = (
    "send the documents again with the event: items and labels; or items, shown (the page as it was sampled), clicks "
    'and "explore": true'
)


class WaitingRankings:
    """Rankings that may still get feedback: so many bytes and seconds at most, the oldest go first."""

    def __init__(self, most: float = 256e6, seconds: float = 1800.0) -> None:
        self._most, self._seconds, self.nbytes = most, seconds, 0
        self.lists: OrderedDict[str, tuple[float, DocumentList, int]] = OrderedDict()

    @staticmethod
    def name_of_replica() -> str:
        """Return an id for a ranking of a replica."""
        return OF_REPLICA + secrets.token_urlsafe(12)

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
            kept = f"rankings wait {self._seconds:g} s and {self._most / 1e6:g} MB at most, and a restart forgets them"
            why = f"this ranking is not known (any more): {kept}"
            if name.startswith(OF_REPLICA):
                why = "a replica made this ranking, and keeps none"
            raise BodyError(f"{why}; {_ADVICE}", status=404)
        return docs
