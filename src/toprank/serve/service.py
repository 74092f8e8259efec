"""The one thread that learns and writes, the model that is served meanwhile, and rankings that wait for feedback."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import ceil
from threading import Event as Flag
from typing import TypeVar

import numpy as np

from .._typing import Floats, Ints
from ..certificates.performance import RunningMean
from ..data.documents import DocumentList
from ..errors import InputError
from ..rankers.pdgd import PDGD, sampled_order
from . import history
from .batch import Batch, LearnRequest, Step
from .bodies import BodyError, Learned, RefusedEvent, require
from .following import Follower
from .learning import Event, Learner, stored_size
from .quota import DAY, Allowance, StorageLimits
from .store import OTHER_CONTENT, SNAPSHOT_EVERY, Row, Store, UnloadableState
from .waiting import WaitingRankings

MOST_AT_ONCE = 128
"""Events written in one transaction, where so many are waiting."""
POINTS = 256
"""Points of the live curve: when there are more, every other one goes."""
LAST = 6
"""Last events shown on the page."""
T = TypeVar("T")


def _newest(store: Store) -> Learner:
    """Return the newest version; where the file is damaged or it cannot be loaded, let go of the file."""
    try:
        store.check()
        return history.newest_version(store)
    except InputError:
        store.close()
        raise


def _fetched(follower: Follower) -> Learner:
    """Return the model that the other server has now."""
    found = follower.fetch()
    if found is None:
        raise InputError(f"{follower.url} answers 304 Not Modified to a first question")
    return found


class Service:
    """Ranks with what is served, and hands feedback to the thread that learns and writes."""

    def __init__(
        self, begun: Store | Follower, keep: float | None = None, limits: StorageLimits | None = None, **waiting: float
    ) -> None:
        self._store = begun if isinstance(begun, Store) else None
        self.follower = begun if isinstance(begun, Follower) else None
        self.served = _newest(begun) if isinstance(begun, Store) else _fetched(begun)
        self.first, self.waiting, self.ready, self.stopping = self.served, WaitingRankings(**waiting), Flag(), Flag()
        self._limits, self._bytes_left = limits or StorageLimits(), Allowance()
        self.keep = keep
        """Seconds that events are kept; None for ever."""
        self.curve: list[tuple[int, float, float, float]] = []
        self.last: deque[Step] = deque(maxlen=LAST)
        self.frozen, self.oldest, self.groups, self.stored = False, 0, 0, 0
        self.same_as: int | None = None
        """The version whose model the newest one has, where that was made by a rollback."""
        self._stride, self._rng = 1, np.random.default_rng()
        self._pool, self._requests = ThreadPoolExecutor(1, "writer"), deque[LearnRequest]()
        if self._store is not None:
            self.frozen, self.oldest = self._store.frozen, self._store.oldest_and_newest[0]
            for seq, progress in self._store.progress():
                self._point(seq, progress)
            self.same_as = self._store.target_of_newest
        self._pool.submit(self._compile_everything)
        if self.follower is not None:
            self.follower.follow(self)

    @property
    def store(self) -> Store:
        """The store; a replica has none."""
        self.check_learns()
        assert self._store is not None
        return self._store

    def check_learns(self) -> None:
        """Refuse what a replica cannot do."""
        if self.follower is not None:
            what = f"this server follows {self.follower.url} and does not learn"
            raise BodyError(f"{what}: send it there, an event with items instead of the ranking_id", status=409)

    def keep_ranking(self, docs: DocumentList) -> str:
        """Keep a ranking for feedback and return its id; a replica, which gets no feedback, keeps none."""
        return self.waiting.put(docs) if self.follower is None else self.waiting.name_of_replica()

    @property
    def tag(self) -> str:
        """What names the model that is served: the store and the version."""
        store_id = self.follower.store_id if self.follower is not None else self.store.store_id
        return f"{store_id}-{self.served.version}"

    @property
    def age(self) -> float | None:
        """Seconds since a replica last heard from the other server; None where there is no other."""
        return None if self.follower is None else self.follower.age

    def check_fresh(self) -> None:
        """Refuse where a replica has not heard from the other server for too long."""
        if (other := self.follower) is not None:
            age = other.age
            what = f"the last usable answer of {other.url} came {age:,.0f} s ago, and {other.stale:g} s are allowed"
            require(age <= other.stale, f"{what}: {other.problem or 'it is slow'}", status=503)

    def stop(self) -> None:
        """Finish what was handed in, then close the store."""
        self.stopping.set()
        self._pool.shutdown()
        if self._store is not None:
            self._store.close()

    def rank(self, docs: DocumentList, *, explore: bool = False) -> tuple[Learner, Floats, Ints]:
        """Return what was served, the scores, and the rows best first; `explore` samples as PDGD does."""
        served = self.served
        scores = served.scores(docs.X)
        require(np.isfinite(scores).all(), "scores overflow: scale the features down")
        if not explore:
            return served, scores, np.argsort(-scores, kind="stable")
        if not isinstance(served.ranker, PDGD):
            raise BodyError(f"{type(served.ranker).__name__} does not explore: serve a PDGD model", "$.explore", 409)
        return served, scores, sampled_order(scores, self._rng)[: served.ranker.cut]

    def submit(self, job: Callable[[Store], T]) -> Future[T]:
        """Let the writing thread do something with the store."""
        return self._pool.submit(job, self.store)

    def learn(self, events: list[Event], key: str = "") -> Future[list[Learned]]:
        """Learn from events of a key, all or none; what is returned is done when they are on disk."""
        store, future = self.store, Future[list[Learned]]()
        self._requests.append(LearnRequest(events, key, future))
        self._pool.submit(self._learn, store)
        return future

    def _learn(self, store: Store) -> None:
        """Learn from what waits."""
        taken, before = list[LearnRequest](), self.served.version
        while self._requests and sum(len(request.events) for request in taken) < MOST_AT_ONCE:
            request = self._requests.popleft()
            if request.future.set_running_or_notify_cancel():  # else the server is stopping, and could not wait for it
                taken.append(request)
        self._learn_together(taken, store)
        if self.served.version // SNAPSHOT_EVERY > before // SNAPSHOT_EVERY:
            self.forget(store)

    def _learn_together(self, requests: list[LearnRequest], store: Store) -> None:
        """Learn from requests, write all with the state in one transaction, publish that, and only then answer."""
        batch, done = Batch(), list[tuple[LearnRequest, list[Learned], int]]()
        steps = batch.steps
        for request in requests:
            before = len(steps)
            try:
                done.append((request, *self._steps(request, batch, store)))
            except Exception as error:
                while len(steps) > before:
                    steps.popitem()
                request.future.set_exception(error)
        try:
            if steps:
                *_, last = steps.values()
                rows = [step.row(store.clock.now()) for step in steps.values()]
                self._commit(store, rows, last.after)
                self.last.extendleft([*steps.values()][-LAST:])
        except UnloadableState as error:
            self._give_back(done)
            if len(done) > 1:  # one of them leads there, the others do not suffer for it
                for request, *_ in done:
                    self._learn_together([request], store)
            else:
                request = done[0][0]
                ids = [event.event_id for event in request.events]
                place = next(ids.index(name) for name, step in steps.items() if not step.loads())
                request.future.set_exception(RefusedEvent(place, error))
        except Exception as error:
            self._give_back(done)
            for request, *_ in done:
                request.future.set_exception(error)
        else:
            for request, answers, _ in done:
                request.future.set_result(answers)

    def _give_back(self, done: list[tuple[LearnRequest, list[Learned], int]]) -> None:
        """Let keys have the bytes again that were not stored."""
        for request, _, size in done:
            self._bytes_left.take(request.key, -size)

    def _steps(self, request: LearnRequest, batch: Batch, store: Store) -> tuple[list[Learned], int]:
        """Take a step for each event of a request; return what became of them, and the bytes that they store."""
        answers, size = list[Learned](), 0
        for place, event in enumerate(request.events):
            try:
                answer, added = self._step(event, batch, store)
                answers.append(answer)
                size += added
                self._check_size(size, request.key)
            except BodyError as error:
                raise RefusedEvent(place, error) from None
            except InputError as error:
                raise RefusedEvent(place, BodyError(str(error), "$")) from None
        self._bytes_left.take(request.key, size)
        return answers, size

    def _check_size(self, size: int, key: str) -> None:
        """Refuse a request that would store so many bytes."""
        most, day = self._limits.request, self._limits.key_per_day
        what = f"a request may store {most / 1e6:,g} MB, and up to here this one would store {size / 1e6:,.1f} MB"
        require(size <= most, f"{what}: send fewer events, or shorter lists", "$", 413)
        wait = self._bytes_left.wait(key, size, rate=day / DAY, most=day)
        what = f"a key may store {day / 1e6:,g} MB a day, which is used up"
        require(wait == 0, f"{what}: send it again in {wait:,.0f} s", "$", 429, **{"retry-after": str(ceil(wait))})

    def _step(self, event: Event, batch: Batch, store: Store) -> tuple[Learned, int]:
        """Return what became of an event, and how many bytes it adds to the store."""
        digest, of_list = batch.digests(event.docs)
        body, content = event.pack(), event.content(of_list)
        if known := batch.steps.get(event.event_id):
            require(known.content == content, OTHER_CONTENT.format(known.after.version), "$.event_id", 409)
            return Learned("duplicate", known.after.version, known.after.version, known.measure), 0
        if stored := store.find(event, content):
            return stored, 0
        require(not self.frozen, "learning is frozen: send it again when it goes on", status=409)
        there = any(step.digest == digest for step in batch.steps.values()) or store.has_list(digest)
        before = next((step.after for step in reversed(batch.steps.values())), self.served)
        made = batch.steps[event.event_id] = Step(event, before, *before.after(event), body, digest, content)
        answer = Learned("learned", made.after.version, made.after.version, made.measure)
        return answer, len(body) + (0 if there else stored_size(event.docs))

    def _commit(self, store: Store, rows: list[Row], learner: Learner) -> None:
        snapshot = learner.version // SNAPSHOT_EVERY > self.served.version // SNAPSHOT_EVERY
        store.commit(rows, learner, snapshot=snapshot)
        self.same_as = None
        self._publish(learner, len(rows))

    def _publish(self, learner: Learner, stored: int) -> None:
        """Serve what is on disk now."""
        self.served = learner
        self.groups, self.stored = self.groups + 1, self.stored + stored
        self._point(learner.version, learner.progress)

    def _point(self, version: int, progress: RunningMean) -> None:
        """Add a point to the curve; it never grows beyond `POINTS`."""
        if progress.n == 0 or (self.curve and version - self.curve[-1][0] < self._stride):
            return
        lower, mean, upper = progress.interval()
        self.curve.append((version, mean, lower, upper))
        if len(self.curve) > POINTS:
            self.curve, self._stride = self.curve[::2], 2 * self._stride

    def _compile_everything(self) -> None:
        """Run everything once on a copy, so that no request waits for a compiler."""
        for dtype in (np.float64, np.float32):
            X = np.zeros((2, self.served.columns.n_features), dtype=dtype)
            X[0] = 1
            self.served.scores(X)
            if self.served.ranker.learns_from != "nothing":
                shown = [0, 1] if self.served.ranker.learns_from == "clicks" else None
                with suppress(InputError):  # compiled all the same
                    self.served.after(Event("warm", DocumentList([], X, shown), np.array([0.0, 1.0])))
        RunningMean().after(0.5).interval()  # of the curve
        self.ready.set()

    # What follows runs on the writing thread: hand it to `submit`.

    def rollback(self, version: int, store: Store) -> None:
        """Go back to the model of an old version, as a new version."""
        new = history.roll_back(store, version)
        # The page shows what led to the model: nothing of what was taken back.
        self.curve = [point for point in self.curve if point[0] <= version]
        self.last = deque((step for step in self.last if step.after.version <= version), maxlen=LAST)
        self.same_as = version
        self._publish(new, 1)

    def freeze(self, frozen: bool, store: Store) -> None:
        """Stop learning, or let it go on."""
        store.freeze(frozen)
        self.frozen = frozen

    def forget(self, store: Store) -> None:
        """Drop events older than `keep`; where the disk refuses, later."""
        if self.keep is not None:
            with suppress(sqlite3.Error):
                store.drop_before(store.clock.for_forgetting() - self.keep)
                self.oldest = store.oldest_and_newest[0]
