"""Which queries a ranker learned from: a few marks of them, small enough for a model file."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .._typing import AnyArray, Ints, Matrix
from ..errors import InputError
from .dataset import QueryDataset
from .linear import parts
from .remote import RemoteMatrix

SIZE = 256
"""Marks that a sketch keeps."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """The smallest marks of the queries seen: all of them up to 256 queries, a fair sample of them beyond.

    A mark is a hash of a query's length and of a few of its rows, rounded to single precision: it is the same for dense
    and sparse rows, and does not depend on ids or grades. What lies below the largest mark that is kept must be among
    the marks if it was seen, so a sample suffices to tell.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=500, random_state=0)
    >>> seen = Sketch.of(data[:400])
    >>> found, compared = seen.found_in(data[:400])
    >>> found == compared == 256
    True
    >>> seen.found_in(data[400:])[0], Sketch.read(seen.text()).found_in(data[:400])
    (0, (256, 256))
    """

    marks: AnyArray

    @classmethod
    def of(cls, *parts: QueryDataset) -> Sketch:
        """Return the marks of the queries of all parts."""
        found = cls(np.empty(0, dtype=np.uint64))
        for part in parts:
            found = found.with_lists(part.X, part.ptr)
        return found

    def with_lists(self, X: Matrix, ptr: Ints) -> Sketch:
        """Return the sketch of these lists too."""
        return Sketch(_kernels().with_marks(self.marks, query_marks(X, ptr), SIZE))

    def found_in(self, data: QueryDataset) -> tuple[int, int]:
        """Return how many queries of `data` were seen, and of how many queries this is known."""
        marks = query_marks(data.X, data.ptr)
        marks = marks[marks > 0]
        if len(self.marks) == SIZE:
            marks = marks[marks <= self.marks[-1]]
        return int(np.isin(marks, self.marks).sum()), len(marks)

    def text(self) -> str:
        """Return the marks as text."""
        return base64.b64encode(self.marks.astype("<u8").tobytes()).decode()

    @classmethod
    def read(cls, text: str) -> Sketch:
        """Return the sketch that `text` was made from."""
        try:
            raw = base64.b64decode(text, validate=True)
            marks = np.frombuffer(raw, dtype="<u8").astype(np.uint64)
        except ValueError:
            marks = None
        if marks is None or len(marks) > SIZE or (marks[1:] <= marks[:-1]).any():
            raise InputError("the marks of the queries learned from are damaged")
        return cls(marks)


def query_marks(X: Matrix, ptr: Ints) -> AnyArray:
    """Return a 64-bit mark of each list, 0 where it has no documents."""
    if isinstance(X, RemoteMatrix):
        return X.collect(query_marks)
    marks: AnyArray = _kernels().query_marks(*parts(X), X.shape[1], ptr)
    return marks


@cache
def _kernels() -> Any:
    """Return the compiled part: an import statement in each call takes a microsecond."""
    from . import _sketch_kernels

    return _sketch_kernels
