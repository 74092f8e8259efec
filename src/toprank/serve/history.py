"""Versions of a store: what they were, going back to them, and whether a replay leads to them."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import msgspec

from ..errors import InputError
from ..rankers.persistence import ModelFile
from .bodies import BodyError, require
from .learning import Learner
from .store import Row, Store, StoredState


class Verified(NamedTuple):
    """What a replay of a store found."""

    events: int
    """Events that were replayed."""
    difference: str | None
    """Where the replay and the store part, in words; None where they are equal to the bit."""
    left_behind: list[int]
    """Events that cannot be learned again and do not matter, as a later rollback goes back before them."""


def _replayed(store: Store, kept: StoredState, until: int) -> Iterator[tuple[int, Learner | InputError]]:
    """Yield what is kept, then what every event behind it leads to, with the number that the event has.

    From an event on that cannot be learned again, up to the next rollback, there is only the error.
    """
    learner: Learner | InputError = store.load(kept)
    yield kept.seq, learner
    for seq, what in store.events(kept.seq, until):
        if isinstance(what, int):
            learner = replace(version(store, what), version=seq)
        elif isinstance(learner, Learner):
            try:
                learner = learner.after(what)[0]
            except InputError as error:
                learner = BodyError(f"event {seq} cannot be learned again: {error}", "$.version", 409)
        yield seq, learner


def newest_version(store: Store) -> Learner:
    """Return the model as it is."""
    try:
        return store.load(store.newest)
    except InputError as error:
        oldest, newest = store.oldest_and_newest
        advice = f"toprank serve --rollback N --store {store.path} goes back to version N"
        raise InputError(f"{error}; {advice}, from {oldest} to {newest - 1}") from None


def version(store: Store, seq: int) -> Learner:
    """Return the model as it was after event `seq`."""
    oldest, newest = store.oldest_and_newest
    require(oldest <= seq <= newest, f"there are versions {oldest} to {newest}, not {seq}", "$.version", 404)
    nearest = next(store.states("WHERE seq <= ? ORDER BY seq DESC LIMIT 1", seq))
    found = deque(_replayed(store, nearest, seq), maxlen=1)[0][1]
    if isinstance(found, InputError):
        raise found
    return found


def roll_back(store: Store, to: int) -> Learner:
    """Make an old version the newest one, as a new version; return it."""
    new = replace(version(store, to), version=store.oldest_and_newest[1] + 1)
    row = Row(new.version, f"rollback {secrets.token_hex(8)}", store.clock.now(), "rollback", b"", target=to)
    store.commit([row], new, snapshot=True)
    return new


def verify(store: Store) -> Verified:
    """Replay every stored event from the oldest version on; load each snapshot and the state, and compare them."""
    if (damage := store.damage()) is not None:
        return Verified(0, f"the file is damaged: {damage}", [])
    oldest, newest = store.oldest_and_newest
    at, difference, left_behind = oldest - 1, None, list[int]()
    kept = {state.seq for state in store.states("")}
    try:
        for seq, learner in _replayed(store, next(store.states("ORDER BY seq LIMIT 1")), newest):
            if seq != at + 1:
                break
            at = seq
            if isinstance(learner, InputError):
                left_behind.append(seq)
            if seq in kept:
                for state in store.states("WHERE seq = ?", seq):
                    difference = difference or _difference(store, learner, state)
        if at < newest:
            difference = difference or f"event {at + 1} is missing"
    except InputError as error:  # a version to begin with, or to go back to, cannot be loaded
        difference = difference or str(error)
    return Verified(max(at - oldest, 0), difference, left_behind)


def _difference(store: Store, replayed: Learner | InputError, state: StoredState) -> str | None:
    """Return in words what is wrong with a state, where something is."""
    try:
        loaded = store.load(state)
    except InputError as error:
        return str(error)
    if isinstance(replayed, InputError):
        return str(replayed)
    if replayed.is_same_model(loaded) and replayed.progress_text() == loaded.progress_text():
        return None
    by = msgspec.json.decode(state.model, type=ModelFile).toprank
    return f"version {state.seq} DIFFERS from the replay (toprank {by} learned it)"
