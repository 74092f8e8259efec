"""A cluster that may lose workers: what is asked of it is done, or an error says why, within a time that is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

from ..errors import InputError, MissingExtraError, WorkersLost

POLL = 0.5
"""Seconds between two looks at how things stand."""

ATTEMPTS = 4
"""How often the same is asked for, under new keys each time, before the workers count as lost."""

LONG = 10
"""So many times the time without progress may pass while workers say that they are at it."""


GONE = 2.0
"""Seconds without progress after which what was asked of a worker that went is asked of another."""


class Asked(NamedTuple):
    """Futures, and the workers that they were meant for."""

    futures: list[Any]
    at: Sequence[str] = ()


class StalledError(Exception):
    """What was asked for must be asked again."""


def distributed() -> Any:
    """Import Dask's cluster, or say how to install it."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("distributed", extra="dask", purpose="placing data on a cluster") from None
    return distributed


class Workers:
    """A client of a cluster; `timeout` is how many seconds may pass without a worker, or without progress."""

    def __init__(self, client: Any, timeout: float) -> None:
        if not isinstance(client, distributed().Client):
            raise InputError(f"client must be a distributed.Client, got {type(client).__name__}")
        if client.asynchronous:
            raise InputError("client must not be asynchronous: make it with Client(..., asynchronous=False)")
        self.client, self.timeout = client, timeout

    def threads(self) -> dict[str, int]:
        """Return the workers that are there, with their numbers of threads."""
        try:
            found: dict[str, int] = self.client.sync(self.client.scheduler.ncores, callback_timeout=self.timeout)
        except (OSError, TimeoutError, AttributeError) as error:
            raise WorkersLost(f"the scheduler of the cluster does not answer: {error}") from None
        return found

    def memory(self) -> int:
        """Return the bytes that all workers together may use; 0 where one of them has no limit."""
        limits = [
            worker["memory_limit"] or 0 for worker in self.client.scheduler_info(n_workers=-1)["workers"].values()
        ]
        return sum(limits) if all(limits) else 0

    def results(self, ask: Callable[[], Asked], renew: Callable[[int], None], of: Sequence[Any] = ()) -> list[Any]:
        """Return the results of the futures that `ask` makes, asking again after `renew` where nothing moves.

        `of` are futures that they wait for. What was asked for is taken back where it is not waited for any longer.
        """

        def gathered(futures: Sequence[Any]) -> list[Any]:
            _raise_first(futures)  # of several errors always the same one
            found: list[Any] = self.client.gather(futures)
            return found

        answers: list[Any] = self._settled(ask, renew, of, gathered)
        return answers

    def ready(self, ask: Callable[[], Asked], renew: Callable[[int], None]) -> None:
        """Wait until all futures have results, which stay where they are."""
        self._settled(ask, renew, (), _raise_first)

    def _settled(self, ask: Callable[[], Asked], renew: Callable[[int], None], of: Sequence[Any], end: Any) -> Any:
        for attempt in range(ATTEMPTS):
            asked = Asked([])
            try:
                asked = ask()
                self._wait(asked, of, self.timeout * 2**attempt)
                return end(asked.futures)
            except (StalledError, CancelledError):
                self.drop(asked.futures)
                renew(attempt)
            except distributed().KilledWorker as error:
                raise InputError(
                    f"{error.allowed_failures + 1} workers died one after the other at the same work, which is what "
                    "too little memory looks like: give the workers more of it, or cut the data into more parts "
                    "(parts=…)"
                ) from None
            except BaseException:
                self.drop(asked.futures)
                raise
        raise WorkersLost(f"the workers made no progress in {ATTEMPTS} attempts: look at their logs")

    def free(self, futures: Iterable[Any]) -> None:
        """Let what was loaded by a certain worker be loaded by any, should it be lost."""
        anywhere: dict[str, list[str]] = {future.key: [] for future in futures}
        self.client.sync(self.client.scheduler.set_restrictions, worker=anywhere)

    def drop(self, futures: Sequence[Any]) -> None:
        """Take back what was asked for."""
        if futures and self.client.status == "running":
            self.client.cancel(list(futures), force=True)

    def _wait(self, asked: Asked, of: Sequence[Any], patience: float) -> None:
        moved = alive = time.monotonic()
        done = -1
        while True:
            try:
                distributed().wait(asked.futures, timeout=POLL)
                return
            except TimeoutError:
                pass
            if self.client.status != "running":
                raise WorkersLost("the client of the cluster was closed, or its scheduler is gone")
            there, now = self.threads(), time.monotonic()
            finished = sum(future.done() for future in (*asked.futures, *of))
            if finished > done or not there:
                moved, done = now, finished
            if there:
                alive = now
            elif now - alive > self.timeout:
                raise WorkersLost(f"no worker came back within {self.timeout:g} s")
            # What is asked of a worker that went may wait for ever for it: the scheduler looks for others only at once.
            limit = patience if all(address in there for address in asked.at) else GONE
            if now - moved > limit and (now - moved > LONG * patience or not self._working(asked.futures, of)):
                raise StalledError

    def _working(self, futures: Sequence[Any], of: Sequence[Any]) -> bool:
        wanted = {future.key for future in (*futures, *of) if not future.done()}
        return any(not wanted.isdisjoint(keys) for keys in self.client.processing().values())


def _raise_first(futures: Sequence[Any]) -> None:
    for future in futures:
        if future.status != "finished":
            future.result()
