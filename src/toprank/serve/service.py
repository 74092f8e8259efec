"""The one thread that learns and writes, the model that is served meanwhile, and rankings that wait for feedback."""

from __future__ import annotations

import secrets
import sqlite3
import time
from asyncio import AbstractEventLoop, Future
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Lock, Thread
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..rankers.pdgd import PDGD, sampled_order
from .bodies import BodyError, Learned, Lists
from .learning import Event, Learner
from .store import EVERY, Row, Store

GROUP = 128
"""Events written in one transaction, where so many are waiting."""
POINTS = 256
"""Points of the live curve: when there are more, every other one goes."""
LAST = 6
"""Last events shown on the page."""


@dataclass(frozen=True, eq=False)
class Served:
    """A version of the model; it never changes, so whoever holds it can rank with it."""

    version: int
    learner: Learner
    frozen: bool = False


class Shown(NamedTuple):
    """An event with the model before and after it, for the page."""

    seq: int
    event: Event
    before: Learner
    after: Learner
    measure: float | None


class Waiting:
    """Rankings that may still get feedback: so many bytes and seconds at most, the oldest go first."""

    def __init__(self, nbytes: float = 256e6, seconds: float = 1800.0) -> None:
        self._most, self._seconds, self._held = nbytes, seconds, 0
        self._lists: OrderedDict[str, tuple[float, Lists]] = OrderedDict()
        self._lock = Lock()

    def put(self, lists: Lists) -> str:
        """Keep a ranking for a while; return its id."""
        name, now = secrets.token_urlsafe(12), time.monotonic()
        with self._lock:
            self._lists[name] = (now, lists)
            self._held += lists.nbytes
            while self._lists:
                at, oldest = next(iter(self._lists.values()))
                if self._held <= self._most and now - at <= self._seconds:
                    break
                self._lists.popitem(last=False)
                self._held -= oldest.nbytes
        return name

    def get(self, name: str) -> Lists:
        """Return a ranking that still waits."""
        at, lists = self._lists.get(name, (-np.inf, None))
        if lists is None or time.monotonic() - at > self._seconds:
            raise BodyError("this ranking is unknown, or was forgotten by now: send items with the event", status=404)
        return lists

    @property
    def nbytes(self) -> int:
        """What they take."""
        return self._held

    def __len__(self) -> int:
        return len(self._lists)


@dataclass(eq=False)
class _Task:
    """Events of one request, learned all or none, or something else for the writing thread to do alone."""

    what: list[Event] | Callable[[], Any]
    loop: AbstractEventLoop
    future: Future[Any]
    result: Any = None
    error: BaseException | None = None


