"""What is in a data set, counted and shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tables import Table
from .._typing import CSR
from . import validation

if TYPE_CHECKING:
    from .dataset import QueryDataset


@dataclass(frozen=True)
class DatasetInfo:
    """What is in a data set, as numbers; `str()` is a small table.

    >>> import toprank as tr
    >>> print(tr.QueryDataset.from_arrays([[1.0], [0.0], [3.0]], [0, 1, 0], qid=[7, 7, 8]).info())
    queries          2
    documents        3   (1 to 2 per query, median 1.5)
    features         1   (dense float64)
    grades           0: 2, 1: 1
    without relevant 1   (no document above grade 0)
    one grade only   1   (not informative)
    constant columns 0
    """

    n_queries: int
    n_docs: int
    n_features: int
    storage: str
    density: float
    shortest: int
    longest: int
    median_length: float
    grades: dict[float, int]
    n_distinct_grades: int
    blank_queries: int
    uninformative_queries: int
    constant_features: int
    bytes: int
    unevenness: float = 1.0
    """The largest column over the median one, max |x| of each."""
    weighted_docs: int | None = None
    """Documents with a weight above 0, where documents have weights."""

    @classmethod
    def of(cls, data: QueryDataset) -> DatasetInfo:
        """Count what `data` holds."""
        X: Any = data.X
        grades, counts = np.unique(data.y, return_counts=True)
        if data.is_sparse:
            stored, size = X.nnz, X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
            constant = X.shape[1] - _varying_columns(X)
        else:
            stored, size = int(np.count_nonzero(X)), X.nbytes
            constant = int((X.max(axis=0) == X.min(axis=0)).sum())
        lengths = data.lengths
        return cls(
            n_queries=data.n_queries,
            n_docs=data.n_docs,
            n_features=data.n_features,
            storage=f"CSR {X.dtype}" if data.is_sparse else f"dense {X.dtype}",
            density=stored / max(1, data.n_docs * data.n_features),
            shortest=int(lengths.min(initial=data.n_docs)),
            longest=int(lengths.max(initial=0)),
            median_length=float(np.median(lengths)) if len(lengths) else 0.0,
            grades={float(g): int(c) for g, c in zip(grades[:20], counts[:20], strict=True)},
            n_distinct_grades=len(grades),
            blank_queries=int((data.largest_grade <= 0).sum()),
            uninformative_queries=int((~data.informative).sum()),
            constant_features=constant,
            unevenness=validation.unevenness(X),
            bytes=int(size),
            weighted_docs=None if data.doc_weight is None else int(np.count_nonzero(data.doc_weight)),
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """Return what is shown: a name, a value and a remark per line."""
        shown = ", ".join(f"{grade:g}: {count}" for grade, count in list(self.grades.items())[:8])
        more = f", … ({self.n_distinct_grades} distinct)" if self.n_distinct_grades > 8 else ""
        storage = self.storage + (f", {self.density:.1%} non-zero" if self.storage.startswith("CSR") else "")
        spread = f"({self.shortest} to {self.longest} per query, median {self.median_length:g})"
        return [
            ("queries", str(self.n_queries), ""),
            ("documents", str(self.n_docs), spread),
            ("features", str(self.n_features), f"({storage})"),
            ("grades", shown + more, ""),
            ("without relevant", str(self.blank_queries), "(no document above grade 0)"),
            ("one grade only", str(self.uninformative_queries), "(not informative)"),
            ("constant columns", str(self.constant_features), ""),
            *self._remarks(),
        ]

    def _remarks(self) -> Iterator[tuple[str, str, str]]:
        if self.unevenness >= validation.UNEVEN:
            yield "uneven columns", f"{self.unevenness:.0e}", "(largest over median: try --prepare log,query)"
        if self.weighted_docs is not None:
            yield "weighted", str(self.weighted_docs), "(documents with a weight)"

    def __str__(self) -> str:
        width = max(len(str(self.n_docs)), 3)
        return "\n".join(f"{name:<16} {value:<{width}} {note}".rstrip() for name, value, note in self.rows())

    def _repr_html_(self) -> str:
        return Table(("data set", "", ""), self.rows()).html()


def _varying_columns(X: CSR) -> int:
    """Count the columns of a CSR matrix that have different values, in memory that does not grow with its width."""
    by_column = np.argsort(X.indices, kind="stable")
    columns, first, counts = np.unique(X.indices[by_column], return_index=True, return_counts=True)
    if not len(columns):
        return 0
    values = X.data[by_column]
    low, high = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
    partly = counts < X.shape[0]  # what a row does not hold is 0
    return int((np.where(partly, np.minimum(low, 0), low) != np.where(partly, np.maximum(high, 0), high)).sum())
