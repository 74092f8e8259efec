"""What is learned together and written in one transaction."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple

from ..data.documents import DocumentList
from .bodies import Learned
from .learning import Event, Learner, content_of_list, list_digest
from .store import Row, UnloadableState, check_loads


class Step(NamedTuple):
    """An event with the model before and after it, and the measure of its ranking before."""

    event: Event
    before: Learner
    after: Learner
    measure: float | None
    body: bytes
    digest: bytes
    """That of the list."""
    content: bytes

    def row(self, at: float) -> Row:
        """Return what to write."""
        event = self.event
        return Row(
            self.after.version, event.event_id, at, event.kind, self.body, self.measure, docs=event.docs,
            digest=self.digest, content=self.content,
        )  # fmt: skip

    def loads(self) -> bool:
        """Say whether what it leads to could be loaded again."""
        try:
            check_loads(self.after.version, self.after.model_text().decode(), self.after.progress_text())
        except UnloadableState:
            return False
        return True


class LearnRequest(NamedTuple):
    """Events that are learned all or none, and what waits for it."""

    events: list[Event]
    key: str
    future: Future[list[Learned]]


class Batch:
    """What is learned together: the steps by the ids of their events, and the digests of lists, each made once."""

    def __init__(self) -> None:
        self.steps: dict[str, Step] = {}
        self._digests: dict[int, tuple[bytes, bytes]] = {}

    def digests(self, docs: DocumentList) -> tuple[bytes, bytes]:
        """Return `list_digest` and `content_of_list`, once for all events of a ranking: they share an array."""
        if id(docs.X) not in self._digests:
            self._digests[id(docs.X)] = list_digest(docs), content_of_list(docs)
        return self._digests[id(docs.X)]
