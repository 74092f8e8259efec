"""The one protocol for runs that are played again: what a theorem about online learning needs to know of them.

A certificate about learning compares what a run lost with what a fixed comparator u would have lost on the same rounds.
So every replay knows whether it is the run that happened, what the run showed, and of any u: its length, its margin and
L(c·u) at every length c. Which u is best depends on the inequality: each takes the one at which it says most.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from operator import mul
from typing import Any, Protocol

import numpy as np

from .._typing import Floats
from .base import Assumption, Certificate
from .mistakes import Choice, Comparator

_LENGTHS = np.geomspace(1e-4, 1e6, 121)
"""Lengths tried for a comparator whose direction is found and whose length is free."""


class RunNumbers(Protocol):
    """What a run showed."""

    @property
    def margin(self) -> float:
        """The Δ at which the loss of a correct order ends."""

    @property
    def zero(self) -> float:
        """L(0)."""

    def certificates(self, choose: Choice) -> list[Certificate]:
        """Return the theorems, each at the comparator that it chooses."""


@dataclass(frozen=True, eq=False)
class Direction:
    """A comparator of length 1, and what the bounds need to know of its multiples."""

    unit: Any
    norm: float
    """The length that it had."""
    margin: float
    losses: Callable[[Floats], Floats]
    """L at many lengths."""
    along: float = 0.0
    times: Callable[[Any, float], Any] = mul

    def at(self, lengths: Floats, delta: float) -> list[Comparator]:
        """Return the comparator at each length, without its weights."""
        separates = 0 < self.margin < inf
        margin = self.margin if isfinite(self.margin) else 0.0
        return [
            Comparator(
                c**2, 0.0 if separates and c * margin >= delta * (1 - 1e-12) else max(loss, 0.0), margin, None,
                c * self.along,
            )
            for c, loss in zip(lengths.tolist(), self.losses(lengths).tolist(), strict=True)
        ]  # fmt: skip

    def named(self, found: Comparator) -> Comparator:
        """Return it with its weights."""
        return replace(found, u=self.times(self.unit, found.norm2**0.5))


class Replay(ABC):
    """A run, played again beside comparators."""

    same: Assumption
    """Whether it ends where the ranker did: then it is the run that happened."""
    theorems = "Theorems 6 to 10"
    any_length = False
    """Whether a comparator that the caller gives may be taken at any length."""
    lengths: Floats = _LENGTHS

    @property
    @abstractmethod
    def run(self) -> RunNumbers:
        """What it showed."""

    @abstractmethod
    def direction(self, u: Any) -> Direction:
        """Measure a comparator."""

    @abstractmethod
    def directions(self) -> Iterator[Any]:
        """Yield comparators that may do well."""

    def better_directions(self, choose: Choice) -> Iterator[Any]:
        """Yield comparators that are found from the best so far."""
        return iter(())

    def certificates(self, comparator: Any = None) -> list[Certificate]:
        """Return the theorems about the run, for the comparator given or each for the one at which it says most."""
        if self.same.verified is False:
            return [another_run(self.same, self.theorems)]
        comparators = _Comparators(self)
        if comparator is not None and not self.any_length:
            given = comparators.given(comparator)
            return self.run.certificates(lambda bound: given)
        for u in self.directions() if comparator is None else (comparator,):
            comparators.add(u)
        for u in self.better_directions(comparators.choose) if comparator is None else ():
            comparators.add(u)
        return self.run.certificates(comparators.choose)


def another_run(violated: Assumption, theorems: str = Replay.theorems) -> Certificate:
    """What is left where the theorems do not speak of these rounds."""
    return Certificate(
        statement="loss while learning ≤ what one fixed ranker would have lost + the price of learning",
        value=inf,
        observed=nan,
        reference=theorems,
        assumptions=(violated,),
        meaning=f"the theorems speak of other runs: they assume that {violated.text}",
    )


class _Comparators:
    """The comparators at hand: directions, each at many lengths, and 0."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._found: list[tuple[Comparator, Direction | None]] = [(Comparator(0.0, replay.run.zero), None)]

    def add(self, u: Any) -> None:
        """Enter a direction at all lengths, its own among them, and at the one that makes its margin Δ."""
        direction, delta = self._replay.direction(u), self._replay.run.margin
        if direction.norm > 0:
            own = [direction.norm, *([delta / direction.margin] if 0 < direction.margin < inf else [])]
            lengths = np.concatenate([self._replay.lengths, own])
            self._found += [(one, direction) for one in direction.at(lengths, delta)]

    def given(self, u: Any) -> Comparator:
        """Return the caller's own, as it is."""
        direction = self._replay.direction(u)
        if direction.norm == 0:
            return Comparator(0.0, self._replay.run.zero, 0.0, u)
        return replace(direction.at(np.array([direction.norm]), self._replay.run.margin)[0], u=u)

    def choose(self, bound: Callable[[Comparator], float]) -> Comparator:
        """Return the comparator at which a bound is smallest; lengths near the best are tried too."""
        best, direction = min(self._found, key=lambda pair: bound(pair[0]))
        if direction is None:
            other = next((d for _, d in self._found if d is not None), None)
            return best if other is None else replace(best, u=other.times(other.unit, 0.0))
        lengths = self._replay.lengths
        if len(lengths):
            near = best.norm2**0.5 * np.geomspace(lengths[0] / lengths[1], lengths[1] / lengths[0], 33)
            best = min(best, *direction.at(near, self._replay.run.margin), key=bound)
        return direction.named(best)
