"""Steps between the features as they come and the columns that a scoring function sees, as values.

A chain is written in short: `prepare="log,+rank,+minmax,ramps:8"`. Steps that replace columns come first, then copies
that are relative to the query, then knots. A step that learns from rows (its knots) keeps what it learned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from .._suggest import did_you_mean
from .._typing import AnyArray, Floats, Ints, Matrix
from ..errors import InputError
from .csr import as_csr, csr_of, dense, is_sparse
from .dataset import QueryDataset
from .remote import ALL_ROWS, RemoteMatrix

REPLACE = ("log", "query", "standard")
"""Words of steps that put other values in the place of the features."""
BESIDE = ("+rank", "+minmax", "+standard")
"""Words of steps that put copies beside the features, seen relative to the other documents of the query."""
KNOTS = ("ramps", "steps")
"""Words of steps that put functions of one column beside it, with so many knots: "ramps:8"."""
MOST_KNOTS = 1000
CHUNK_VALUES = 1 << 22
"""Feature values that are looked at together while knots are learned."""


class Step(ABC):
    """One step. Subclasses are frozen dataclasses; what they learn are fields that `fit` fills."""

    learns: ClassVar[bool] = False
    """Whether `fit` takes something from the rows."""

    @property
    @abstractmethod
    def words(self) -> tuple[str, ...]:
        """The step as `prepare` names it."""

    @property
    @abstractmethod
    def needs_queries(self) -> bool:
        """Whether it matters which rows belong to one query."""

    @property
    def widens(self) -> bool:
        """Whether there are more columns afterwards."""
        return True

    def fills(self, X: Matrix) -> bool:
        """Whether zeros that a sparse X does not store become other numbers."""
        return False

    @abstractmethod
    def n_outputs(self, width: int) -> int:
        """Return how many columns it makes of so many."""

    @abstractmethod
    def labels(self, before: tuple[str, ...]) -> tuple[str, ...]:
        """Return a name for each column that it makes, given those of the columns before."""

    def origins(self, before: Ints) -> Ints:
        """Return what each column that it makes comes from, given that of the columns before."""
        return before

    @abstractmethod
    def apply(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with the columns that the step makes."""

    def fit(self, data: QueryDataset, before: Callable[[QueryDataset], QueryDataset]) -> Step:
        """Return the step with what it learns from `data`, whose columns `before` prepares, some at a time."""
        return self