class Service:
    """Ranks with what is served, and hands feedback to the thread that learns and writes."""

    def __init__(self, store: Store | None, learner: Learner | None = None, **waiting: float) -> None:
        self.store, self.waiting, self.ready, self.stopping = store, Waiting(**waiting), Flag(), Flag()
        self.keep: float | None = None
        """Seconds that events are kept; None for ever."""
        self.curve: list[tuple[int, float, float, float]] = []
        self.last: deque[Shown] = deque(maxlen=LAST)
        self.groups = self.stored = 0
        self._stride, self._tasks, self._rng = 1, SimpleQueue[_Task | None](), np.random.default_rng()
        if store is not None:
            version, learner = store.state()
            self.served = Served(version, learner, store.frozen)
            self._at, self.oldest = store.last_at, store.oldest
            for seq, progress in store.measures():
                self._point(seq, replace(learner, progress=Learner.progress_of(progress)))
        elif learner is not None:
            self.served, self._at, self.oldest = Served(0, learner), 0.0, 0
        self.first = self.served.learner
        """The model when the process began."""
        self._thread = Thread(target=self._work, name="writer", daemon=True)

    def start(self) -> None:
        """Begin to work; `ready` is set when compiled code is warm."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what was handed in, then close the store."""
        self.stopping.set()
        self._tasks.put(None)
        self._thread.join()
        if self.store is not None:
            self.store.close()

    @property
    def alive(self) -> bool:
        """Whether the writing thread works."""
        return self._thread.is_alive() or self.store is None

    def rank(self, lists: Lists, *, explore: bool = False) -> tuple[Served, Any, Any]:
        """Return what was served, the scores, and the rows best first; `explore` samples as PDGD does."""
        served = self.served
        ranker = served.learner.ranker
        scores = ranker.model_.scores(lists.X)
        if not np.isfinite(scores).all():
            raise BodyError("scores overflow: scale the features down")
        if not explore:
            return served, scores, np.argsort(-scores, kind="stable")
        if not isinstance(ranker, PDGD):
            raise BodyError(f"{type(ranker).__name__} does not explore: serve a PDGD model", "$.explore", 409)
        return served, scores, sampled_order(scores, self._rng)[: ranker.cut]

    def submit(self, what: list[Event] | Callable[[], Any], loop: AbstractEventLoop) -> Future[Any]:
        """Hand events or a job to the writing thread."""
        if self.store is None:
            raise BodyError("this server follows another one and does not learn: send it there", status=409)
        task = _Task(what, loop, loop.create_future())
        self._tasks.put(task)
        return task.future

    def _work(self) -> None:
        self._warm()
        self.ready.set()
        while True:
            try:
                task = self._tasks.get(timeout=30.0)
            except Empty:
                self._forget()
                continue
            if task is None:
                return
            tasks, count = [task], _size(task)
            while count < GROUP:
                try:
                    task = self._tasks.get_nowait()
                except Empty:
                    break
                if task is None:
                    self._tasks.put(None)
                    break
                tasks.append(task)
                count += _size(task)
            before = self.served.version
            self._together(tasks)
            if self.served.version // EVERY > before // EVERY:
                self._forget()

    def _together(self, tasks: list[_Task]) -> None:
        """Do tasks in their order; events that stand side by side are written in one transaction."""
        group: list[_Task] = []
        for task in tasks:
            if not callable(task.what):
                group.append(task)
                continue
            self._learn(group)
            group = []
            try:
                task.result = task.what()
            except Exception as error:
                task.error = error
        self._learn(group)
        if not tasks[0].loop.is_closed():
            tasks[0].loop.call_soon_threadsafe(_answer, tasks)

    def _learn(self, tasks: list[_Task]) -> None:
        """Learn from the events of all tasks, write them with the state, publish it, and only then note the answers."""
        if not tasks or self.store is None:
            return
        rows: list[Row] = []
        news: list[Shown] = []
        seen: dict[str, Learned] = {}
        learner, seq = self.served.learner, self.served.version
        self._at = max(self._at, time.time())  # never backwards, whatever the clock does
        done: list[tuple[_Task, list[Learned]]] = []
        for task in tasks:
            before = (learner, seq, len(rows), dict(seen))
            try:
                if self.served.frozen:
                    raise BodyError("learning is frozen: send it again when it goes on", status=409)
                answers = []
                for event in task.what if isinstance(task.what, list) else ():
                    known = seen.get(event.event_id) or self.store.find(event.event_id)
                    if known is None:
                        old, (learner, measure) = learner, learner.after(event)
                        seq += 1
                        news.append(Shown(seq, event, old, learner, measure))
                        rows.append(Row(seq, event.event_id, self._at, event.kind, event.pack(), measure))
                        known = Learned("learned", seq, seq, measure)
                        seen[event.event_id] = Learned("duplicate", seq, seq, measure)
                    answers.append(known)
                done.append((task, answers))
            except Exception as error:
                learner, seq, length, seen = before
                del rows[length:], news[length:]
                task.error = error
        if rows:
            try:
                self._commit(rows, seq, learner)
                self.last.extendleft(news[-LAST:])
            except Exception as error:
                for task, _ in done:
                    task.error = error
                return
        for task, answers in done:
            task.result = answers

    def _commit(self, rows: list[Row], seq: int, learner: Learner, *, snapshot: bool = False) -> None:
        assert self.store is not None
        before = self.served
        self.store.commit(rows, seq, learner, snapshot=snapshot or seq // EVERY > before.version // EVERY)
        self.served = replace(before, version=seq, learner=learner)
        self.groups, self.stored = self.groups + 1, self.stored + len(rows)
        self._point(seq, learner)

    def _point(self, seq: int, learner: Learner) -> None:
        """Add a point to the curve; it never grows beyond `POINTS`."""
        if learner.progress.n == 0 or (self.curve and seq - self.curve[-1][0] < self._stride):
            return
        lower, mean, upper = learner.progress.interval()
        self.curve.append((seq, mean, lower, upper))
        if len(self.curve) > POINTS:
            self.curve, self._stride = self.curve[::2], 2 * self._stride

    def _warm(self) -> None:
        """Run everything once on a copy, so that no request waits for a compiler."""
        learner = self.served.learner
        for dtype in (np.float64, np.float32):
            X = np.zeros((2, learner.columns.n_features), dtype=dtype)
            X[0] = 1
            learner.ranker.model_.scores(X)
            if learner.learns != "nothing":
                shown = np.arange(2) if learner.learns == "clicks" else None
                with suppress(InputError):  # compiled all the same
                    learner.after(Event("warm", learner.learns, X, np.array([0.0, 1.0]), [], shown))

    # What follows runs on the writing thread: hand it to `submit`.

    def rollback(self, version: int) -> int:
        """Go back to the model of an old version, as a new version."""
        assert self.store is not None
        learner, seq = self.store.version(version), self.served.version + 1
        self._at = max(self._at, time.time())
        row = Row(seq, f"rollback {secrets.token_hex(8)}", self._at, "rollback", b"", None, version)
        self._commit([row], seq, learner, snapshot=True)
        return seq

    def freeze(self, frozen: bool) -> bool:
        """Stop learning, or let it go on."""
        assert self.store is not None
        self.store.freeze(frozen)
        self.served = replace(self.served, frozen=frozen)
        return frozen

    def _forget(self) -> None:
        """Drop events older than `keep`, when everybody has been answered; where the disk refuses, later."""
        if self.store is not None and self.keep is not None:
            with suppress(sqlite3.Error):
                self.store.drop_before(max(self._at, time.time()) - self.keep)
                self.oldest = self.store.oldest


def _size(task: _Task) -> int:
    return len(task.what) if isinstance(task.what, list) else 1


def _answer(tasks: list[_Task]) -> None:
    for task in tasks:
        if task.future.done():  # the client went away
            continue
        if task.error is None:
            task.future.set_result(task.result)
        else:
            task.future.set_exception(task.error)
