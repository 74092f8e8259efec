"""A cluster that may lose workers: a request is done, or an error says why not, within a time that is known."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

from ..errors import InputError, MissingExtraError, WorkersLost

POLL_SECONDS = 0.5
"""Seconds between two looks at how things stand."""

ATTEMPTS = 4
"""How often the same is requested, under new keys each time, before the workers count as lost."""

LONGEST_TIMES = 10
"""While workers say that they are busy, so many times the usual time may pass without progress."""

GONE_SECONDS = 2.0
"""Seconds without progress after which a request to a worker that is gone goes to another one."""


class Request(NamedTuple):
    """Futures, and the workers that they were meant for."""

    futures: list[Any]
    workers: Sequence[str] = ()


class StalledError(Exception):
    """A request must be made again."""


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

    def results(self, ask: Callable[[], Request], reload: Callable[[int], None], of: Sequence[Any] = ()) -> list[Any]:
        """Return the results of the futures that `ask` makes, asking again after `reload` where nothing moves.

        `of` are futures that they wait for. A request is cancelled when nobody waits for it any longer.
        """

        def gathered(futures: Sequence[Any]) -> list[Any]:
            _raise_first(futures)  # of several errors always the same one
            found: list[Any] = self.client.gather(futures)
            return found

        answers: list[Any] = self._settled(ask, reload, of, gathered)
        return answers

    def ready(self, ask: Callable[[], Request], reload: Callable[[int], None]) -> None:
        """Wait until all futures have results, which stay where they are."""
        self._settled(ask, reload, (), _raise_first)

    def _settled(self, ask: Callable[[], Request], reload: Callable[[int], None], of: Sequence[Any], end: Any) -> Any:
        for attempt in range(ATTEMPTS):
            request = Request([])
            try:
                request = ask()
                self._wait(request, of, self.timeout * 2**attempt)
                return end(request.futures)
            except (StalledError, CancelledError):
                self.drop(request.futures)
                reload(attempt)
            except distributed().KilledWorker as error:
                raise InputError(
                    f"{error.allowed_failures + 1} workers died one after the other at the same work, which is what "
                    "too little memory looks like: give the workers more of it, or cut the data into more parts "
                    "(parts=…)"
                ) from None
            except BaseException:
                self.drop(request.futures)
                raise
        raise WorkersLost(f"the workers made no progress in {ATTEMPTS} attempts: look at their logs")

    def free(self, futures: Iterable[Any]) -> None:
        """Allow any worker to load again what one certain worker has loaded, should it be lost."""
        anywhere: dict[str, list[str]] = {future.key: [] for future in futures}
        self.client.sync(self.client.scheduler.set_restrictions, worker=anywhere)

    def drop(self, futures: Sequence[Any]) -> None:
        """Cancel futures."""
        if futures and self.client.status == "running":
            self.client.cancel(list(futures), force=True)

    def _wait(self, request: Request, of: Sequence[Any], patience: float) -> None:
        moved = alive = time.monotonic()
        done = -1
        while True:
            try:
                distributed().wait(request.futures, timeout=POLL_SECONDS)
                return
            except TimeoutError:
                pass
            if self.client.status != "running":
                raise WorkersLost("the client of the cluster was closed, or its scheduler is gone")
            there, now = self.threads(), time.monotonic()
            finished = sum(future.done() for future in (*request.futures, *of))
            if finished > done or not there:
                moved, done = now, finished
            if there:
                alive = now
            elif now - alive > self.timeout:
                raise WorkersLost(f"no worker came back within {self.timeout:g} s")
            # A request to a worker that is gone may wait for ever: the scheduler looks for another only at the start.
            limit = patience if all(address in there for address in request.workers) else GONE_SECONDS
            still = now - moved
            if still > limit and (still > LONGEST_TIMES * patience or not self._working(request.futures, of)):
                raise StalledError

    def _working(self, futures: Sequence[Any], of: Sequence[Any]) -> bool:
        wanted = {future.key for future in (*futures, *of) if not future.done()}
        return any(not wanted.isdisjoint(keys) for keys in self.client.processing().values())


def _raise_first(futures: Sequence[Any]) -> None:
    for future in futures:
        if future.status != "finished":
            future.result()