@dataclass(frozen=True)
class Replaced(Step):
    """Other values in the place of the features: "log" (`SignedLog`), "query" and "standard" (`QueryNormalizer`)."""

    word: str

    @property
    def words(self) -> tuple[str, ...]:
        """The step as `prepare` names it."""
        return (self.word,)

    @property
    def needs_queries(self) -> bool:
        """Whether it matters which rows belong to one query."""
        return self.word != "log"

    @property
    def widens(self) -> bool:
        """It does not."""
        return False

    def n_outputs(self, width: int) -> int:
        """Return as many."""
        return width

    def labels(self, before: tuple[str, ...]) -> tuple[str, ...]:
        """Return the same names."""
        return before

    def apply(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with other values."""
        from .transforms import transformer_of

        made: QueryDataset = transformer_of(self.word).transform_queries(data)
        return made


@dataclass(frozen=True)
class QueryRelative(Step):
    """Copies of all columns beside them, relative to the documents of the query.

    rank: (documents with a smaller value + half of the others with the same)/(n − 1), 0 … 1 upwards; minmax:
    (x − min)/(max − min); standard: (x − mean)/deviation. A column that is constant in a query gives 0.

    >>> data = QueryDataset.from_arrays([[5.0], [1.0], [1.0], [9.0]], [1, 0, 0, 2])
    >>> QueryRelative(("rank", "minmax")).apply(data).X.T.round(3).tolist()
    [[5.0, 1.0, 1.0, 9.0], [0.667, 0.167, 0.167, 1.0], [0.5, 0.0, 0.0, 1.0]]
    """

    views: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The step as `prepare` names it, a word for each copy."""
        return tuple(f"+{view}" for view in self.views)

    @property
    def needs_queries(self) -> bool:
        """It does."""
        return True

    def fills(self, X: Matrix) -> bool:
        """All views move zeros, unless 0 is the smallest value of each column and is scaled to 0."""
        return self.views != ("minmax",)

    def n_outputs(self, width: int) -> int:
        """Return the columns and their copies."""
        return width * (1 + len(self.views))

    def labels(self, before: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names, and with what the copies are."""
        return (*before, *(f"{view} of {name}" for view in self.views for name in before))

    def origins(self, before: Ints) -> Ints:
        """Return the columns, once more for each copy."""
        return np.tile(before, 1 + len(self.views))

    def apply(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with the copies behind the columns; a sparse X stays sparse where that is possible."""
        from . import _preparation_kernels as own
        from . import _transform_kernels as kernels

        if is_sparse(data.X) and not self.fills(data.X):
            from scipy.sparse import hstack

            scaled = Replaced("query").apply(data).X
            return data._with(X=as_csr(hstack([data.X, scaled], format="csr")), feature_names=None, mapped=None)
        X = np.asarray(dense(data.X))
        d = X.shape[1]
        out, rows = np.empty((len(X), self.n_outputs(d))), np.arange(len(X))
        out[:, :d] = X
        write = {"rank": own.ranks_in_queries, "minmax": kernels.min_max, "standard": kernels.standard}
        for place, view in enumerate(self.views, start=1):
            write[view](X, data.ptr, rows, out[:, place * d : (place + 1) * d])
        return data._with(X=out, feature_names=None, mapped=None)


@dataclass(frozen=True, eq=False)
class Knotted(Step):
    """Functions of single columns behind all columns, which stay: one for each knot t of a column.

    `count` knots for a column, fewer where it has fewer values: quantiles of its values in the rows that `fit` sees.
    """

    count: int
    width: int = 0
    """How many columns there were in `fit`; 0 before it."""
    column: Ints | None = None
    """The column of each knot, in rising order."""
    knot: Floats | None = None
    """The knots, in rising order in each column."""
    scale: Floats | None = None
    """What the function of a knot is divided by."""

    learns: ClassVar[bool] = True
    word: ClassVar[str]

    def __post_init__(self) -> None:
        if type(self.count) is not int or not 1 <= self.count <= MOST_KNOTS:
            raise InputError(f"{self.word} takes 1 to {MOST_KNOTS} knots, as in {self.word}:8, got {self.count!r}")
        if self.column is None or self.knot is None or self.scale is None:
            if self.width != 0 or any(part is not None for part in (self.column, self.knot, self.scale)):
                raise InputError(f"the knots of {self.word} are incomplete")
            return
        parts = (self.column, self.knot, self.scale)
        if {np.shape(part) for part in parts} != {(len(self.column),)} or self.column.dtype.kind not in "iu":
            raise InputError(f"a knot of {self.word} has a column, a place and a scale: the lists differ in length")
        if type(self.width) is not int or self.width < 1:
            raise InputError(f"{self.word} was learned on no columns")
        if len(self.column) and not 0 <= self.column.min() <= self.column.max() < self.width:
            raise InputError(f"a knot of {self.word} is in a column outside 0 … {self.width - 1}")
        same, rising = np.diff(self.column) == 0, np.diff(self.knot) > 0
        if (np.diff(self.column) < 0).any() or not (rising | ~same).all():
            raise InputError(f"the knots of {self.word} are not in rising order")
        if not (np.isfinite(self.knot).all() and np.isfinite(self.scale).all() and (self.scale > 0).all()):
            raise InputError(f"the knots of {self.word} must be finite numbers, their scales above 0")
        if len(self.column) and np.bincount(self.column).max() > self.count:
            raise InputError(f"a column has more than the {self.count} knots of {self.word}")

    @property
    def words(self) -> tuple[str, ...]:
        """The step as `prepare` names it."""
        return (f"{self.word}:{self.count}",)

    @property
    def needs_queries(self) -> bool:
        """It does not."""
        return False

    @property
    def learned(self) -> tuple[Ints, Floats, Floats]:
        """The column, the place and the scale of each knot."""
        if self.column is None or self.knot is None or self.scale is None:
            raise InputError(f"{self.words[0]} has no knots yet: they are learned by fit")
        return self.column, self.knot, self.scale

    @cached_property
    def starts(self) -> Ints:
        """Where the knots of each column begin among all, and their number."""
        return np.searchsorted(self.learned[0], np.arange(self.width + 1)).astype(np.int64)

    def n_outputs(self, width: int) -> int:
        """Return the columns and the knots."""
        if width != self.width:
            raise InputError(f"{self.words[0]} was learned on {self.width} columns, and there are {width}")
        return width + len(self.learned[0])

    def labels(self, before: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names, and for each knot its place in its column."""
        column, knot, _ = self.learned
        place = np.arange(len(column)) - self.starts[column] + 1
        pairs = zip(column.tolist(), place.tolist(), knot.tolist(), strict=True)
        return (*before, *(f"{before[j]} {self.word[:-1]} {k} (above {t:.6g})" for j, k, t in pairs))

    def origins(self, before: Ints) -> Ints:
        """Return the columns, then those of the knots."""
        return np.append(before, before[self.learned[0]])

    def fit(self, data: QueryDataset, before: Callable[[QueryDataset], QueryDataset]) -> Self:
        """Return the step with knots at quantiles of each column as `before` prepares it.

        Every step so far looks at each feature by itself, so a few features are prepared at a time.
        """
        if isinstance(data.X, RemoteMatrix):
            raise InputError(f'prepare="{self.words[0]}" learns its knots from all rows: {ALL_ROWS}')
        d, chunk = data.n_features, max(1, CHUNK_VALUES // max(1, data.n_docs))
        found: dict[int, tuple[Floats, float]] = {}
        possible = 0
        for first in range(0, d, chunk):
            chosen = np.arange(first, min(first + chunk, d))
            for place, values in enumerate(_columns(before(data.with_columns(chosen)).X)):
                view, feature = divmod(place, len(chosen))
                values.sort()
                candidates = self._candidates(values[np.append(True, values[1:] > values[:-1])])
                possible = max(possible, len(candidates))
                found[view * d + first + feature] = self._chosen(values, candidates)
        if possible < self.count:
            instead = f"take {self.word}:{possible} or fewer" if possible else f"leave {self.word} out"
            raise InputError(
                f"{self.words[0]} asks for {self.count} knots, and no column has values for more than {possible}: "
                f"{instead}"
            )
        lengths = [len(found[j][0]) for j in range(len(found))]
        return replace(
            self,
            width=len(found),
            column=np.repeat(np.arange(len(found)), lengths),
            knot=np.concatenate([found[j][0] for j in range(len(found))]),
            scale=np.repeat([found[j][1] for j in range(len(found))], lengths),
        )

    def _chosen(self, values: Floats, candidates: Floats) -> tuple[Floats, float]:
        """Return the knots of a column with these values in rising order, and their scale.

        Where some quantiles are one value, or the smallest or the largest one, each value counts once.
        """
        levels = np.arange(1, self.count + 1)
        if len(candidates) <= self.count:
            knots = candidates
        else:
            knots = np.unique(values[levels * len(values) // (self.count + 1)])
            knots = knots[np.isin(knots, candidates)]
            if len(knots) < self.count:
                knots = candidates[levels * len(candidates) // (self.count + 1)]
        return knots, self._scale_of(values, knots)

    @abstractmethod
    def _candidates(self, distinct: Floats) -> Floats:
        """Return the values, out of all in rising order, at which a knot makes a difference."""

    @abstractmethod
    def _scale_of(self, values: Floats, knots: Floats) -> float:
        """Return what the functions of the knots are divided by."""

    def apply(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with the functions behind the columns; a sparse X stays sparse."""
        self.n_outputs(data.n_features)
        X = self._sparse(data.X) if is_sparse(data.X) else self._dense(np.asarray(dense(data.X)))
        return data._with(X=X, feature_names=None, mapped=None)

    @abstractmethod
    def values(self, x: Floats, knot: Floats, scale: Floats) -> Floats:
        """Return the functions of knots at values x, 0 where x is 0."""

    @abstractmethod
    def _dense(self, X: AnyArray) -> Floats:
        """Return the columns and the functions."""

    def _sparse(self, X: Matrix) -> Matrix:
        """Return the columns and the functions, which are 0 where X is."""
        assert is_sparse(X)
        _, knot, scale = self.learned
        many = np.diff(self.starts)[X.indices]
        entry = np.repeat(np.arange(len(X.indices)), many)
        which = np.arange(len(entry)) - np.repeat(np.cumsum(many) - many, many) + self.starts[X.indices][entry]
        values = self.values(X.data[entry].astype(np.float64), knot[which], scale[which])
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        rows, columns = np.concatenate([row, row[entry]]), np.concatenate([X.indices, self.width + which])
        order = np.argsort(rows, kind="stable")  # the columns of a row are in rising order: its own, then the knots
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))])
        data = np.concatenate([X.data, values])[order]
        return csr_of(data, columns[order].astype(np.int32), indptr.astype(np.int32), self.n_outputs(self.width))


