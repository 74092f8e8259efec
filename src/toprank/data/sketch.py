"""Which rows a ranker learned from: marks of some of them, small enough for a model file."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .._typing import AnyArray, Ints, Matrix
from ..errors import InputError
from .dataset import QueryDataset
from .linear import parts
from .mapped import check_whole
from .remote import RemoteMatrix

SIZE = 3072
"""Marks that a sketch keeps: 32 KB of text in a model file."""
_LIST_BITS, _LIST_MASK = np.uint64(16), np.uint64(0xFFFF)
_ALL_ROWS, _LATER_ROWS = "rows:", "later rows:"
"""How the text of a sketch begins; that of the list marks of older model files has no colon."""


class Overlap(NamedTuple):
    """What a comparison of rows with those that were learned from has found; rows are counted once each."""

    rows: int
    """Different rows of the data set."""
    compared: int
    """Those of them that would be recognised if they had been learned from, and that stand in one query only."""
    matched: int
    """Those of them that were learned from."""
    explained: int
    """Matches to be expected where equal rows stand in different queries, with a margin that chance rarely exceeds."""
    query_ids: list[Any]
    """The queries with such rows."""

    @property
    def detectable(self) -> float:
        """The share of rows learned from that would have shown at least one match with probability 99%."""
        return 1.0 if self.compared == 0 else float(1 - 0.01 ** (1 / self.compared))


@dataclass(frozen=True, eq=False)
class Sketch:
    """The smallest marks of the rows that were learned from: all of them up to 3,072 rows, a fair sample beyond.

    A mark is a hash of a row's features as they came, rounded to single precision. It is the same for dense and sparse
    rows and does not depend on ids, grades, the order of rows or the list that they stand in. A row whose mark lies
    below the largest one that is kept must be among the marks if it was learned from, so a sample suffices to tell.
    Beside each mark stands whether its row was seen in one list (a hash of the list) or in different ones (0).

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=500, n_docs=10, random_state=0)
    >>> seen = Sketch.of(data[:400])
    >>> found = seen.compare(data[390:])
    >>> found.rows > 1000, found.matched > 50, len(found.query_ids)
    (True, True, 10)
    >>> again = Sketch.read(seen.text()).compare(data[400:])
    >>> again.compared > 500, again.matched, again.detectable < 0.01
    (True, 0, True)
    """

    marks: AnyArray
    complete: bool = True
    """Whether every row that was learned from had its chance to be kept; older model files did not note rows."""

    @classmethod
    def of(cls, *parts: QueryDataset) -> Sketch:
        """Return the marks of the rows of all parts."""
        found = cls(np.empty(0, dtype=np.uint64))
        for part in parts:
            found = found.with_lists(part.X, part.ptr)
        return found

    @classmethod
    def unknown(cls) -> Sketch:
        """Return the sketch of a ranker that learned from rows which nobody noted."""
        return cls(np.empty(0, dtype=np.uint64), complete=False)

    def with_lists(self, X: Matrix, ptr: Ints) -> Sketch:
        """Return the sketch of the rows of these lists too."""
        marks = X.collect(_smallest_marks) if isinstance(X, RemoteMatrix) else row_marks(X, ptr)
        return Sketch(_kernels().with_marks(self.marks, marks, SIZE), self.complete)

    def compare(self, data: QueryDataset) -> Overlap:
        """Say which rows of a data set were learned from, as far as can be told.

        Rows of zeros and rows of one-document queries are not compared, nor are rows that stand in different queries,
        here or in what was learned from: such rows equal others by chance.
        """
        marks = row_marks(data.X, data.ptr)
        rows, query = marks >> _LIST_BITS, np.repeat(np.arange(data.n_queries), data.lengths)
        chosen = np.flatnonzero((marks > 0) & (data.lengths[query] > 1) & (rows <= self._last))
        chosen = chosen[~np.isin(rows[chosen], self._rows[self._in_different_lists])]
        chosen = chosen[~np.isin(rows[chosen], _in_different_lists(marks[chosen]))]
        found = chosen[np.isin(rows[chosen], self._rows)]
        compared = len(np.unique(rows[chosen]))
        ids = data.query_ids[np.unique(query[found])].tolist()
        return Overlap(
            len(np.unique(rows)), compared, len(np.unique(rows[found])), self._matches_by_chance(compared), ids
        )

    def learned_all(self, data: QueryDataset) -> tuple[int, int]:
        """Return how many different rows of a data set were learned from, and of how many this is known."""
        rows = np.unique(row_marks(data.X, data.ptr) >> _LIST_BITS)
        rows = rows[(rows > 0) & (rows <= self._last)]
        return int(np.isin(rows, self._rows).sum()), len(rows)

    @property
    def _rows(self) -> AnyArray:
        rows: AnyArray = self.marks >> _LIST_BITS
        return rows

    @property
    def _in_different_lists(self) -> AnyArray:
        different: AnyArray = (self.marks & _LIST_MASK) == 0
        return different

    @property
    def _last(self) -> Any:
        """The largest row that must be among the marks if it was learned from."""
        return self._rows[-1] if len(self.marks) == SIZE else np.uint64(1) << np.uint64(48)

    def _matches_by_chance(self, compared: int) -> int:
        """Return how many of so many rows of new queries may equal a row of one learned query by chance.

        Good and Turing's estimate: of n rows with F_2 that occur in two lists, a new row equals one that occurred in
        one list with probability 2 F_2/n. Rows in three lists and more are counted as well, which allows for more.
        """
        repeated = int(self._in_different_lists.sum())
        if not repeated:
            return 0
        from scipy.stats import poisson

        return int(poisson.ppf(0.999, compared * min(1.0, 2 * repeated / (len(self.marks) + repeated))))

    def text(self) -> str:
        """Return the marks as text."""
        begin = _ALL_ROWS if self.complete else _LATER_ROWS
        return begin + base64.b64encode(self.marks.astype("<u8").tobytes()).decode()

    @classmethod
    def read(cls, text: str) -> Sketch:
        """Return the sketch that `text` was made from; older model files keep no marks of rows."""
        begin, colon, encoded = text.rpartition(":")
        if not colon:
            return cls.unknown()
        try:
            marks = np.frombuffer(base64.b64decode(encoded, validate=True), dtype="<u8").astype(np.uint64)
        except ValueError:
            marks = None
        known = begin + colon in (_ALL_ROWS, _LATER_ROWS)
        if marks is None or not known or len(marks) > SIZE or (marks[1:] <= marks[:-1]).any():
            raise InputError("the marks of the rows learned from are damaged")
        return cls(marks, complete=begin + colon == _ALL_ROWS)


def row_marks(X: Matrix, ptr: Ints) -> AnyArray:
    """Return a 64-bit mark of each row, its list in the last 16 bits; 0 for a row of zeros."""
    if isinstance(X, RemoteMatrix):
        return X.collect(row_marks)
    check_whole(X)
    marks: AnyArray = _kernels().row_marks(*parts(X), X.shape[1], ptr)
    return marks


def copied_queries(data: QueryDataset) -> AnyArray:
    """Say which queries have the rows and grades of an earlier query, and no others.

    A list of one document, or one whose rows all stand in other lists too, equals another by chance: it is no copy.

    >>> made = QueryDataset.from_arrays([[1.0], [2.0], [3.0], [2.0], [1.0]], [0, 1, 0, 1, 0], qid=list("aabcc"))
    >>> copied_queries(made).tolist()
    [False, False, True]
    """
    marks, copied, seen = row_marks(data.X, data.ptr), np.zeros(data.n_queries, dtype=bool), set[Any]()
    common = np.isin(marks >> _LIST_BITS, _in_different_lists(marks[marks > 0])) | (marks == 0)
    for q in np.flatnonzero(data.lengths > 1).tolist():
        rows = slice(data.ptr[q], data.ptr[q + 1])
        if common[rows].all():
            continue
        own = tuple(sorted(zip(marks[rows].tolist(), data.y[rows].tolist(), strict=True)))
        copied[q] = own in seen
        seen.add(own)
    return copied


def _smallest_marks(X: Matrix, ptr: Ints) -> AnyArray:
    """Return the marks of some lists that a sketch of more lists may keep."""
    marks: AnyArray = _kernels().with_marks(np.empty(0, dtype=np.uint64), row_marks(X, ptr), SIZE)
    return marks


def _in_different_lists(marks: AnyArray) -> AnyArray:
    """Return the rows that stand in more than one list; copies of a list are one list.

    >>> [int(row) for row in _in_different_lists(np.array([65541, 65542, 131077, 131077], dtype=np.uint64))]
    [1]
    """
    rows, lists = np.unique(np.unique(marks) >> _LIST_BITS, return_counts=True)
    found: AnyArray = rows[lists > 1]
    return found


@cache
def _kernels() -> Any:
    """Return the compiled part: an import statement in each call takes a microsecond."""
    from . import _sketch_kernels

    return _sketch_kernels
