"""What a kernel perceptron holds: the updates of rounds, over documents that are stored once."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from math import inf, log, sqrt
from typing import TYPE_CHECKING, Any
from zlib import adler32, crc32

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data._memory import physical_memory
from ..errors import InputError
from ..model.functions import KernelFunction
from ..solvers.steps import Total

if TYPE_CHECKING:
    from .kernel import KernelSlamPerceptron

_PER_DOCUMENT = ("documents", "alpha", "sums", "row_hash")
_PER_PART = ("part_of", "part_doc", "part")
_PER_ROUND = ("key", "age")


@dataclass(frozen=True)
class Settings:
    """What stored documents depend on: the kernel, how many are held, and which rounds leave."""

    kernel: str
    gamma: float
    coef0: float
    degree: int
    budget: int
    drop: str

    @classmethod
    def of(cls, ranker: KernelSlamPerceptron, n_features: int) -> Settings:
        """Return those of a ranker for documents of so many features."""
        gamma = 1 / n_features if ranker.gamma is None else float(ranker.gamma)
        budget, degree = int(ranker.budget), int(ranker.degree)
        return cls(ranker.kernel, gamma, float(ranker.coef0), degree, budget, ranker.drop)

    def function(self, documents: Floats, alpha: Floats) -> KernelFunction:
        """Return Σ_b alpha_b k(s_b, ·) of any documents."""
        return KernelFunction(documents, alpha, self.kernel, self.gamma, self.coef0, self.degree)


@dataclass
class Counts:
    """How many there are of what a store holds, and how often it changed."""

    documents: int = 0
    updates: int = 0
    """Updates so far."""
    dropped: int = 0
    """Rounds that had to leave so far, or were too long to be stored."""
    parts: int = 0
    rounds: int = 0
    """Rounds that are held."""

    def as_array(self) -> Ints:
        """Return the counts as model files have them."""
        return np.array([self.documents, self.updates, self.dropped, self.parts, self.rounds], dtype=np.int64)


@dataclass(eq=False)
class Store:
    """f = Σ_rounds Σ_i c_i k(x_i, ·) on a budget: at most `budget` documents, and as many coefficients of rounds.

    A round is known again by its documents: a list that comes twice has one update, the sum of both. A document that
    comes again, in whatever list, is stored once; `alpha` is the sum of its coefficients. What leaves is always the
    whole update of a round, so that Σ alpha stays 0. An update is stored in parts: part i has the coefficient `part[i]`
    of the document `part_doc[i]` in the round `part_of[i]`.

    All arrays but `rng` and `totals` have a place for each document, part or round that the budget allows.
    """

    settings: Settings
    documents: Floats
    alpha: Floats
    sums: Floats
    """Σ over the rounds so far of alpha: the average."""
    row_hash: AnyArray
    part_of: Ints
    part_doc: Ints
    part: Floats
    key: AnyArray
    """What each round is known again by."""
    age: Ints
    """The number of the last update of each round."""
    rng: AnyArray
    """The state of the generator that draws the round to drop."""
    totals: Floats
    """Sums over the rounds so far, at the places of `Total`."""
    longest: float = 0.0
    """The longest ‖update‖² so far."""
    counts: Counts = field(default_factory=Counts)
    too_long: list[int] = field(default_factory=list)
    """How many documents those rounds changed that the budget cannot hold."""

    @classmethod
    def empty(cls, ranker: KernelSlamPerceptron, n_features: int, seed: int) -> Store:
        """Return a store of the ranker's budget, refusing one that this machine cannot hold."""
        budget = ranker.budget
        size = 8 * budget * (n_features + len(_PER_DOCUMENT) - 1 + len(_PER_PART) + len(_PER_ROUND))
        if size > physical_memory():
            raise InputError(
                f"budget={budget} documents of {n_features} features take {size / 1e9:.1f} GB, more than this machine "
                "has: lower the budget"
            )
        first = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        return cls(
            settings=Settings.of(ranker, n_features),
            documents=np.zeros((budget, n_features)),
            alpha=np.zeros(budget),
            sums=np.zeros(budget),
            row_hash=np.zeros(budget, dtype=np.uint64),
            part_of=np.zeros(budget, dtype=np.int64),
            part_doc=np.zeros(budget, dtype=np.int64),
            part=np.zeros(budget),
            key=np.zeros(budget, dtype=np.uint64),
            age=np.zeros(budget, dtype=np.int64),
            rng=np.maximum(first, np.uint64(1)),
            totals=np.zeros(len(Total)),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all that grows with the budget, taken from the start."""
        return sum(getattr(self, name).nbytes for name in (*_PER_DOCUMENT, *_PER_PART, *_PER_ROUND))

    def copy(self) -> Store:
        """Return a copy that can be added to while this one stays."""
        new = copy(self)
        for name in (*_PER_DOCUMENT, *_PER_PART, *_PER_ROUND, "rng", "totals"):
            setattr(new, name, getattr(self, name).copy())
        new.counts, new.too_long = copy(self.counts), []
        return new

    def state(self) -> dict[str, Any]:
        """Return what a file needs beside the stored documents."""
        counts = self.counts
        content: dict[str, Any] = {"sums": self.sums[: counts.documents]}
        content |= {name: getattr(self, name)[: counts.parts] for name in _PER_PART}
        content |= {name: getattr(self, name)[: counts.rounds] for name in _PER_ROUND}
        longest = np.array([self.longest])
        return content | {"counters": counts.as_array(), "rng": self.rng, "totals": self.totals, "longest": longest}

    def restore(self, content: dict[str, Any], documents: Floats) -> bool:
        """Take over what `state` gave; say whether it is sound."""
        n, sound = len(documents), len(documents) <= len(self.alpha)
        for name, own in self.state().items():
            given, room = content[name], len(getattr(self, name)) if name in _GROWS else len(own)
            sound &= given.dtype == own.dtype and given.ndim == 1 and len(given) <= room
        if not sound:
            return False
        for name in (*_GROWS, "rng", "totals"):
            getattr(self, name)[: len(content[name])] = content[name]
        self.longest, self.counts = float(content["longest"][0]), Counts(*content["counters"].tolist())
        parts, rounds, counts = len(content["part"]), len(content["key"]), self.counts
        sound &= (counts.documents, counts.parts, counts.rounds) == (n, parts, rounds) and rounds == len(content["age"])
        for name, size in (("part_doc", n), ("part_of", rounds)):
            sound &= len(content[name]) == parts and bool(((content[name] >= 0) & (content[name] < size)).all())
        sound &= int(self.rng[0]) != 0 and all(np.isfinite(content[name]).all() for name in ("totals", "part", "sums"))
        if sound:
            self.documents[:n], self.row_hash[:n] = documents, [crc32(row.tobytes()) for row in documents]
            self._add_up()
        return bool(sound)

    def model(self, average: bool = False) -> KernelFunction:
        """Return the scoring function, or its average over the rounds; it shares the stored documents."""
        n, rounds = self.counts.documents, max(float(self.totals[Total.ROUNDS]), 1.0)
        return self.settings.function(self.documents[:n], self.sums[:n] / rounds if average else self.alpha[:n])

    def end_round(self) -> None:
        """Add f to the sum that the average is made of."""
        n = self.counts.documents
        self.sums[:n] += self.alpha[:n]

    def add(self, X: Floats, change: Floats, size2: float) -> None:
        """Add Σ_i change_i k(x_i, ·), of squared norm `size2`, dropping rounds that the budget has no room for."""
        moved = np.flatnonzero(change)
        rows, change = X[moved], change[moved]
        self.longest = max(self.longest, size2)
        key = np.uint64(crc32(X.tobytes()) << 32 | adler32(X.tobytes()))
        f_norm2 = None
        while self._places_missing(rows, key) > 0:
            at = self._round_to_drop(key)
            if at is None:
                self.counts.dropped += 1  # longer than the budget: the round itself
                self.too_long.append(len(rows))
                break
            if self.settings.drop == "forgetron":
                if f_norm2 is None:
                    now = self.model()
                    scores = np.empty(len(rows))
                    now.score_rows(rows, scores)
                    f_norm2 = squared_norm(now) + 2 * float(scores @ change) + size2
                shrink = self._shrink(f_norm2)
                change, f_norm2 = change * shrink, f_norm2 * shrink**2
                self.part *= shrink
            self._drop(at)
        else:
            self._add_round(rows, change, key)
        self._add_up()

    def _places(self, rows: Floats) -> list[int]:
        """Return where each document is stored, −1 where it is not."""
        held, found = self.row_hash[: self.counts.documents], []
        for row in rows:
            same = np.flatnonzero(held == crc32(row.tobytes()))
            found.append(next((int(at) for at in same if np.array_equal(self.documents[at], row)), -1))
        return found

    def _place_of_round(self, key: np.uint64) -> int:
        held = np.flatnonzero(self.key[: self.counts.rounds] == key)
        return int(held[0]) if len(held) else -1

    def _parts_of_round(self, at: int) -> Ints:
        """Return the parts of a round that is held; none where `at` is −1."""
        return np.flatnonzero(self.part_of[: self.counts.parts] == at)

    def _places_missing(self, rows: Floats, key: np.uint64) -> int:
        """Return how many places an update is short of, for its documents or its coefficients."""
        places, own = self._places(rows), self.part_doc[self._parts_of_round(self._place_of_round(key))]
        new_documents = len({row.tobytes() for row, place in zip(rows, places, strict=True) if place < 0})
        new_parts = sum(place < 0 or place not in own for place in places)
        return max(self.counts.documents + new_documents, self.counts.parts + new_parts) - len(self.alpha)

    def _round_to_drop(self, key: np.uint64) -> int | None:
        """Return the round that makes room for the one of this key; None where there is no other."""
        others = [at for at in range(self.counts.rounds) if self.key[at] != key]
        if not others:
            return None
        if self.settings.drop == "random":
            return others[_next_random(self.rng) % len(others)]
        if self.settings.drop == "smallest":
            return min(others, key=lambda at: (squared_norm(self.update(at)), self.age[at]))
        return min(others, key=lambda at: self.age[at])

    def _shrink(self, f_norm2: float) -> float:
        """φ = min((B + 1)^(−1/(2B + 2)), U R/‖f‖), U = ¼ √((B + 1)/ln(B + 1)): the Forgetron with B rounds held.

        The paper's documents have length 1; here updates do not, and R is the length of the longest so far.
        """
        rounds = self.counts.rounds + 1
        most = 0.25 * sqrt(rounds / log(rounds)) * sqrt(self.longest) if rounds > 1 else inf
        norm = sqrt(max(f_norm2, 0.0))
        return float(min(rounds ** (-0.5 / rounds), most / norm if norm > 0 else 1.0))

    def update(self, at: int) -> KernelFunction:
        """Return what one of the rounds added to f, as far as it is still there."""
        parts = self._parts_of_round(at)
        return self.settings.function(self.documents[self.part_doc[parts]], self.part[parts])

    def _drop(self, at: int) -> None:
        """Forget a round: its coefficients, and the documents that no other round needs."""
        counts = self.counts
        keep = np.flatnonzero(self.part_of[: counts.parts] != at)
        for name in _PER_PART:
            _keep_only(getattr(self, name), keep)
        counts.parts, counts.rounds = len(keep), counts.rounds - 1
        last = counts.rounds  # takes the place of the one that leaves
        self.key[at], self.age[at] = self.key[last], self.age[last]
        part_of, part_doc = self.part_of[: counts.parts], self.part_doc[: counts.parts]
        part_of[part_of == last] = at
        needed = np.unique(part_doc)
        new_place = np.zeros(counts.documents, dtype=np.int64)
        new_place[needed] = np.arange(len(needed))
        for name in ("documents", "sums", "row_hash"):
            _keep_only(getattr(self, name), needed)
        part_doc[:] = new_place[part_doc]
        counts.documents, counts.dropped = len(needed), counts.dropped + 1

    def _add_round(self, rows: Floats, change: Floats, key: np.uint64) -> None:
        counts, at = self.counts, self._place_of_round(key)
        if at < 0:
            at = counts.rounds
            self.key[at] = key
            counts.rounds += 1
        counts.updates += 1
        self.age[at] = counts.updates
        for row, c in zip(rows, change, strict=True):
            (place,) = self._places(row[None])
            if place < 0:
                place = counts.documents
                self.documents[place], self.row_hash[place], self.sums[place] = row, crc32(row.tobytes()), 0.0
                counts.documents += 1
            own = self._parts_of_round(at)
            own = own[self.part_doc[own] == place]
            if len(own):
                self.part[own[0]] += c
            else:
                self.part_of[counts.parts], self.part_doc[counts.parts], self.part[counts.parts] = at, place, c
                counts.parts += 1

    def _add_up(self) -> None:
        n, parts = self.counts.documents, self.counts.parts
        self.alpha[:n] = np.bincount(self.part_doc[:parts], self.part[:parts], minlength=n)[:n]
        self.alpha[n:] = 0.0


_GROWS = ("sums", *_PER_PART, *_PER_ROUND)
"""What a file holds as much of as the store does, not as its budget allows."""


def _keep_only(array: AnyArray, chosen: Ints) -> None:
    """Move the chosen entries to the front and set the others to 0."""
    array[: len(chosen)], array[len(chosen) :] = array[chosen], 0


def _next_random(rng: AnyArray) -> int:
    """Step a 64-bit xorshift generator in place and return a number ≥ 0."""
    mask, x = 2**64 - 1, int(rng[0])
    x ^= (x << 13) & mask
    x ^= x >> 7
    x ^= (x << 17) & mask
    rng[0] = x
    return x >> 1


def squared_norm(f: KernelFunction) -> float:
    """‖f‖² = Σ_b alpha_b f(s_b) in the space of the kernel."""
    values = np.empty(len(f.alpha))
    f.score_rows(f.stored, values)
    total = float((f.alpha * values).sum())
    return 0.0 if total < 0 else total  # rounding can leave a little below 0; what is not finite must stay so