@dataclass(frozen=True, eq=False)
class Ramps(Knotted):
    """(max(x, t) − max(0, t))/s for each knot t: with the column itself, any curve of straight lines that bends at t.

    s is the distance from the first knot to the last one of the column, so that weights of all columns compare.

    >>> data = QueryDataset.from_arrays([[0.0], [1.0], [3.0], [4.0], [9.0]], [0, 1, 2, 3, 4])
    >>> ramps = Ramps(2).fit(data, lambda part: part)
    >>> ramps.knot.tolist(), ramps.scale.tolist()
    ([1.0, 4.0], [3.0, 3.0])
    >>> ramps.apply(data).X.tolist()[-2:]
    [[4.0, 1.0, 0.0], [9.0, 2.6666666666666665, 1.6666666666666667]]
    """

    word: ClassVar[str] = "ramps"

    def _candidates(self, distinct: Floats) -> Floats:
        return distinct[1:-1]

    def _scale_of(self, values: Floats, knots: Floats) -> float:
        return float(knots[-1] - knots[0] if len(knots) > 1 else values[-1] - values[0]) or 1.0

    def values(self, x: Floats, knot: Floats, scale: Floats) -> Floats:
        """Return the functions of knots at values x, 0 where x is 0."""
        made: Floats = (np.maximum(x, knot) - np.maximum(0.0, knot)) / scale
        return made

    def _dense(self, X: AnyArray) -> Floats:
        from . import _preparation_kernels as kernels

        _, knot, scale = self.learned
        out = np.empty((len(X), self.n_outputs(X.shape[1])))
        kernels.ramps(X, self.starts, knot, scale, out)
        return out


