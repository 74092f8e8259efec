"""What a kernel perceptron holds: the updates of rounds, over documents that are stored once."""

from __future__ import annotations

from enum import IntEnum
from math import log, sqrt
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

_SIZES = {"documents": "d", "alpha": "f", "sums": "f", "row_hash": "u", "part_of": "i", "part_doc": "i", "part": "f"}
_SIZES |= {"key": "u", "age": "i"}
_TYPES = {"d": np.float64, "f": np.float64, "i": np.int64, "u": np.uint64}


class Count(IntEnum):
    """Places in `Store.counters`."""

    DOCUMENTS = 0
    UPDATES = 1
    """All that were made so far."""
    DROPPED = 2
    """Rounds that had to leave."""
    PARTS = 3
    ROUNDS = 4
    """Rounds that are held."""


class Store:
    """f = Σ_rounds Σ_i c_i k(x_i, ·) on a budget: at most `budget` documents, and as many coefficients of rounds.

    A round is known again by its documents: a list that comes twice has one update, the sum of both. A document that
    comes again, in whatever list, is stored once; `alpha` is the sum of its coefficients. What leaves is always the
    whole update of a round, so that Σ alpha stays 0. An update is stored in parts: part i has the
    coefficient `part[i]` of the document `part_doc[i]` in the round `part_of[i]`.
    """

    documents: Floats
    alpha: Floats
    sums: Floats
    """Σ over the rounds so far of alpha: the average."""
    row_hash: AnyArray
    part_of: Ints
    part_doc: Ints
    part: Floats
    key: AnyArray
    age: Ints
    counters: Ints
    """How many there are of each `Count`."""
    rng: AnyArray
    totals: Floats
    longest: Floats
    """The longest ‖update‖² so far."""

    def __init__(self, settings: tuple[Any, ...], arrays: dict[str, Any]) -> None:
        self.settings, self.names = settings, tuple(arrays)
        self.too_long: list[int] = []  # how many documents those rounds changed that the budget cannot hold
        vars(self).update(arrays)

    @classmethod
    def empty(cls, ranker: KernelSlamPerceptron, n_features: int, seed: int) -> Store:
        """Return a store of the ranker's budget, refusing one that this machine cannot hold."""
        B, size = ranker.budget, 8 * ranker.budget * (n_features + len(_SIZES) - 1)
        if size > physical_memory():
            raise InputError(
                f"budget={B} documents of {n_features} features take {size / 1e9:.1f} GB, more than this machine has: "
                "lower the budget"
            )
        arrays: dict[str, Any] = {
            name: np.zeros((B, n_features) if kind == "d" else B, dtype=_TYPES[kind]) for name, kind in _SIZES.items()
        }
        arrays["counters"], arrays["totals"], arrays["longest"] = (
            np.zeros(len(Count), dtype=np.int64), np.zeros(len(Total)), np.zeros(1)
        )  # fmt: skip
        first = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        return cls(settings(ranker, n_features), arrays | {"rng": np.maximum(first, np.uint64(1))})

    @property
    def nbytes(self) -> int:
        """Bytes of all that grows with the budget, taken from the start."""
        return sum(getattr(self, name).nbytes for name in _SIZES)

    def copy(self) -> Store:
        """Return a copy that can be added to while this one stays."""
        return Store(self.settings, {name: getattr(self, name).copy() for name in self.names})

    def state(self) -> dict[str, Any]:
        """Return what a file needs beside the stored documents."""
        n, _, _, parts, rounds = (int(count) for count in self.counters)
        sizes = {"sums": n, "part_of": parts, "part_doc": parts, "part": parts, "key": rounds, "age": rounds}
        names = (*sizes, "counters", "rng", "totals", "longest")
        return {name: getattr(self, name)[: sizes.get(name)] for name in names}

    def restore(self, content: dict[str, Any], documents: Floats) -> bool:
        """Take over what `state` gave; say whether it is sound."""
        n = len(documents)
        sound = n <= len(self.alpha)
        for name in self.state():
            mine, given = getattr(self, name), content[name]
            sound &= given.dtype == mine.dtype and given.ndim == 1 and len(given) <= len(mine)
            mine[: len(given)] = given
        parts, rounds = len(content["part"]), len(content["key"])
        sound &= self.counters.tolist()[0::3] == [n, parts] and int(self.counters[Count.ROUNDS]) == rounds == len(
            content["age"]
        )
        for name, size in (("part_doc", n), ("part_of", rounds)):
            sound &= len(content[name]) == parts and bool(((content[name] >= 0) & (content[name] < size)).all())
        sound &= int(self.rng[0]) != 0 and all(np.isfinite(content[name]).all() for name in ("totals", "part", "sums"))
        if sound:
            self.documents[:n], self.row_hash[:n] = documents, [crc32(row.tobytes()) for row in documents]
            self._add_up()
        return bool(sound)

    def model(self, average: bool = False) -> KernelFunction:
        """Return the scoring function, or its average over the rounds; it shares the stored documents."""
        n, rounds = int(self.counters[Count.DOCUMENTS]), max(float(self.totals[Total.ROUNDS]), 1.0)
        return self.function(self.documents[:n], self.sums[:n] / rounds if average else self.alpha[:n])

    def function(self, documents: Floats, alpha: Floats) -> KernelFunction:
        """Return Σ_b alpha_b k(s_b, ·) of any documents."""
        kernel, gamma, coef0, degree, _, _ = self.settings
        return KernelFunction(documents, alpha, kernel, gamma, coef0, degree)

    def end_round(self) -> None:
        """Add f to the sum that the average is made of."""
        n = int(self.counters[Count.DOCUMENTS])
        self.sums[:n] += self.alpha[:n]

    def add(self, X: Floats, change: Floats, size2: float) -> None:
        """Add Σ_i change_i k(x_i, ·), of squared norm `size2`, dropping rounds that the budget has no room for."""
        moved = np.flatnonzero(change)
        rows, change = X[moved], change[moved]
        self.longest[0] = max(self.longest[0], size2)
        key = np.uint64(crc32(X.tobytes()) << 32 | adler32(X.tobytes()))
        f_norm2 = None
        while self._places_missing(rows, key) > 0:
            at = self._round_to_drop(key)
            if at is None:
                self.counters[Count.DROPPED] += 1  # longer than the budget: the round itself
                self.too_long.append(len(rows))
                break
            if self.settings[5] == "forgetron":
                if f_norm2 is None:
                    now = self.model()
                    along = np.empty(len(rows))
                    now.score_rows(rows, along)
                    f_norm2 = squared_norm(now) + 2 * float(along @ change) + size2
                shrink = self._shrink(f_norm2)
                change, f_norm2 = change * shrink, f_norm2 * shrink**2
                self.part *= shrink
            self._drop(at)
        else:
            self._add_round(rows, change, key)
        self._add_up()

    def _places(self, rows: Floats) -> list[int]:
        """Return where each document is stored, −1 where it is not."""
        n, found = int(self.counters[Count.DOCUMENTS]), []
        for row in rows:
            same = np.flatnonzero(self.row_hash[:n] == crc32(row.tobytes()))
            found.append(next((int(at) for at in same if np.array_equal(self.documents[at], row)), -1))
        return found

    def _place_of_round(self, key: np.uint64) -> int:
        held = np.flatnonzero(self.key[: self.counters[Count.ROUNDS]] == key)
        return int(held[0]) if len(held) else -1

    def _places_missing(self, rows: Floats, key: np.uint64) -> int:
        """Return how many places an update is short of, for its documents or its coefficients."""
        places, at = self._places(rows), self._place_of_round(key)
        parts = (
            self.part_doc[: self.counters[Count.PARTS]][self.part_of[: self.counters[Count.PARTS]] == at]
            if at >= 0
            else _NONE
        )
        docs = len({row.tobytes() for row, place in zip(rows, places, strict=True) if place < 0})
        coefficients = sum(place < 0 or place not in parts for place in places)
        budget = len(self.alpha)
        return max(int(self.counters[Count.DOCUMENTS]) + docs, int(self.counters[Count.PARTS]) + coefficients) - budget

    def _round_to_drop(self, key: np.uint64) -> int | None:
        """Return the round that makes room for the one of this key; None where there is no other."""
        from ..model import _kernel_kernels as kernels

        others = [at for at in range(int(self.counters[Count.ROUNDS])) if self.key[at] != key]
        if not others:
            return None
        if self.settings[5] == "random":
            return others[int(kernels.next_random(self.rng)) % len(others)]
        if self.settings[5] == "smallest":
            return min(others, key=lambda at: (squared_norm(self.update(at)), self.age[at]))
        return min(others, key=lambda at: self.age[at])

    def _shrink(self, f_norm2: float) -> float:
        """φ = min((B + 1)^(−1/(2B + 2)), U R/‖f‖), U = ¼ √((B + 1)/ln(B + 1)): the Forgetron with B rounds held.

        The paper's documents have length 1; here updates do not, and R is the length of the longest so far.
        """
        rounds = int(self.counters[Count.ROUNDS]) + 1
        most = 0.25 * sqrt(rounds / log(rounds)) * sqrt(float(self.longest[0])) if rounds > 1 else np.inf
        norm = sqrt(max(f_norm2, 0.0))
        return float(min(rounds ** (-0.5 / rounds), most / norm if norm > 0 else 1.0))

    def update(self, at: int) -> KernelFunction:
        """Return what one of the rounds added to f, as far as it is still there."""
        parts = np.flatnonzero(self.part_of[: self.counters[Count.PARTS]] == at)
        return self.function(self.documents[self.part_doc[parts]], self.part[parts])

    def _drop(self, at: int) -> None:
        """Forget a round: its coefficients, and the documents that no other round needs."""
        keep = np.flatnonzero(self.part_of[: self.counters[Count.PARTS]] != at)
        count = len(keep)
        for name in ("part_of", "part_doc", "part"):
            array = getattr(self, name)
            array[:count], array[count:] = array[keep], 0
        last = int(self.counters[Count.ROUNDS]) - 1
        self.key[at], self.age[at] = self.key[last], self.age[last]
        self.part_of[:count][self.part_of[:count] == last] = at
        n = int(self.counters[Count.DOCUMENTS])
        docs = np.unique(self.part_doc[:count])
        new = np.zeros(n, dtype=np.int64)
        new[docs] = np.arange(len(docs))
        for name in ("documents", "sums", "row_hash"):
            array = getattr(self, name)
            array[: len(docs)], array[len(docs) :] = array[docs], 0
        self.part_doc[:count] = new[self.part_doc[:count]]
        self.counters[:] = len(docs), self.counters[Count.UPDATES], self.counters[Count.DROPPED] + 1, count, last

    def _add_round(self, rows: Floats, change: Floats, key: np.uint64) -> None:
        at = self._place_of_round(key)
        if at < 0:
            at = int(self.counters[Count.ROUNDS])
            self.key[at] = key
            self.counters[Count.ROUNDS] += 1
        self.counters[Count.UPDATES] += 1
        self.age[at] = self.counters[Count.UPDATES]
        for row, c in zip(rows, change, strict=True):
            (place,) = self._places(row[None])
            if place < 0:
                place = int(self.counters[Count.DOCUMENTS])
                self.documents[place], self.row_hash[place], self.sums[place] = row, crc32(row.tobytes()), 0.0
                self.counters[Count.DOCUMENTS] += 1
            parts = int(self.counters[Count.PARTS])
            own = np.flatnonzero((self.part_of[:parts] == at) & (self.part_doc[:parts] == place))
            if len(own):
                self.part[own[0]] += c
            else:
                self.part_of[parts], self.part_doc[parts], self.part[parts] = at, place, c
                self.counters[Count.PARTS] += 1

    def _add_up(self) -> None:
        n, parts = int(self.counters[Count.DOCUMENTS]), int(self.counters[Count.PARTS])
        self.alpha[:n] = np.bincount(self.part_doc[:parts], self.part[:parts], minlength=n)[:n]
        self.alpha[n:] = 0.0


_NONE = np.empty(0, dtype=np.int64)


def squared_norm(f: KernelFunction) -> float:
    """‖f‖² = Σ_b alpha_b f(s_b) in the space of the kernel."""
    values = np.empty(len(f.alpha))
    f.score_rows(f.stored, values)
    total = float((f.alpha * values).sum())
    return 0.0 if total < 0 else total  # rounding can leave a little below 0; what is not finite must stay so


def settings(ranker: KernelSlamPerceptron, n_features: int) -> tuple[Any, ...]:
    """Return what stored documents depend on: kernel, gamma, coef0, degree, budget and drop."""
    gamma = 1 / n_features if ranker.gamma is None else float(ranker.gamma)
    return ranker.kernel, gamma, float(ranker.coef0), int(ranker.degree), int(ranker.budget), ranker.drop
