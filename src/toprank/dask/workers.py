"""A cluster that may lose workers: a request is done, or an error says why not, within a time that is known."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

from .._version import __version__
from ..errors import InputError, MissingExtraError, WorkersLost

T = TypeVar("T")

POLL_SECONDS = 0.5
"""Seconds between two looks at how things stand."""

ATTEMPTS = 4
"""How often the same is requested, under new keys each time, before the workers count as lost."""

LONGEST_TIMES = 10
"""While workers say that they are busy, so many times the usual time may pass without progress."""

GONE_SECONDS = 2.0
"""Seconds without progress after which a request to a worker that is gone goes to another one."""


SCHEDULER_GONE = "the client of the cluster was closed, or its scheduler is gone"


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


@cache
def installed() -> dict[str, str]:
    """Return the versions here that decide what weights come out."""
    return {"toprank": __version__, "numba": version("numba")}


def on_same_versions(wanted: dict[str, str], fn: Callable[..., T], /, *args: Any, **named: Any) -> T:
    """Return what fn returns; runs on a worker, which must have the versions of the client."""
    found = installed()
    for package, number in wanted.items():
        if found.get(package) != number:
            where = f"the worker {distributed().get_worker().address} has {package} {found.get(package)}"
            raise InputError(f"{where}, and the client has {package} {number}: install the same version everywhere")
    return fn(*args, **named)


class Workers:
    """A client of a cluster; `timeout` is how many seconds may pass without a worker, or without progress."""

    def __init__(self, client: Any, timeout: float) -> None:
        if not isinstance(client, distributed().Client):
            raise InputError(f"client must be a distributed.Client, got {type(client).__name__}")
        if client.asynchronous:
            raise InputError("client must not be asynchronous: make it with Client(..., asynchronous=False)")
        self.client, self.timeout = client, timeout
        self._proven = False
        """Whether anything that was asked for was done: then it is not the data that kill the workers."""

    def task(self, fn: Callable[..., T]) -> Callable[..., T]:
        """Return fn as it is sent to workers: it refuses one with other versions."""
        return partial(on_same_versions, installed(), fn)

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
        why = f"the workers made no progress in {ATTEMPTS} attempts: look at their logs"
        for attempt in range(ATTEMPTS):
            request = Request([])
            try:
                request = ask()
                self._wait(request, of, self.timeout * 2**attempt)
                found = end(request.futures)
                self._proven = True
                return found
            except (StalledError, CancelledError, asyncio.CancelledError):
                self.drop(request.futures)
                reload(attempt)
            except distributed().KilledWorker as error:
                count = error.allowed_failures + 1
                died = "a worker died" if count == 1 else f"{count} workers died one after the other"
                died += " at the same work"
                advice = "give the workers more of it, or cut the data into more parts (parts=…)"
                if not self._proven:
                    raise InputError(f"{died}, which is what too little memory looks like: {advice}") from None
                why = f"{died}, {ATTEMPTS} times. If nobody kills them, they have too little memory: {advice}"
                self.drop(request.futures)
                reload(max(attempt, 1))  # under new keys: what failed so often stays failed
            except BaseException as error:
                self.drop(request.futures)
                if isinstance(error, (ImportError, AttributeError)) and "toprank" in str(error):
                    raise InputError(f"a worker cannot run toprank {__version__}: {error}") from None
                told = isinstance(error, (InputError, WorkersLost)) or not isinstance(error, Exception)
                closed = isinstance(error, distributed().comm.CommClosedError) or self.client.status != "running"
                if closed and not told:
                    raise WorkersLost(f"{SCHEDULER_GONE}: {error!r}") from None
                raise
        raise WorkersLost(why)

    def free(self, futures: Iterable[Any]) -> None:
        """Allow any worker to load again what one certain worker has loaded, should it be lost."""
        anywhere: dict[str, list[str]] = {future.key: [] for future in futures}
        try:
            self.client.sync(self.client.scheduler.set_restrictions, worker=anywhere)
        except (OSError, AttributeError) as error:
            raise WorkersLost(f"{SCHEDULER_GONE}: {error}") from None

    def drop(self, futures: Sequence[Any]) -> None:
        """Cancel futures, where somebody is there to hear it."""
        if futures and self.client.status == "running":
            with suppress(OSError, TimeoutError):
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
                raise WorkersLost(SCHEDULER_GONE)
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