@dataclass(frozen=True, eq=False)
class Thresholds(Knotted):
    """[x > t] − [0 > t] for each knot t: with the column itself, any function that jumps at t.

    >>> data = QueryDataset.from_arrays([[0.0], [1.0], [3.0], [4.0], [9.0]], [0, 1, 2, 3, 4])
    >>> Thresholds(2).fit(data, lambda part: part).apply(data).X.tolist()[-2:]
    [[4.0, 1.0, 0.0], [9.0, 1.0, 1.0]]
    """

    word: ClassVar[str] = "steps"

    def _candidates(self, distinct: Floats) -> Floats:
        return distinct[:-1]

    def _scale_of(self, values: Floats, knots: Floats) -> float:
        return 1.0

    def values(self, x: Floats, knot: Floats, scale: Floats) -> Floats:
        """Return the functions of knots at values x, 0 where x is 0."""
        return (x > knot).astype(np.float64) - (knot < 0)

    def _dense(self, X: AnyArray) -> Floats:
        from . import _preparation_kernels as kernels

        out = np.empty((len(X), self.n_outputs(X.shape[1])))
        kernels.thresholds(X, self.starts, self.learned[1], out)
        return out


def words_of(prepare: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of a text or a list, in their order; "minmax" is another word for "query".

    >>> words_of("log,minmax"), words_of(["+rank", "ramps:8"]), words_of("")
    (('log', 'query'), ('+rank', 'ramps:8'), ())
    """
    return tuple(word for step in steps_of(prepare) for word in step.words)


def steps_of(prepare: str | Sequence[str | Step]) -> tuple[Step, ...]:
    """Return the steps that a text or a list names, nothing learned yet; steps pass through.

    >>> [type(step).__name__ for step in steps_of("log,+rank,+minmax,ramps:8")]
    ['Replaced', 'QueryRelative', 'Ramps']
    >>> steps_of("ramps:8,log")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: prepare: 'log' must come before 'ramps:8' (values, then +copies, then ramps or steps)
    """
    named = prepare.split(",") if isinstance(prepare, str) else prepare
    steps: list[Step] = []
    for each in named:
        step = each if isinstance(each, Step) else _step_of(str(each).strip())
        if step is None:
            continue
        before = steps[-1] if steps else None
        if isinstance(before, QueryRelative) and isinstance(step, QueryRelative):
            if set(before.views) & set(step.views):
                raise InputError(f"prepare has {step.words[0]!r} twice")
            steps[-1] = QueryRelative((*before.views, *step.views))
            continue
        if before is not None and (_rank(before) > _rank(step) or _rank(before) == _rank(step) == 2):
            rule = "take one of ramps and steps" if _rank(step) == 2 else "values, then +copies, then ramps or steps"
            raise InputError(f"prepare: {step.words[0]!r} must come before {before.words[-1]!r} ({rule})")
        steps.append(step)
    return tuple(steps)


def _rank(step: Step) -> int:
    return 0 if isinstance(step, Replaced) else 1 if isinstance(step, QueryRelative) else 2


def _step_of(word: str) -> Step | None:
    """Return the step of one word; None of an empty one."""
    if not word:
        return None
    word = {"minmax": "query", "+query": "+minmax"}.get(word, word)
    if word in REPLACE:
        return Replaced(word)
    if word in BESIDE:
        return QueryRelative((word[1:],))
    name, colon, count = word.partition(":")
    if name in KNOTS and colon and count.isdecimal() and len(count) < 9:
        return (Ramps if name == "ramps" else Thresholds)(int(count))
    known = (*REPLACE, *BESIDE, "ramps:8", "steps:16")
    raise InputError(
        f"prepare has {word!r}{did_you_mean(word, known)}: there are {', '.join(known)} and chains of them such as "
        "'log,query'"
    )


def _columns(X: Matrix) -> Iterator[Floats]:
    """Yield the values of each column, zeros that are not stored among them."""
    if not is_sparse(X):
        for j in range(X.shape[1]):
            yield np.array(X[:, j], dtype=np.float64)
        return
    by_column = X.tocsc()
    for a, b in zip(by_column.indptr[:-1], by_column.indptr[1:], strict=True):
        stored = by_column.data[a:b].astype(np.float64)
        yield np.concatenate([stored, np.zeros(X.shape[0] - len(stored))])
