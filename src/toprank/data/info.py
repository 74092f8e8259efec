"""The data report: what is in a data set, counted, named and shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .._tables import Table, wrap
from .._typing import CSR, AnyArray
from . import validation
from .csr import dense
from .duplicates import duplicate_rows
from .grades import lowest_above_zero, scale_without_zero

if TYPE_CHECKING:
    from .dataset import QueryDataset

WIDTH = 80
"""Columns of a terminal."""

NEARLY = 0.99
"""A column is nearly constant where one value has at least this share of the rows."""

HEAVY = 100.0
"""A column is heavy-tailed where the value farthest from its median is so many times as far as the median one."""

_SAMPLE_ROWS, _SAMPLE_VALUES = 4096, 1 << 22


@dataclass(frozen=True)
class DatasetInfo:
    """What is in a data set, as numbers and names; `str()` is a small table, `report` a few lines.

    >>> import toprank as tr
    >>> data = tr.QueryDataset.from_arrays([[1.0], [0.0], [3.0]], [0, 1, 0], qid=[7, 7, 8])
    >>> print(data.info())
    queries          2
    documents        3   (1 to 2 per query, median 1.5)
    features         1   (dense float64)
    grades           0: 2, 1: 1
    without relevant 1   (no document above grade 0)
    one grade only   1   (not informative)
    one document     1   (queries that have no order)
    constant columns 0
    >>> print(data.info().report("train.csv"))
    train.csv: 2 queries, 3 documents, 1 feature
      grades: 0: 2, 1: 1
      queries: 1 of one document, 1 without a relevant document, 1 of one grade only
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
    feature_names: list[str] | None = None
    """Columns that are used as features; None where they have no names."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Columns of the table that are not used, and why."""
    lowest_grade: float = 0.0
    """Where no document has grade 0, the lowest grade."""
    one_document_queries: int = 0
    duplicate_rows: int = 0
    """Rows that repeat one of their query: its document id, or without ids its features and grade."""
    first_duplicate: str | None = None
    constant_columns: list[str] = field(default_factory=list)
    """Of a dense matrix, by name or number (from 1); so are the next two."""
    nearly_constant_columns: list[str] = field(default_factory=list)
    heavy_tailed_columns: list[str] = field(default_factory=list)
    missing_cells: dict[str, int] = field(default_factory=dict)
    """Empty cells of the table by feature, which were filled."""

    @classmethod
    def of(cls, data: QueryDataset) -> DatasetInfo:
        """Count what `data` holds."""
        X: Any = data.X
        grades, counts = np.unique(data.y, return_counts=True)
        lengths, again = data.lengths, duplicate_rows(data)
        return cls(
            n_queries=data.n_queries,
            n_docs=data.n_docs,
            n_features=data.n_features,
            storage=f"CSR {X.dtype}" if data.is_sparse else f"dense {X.dtype}",
            shortest=int(lengths.min(initial=data.n_docs)),
            longest=int(lengths.max(initial=0)),
            median_length=float(np.median(lengths)) if len(lengths) else 0.0,
            grades={float(g): int(c) for g, c in zip(grades[:20], counts[:20], strict=True)},
            n_distinct_grades=len(grades),
            blank_queries=int((data.largest_grade <= 0).sum()),
            uninformative_queries=int((~data.informative).sum()),
            unevenness=validation.unevenness(X),
            weighted_docs=None if data.doc_weight is None else int(np.count_nonzero(data.doc_weight)),
            feature_names=None if data.feature_names is None else list(data.feature_names),
            left_out={} if data.source is None else dict(data.source.left_out),
            lowest_grade=lowest_above_zero(data.y) if data.n_queries > 1 else 0.0,
            one_document_queries=int((lengths == 1).sum()),
            duplicate_rows=len(again),
            first_duplicate=_named_row(data, int(again[0])) if len(again) else None,
            missing_cells={} if data.source is None else dict(data.source.missing_cells),
            **(_sparse_columns(X) if data.is_sparse else _dense_columns(dense(X), data.feature_names)),
        )

    def rows(self) -> list[tuple[str, str, str]]:
        """Return what is shown: a name, a value and a remark per line."""
        storage = self.storage + (f", {self.density:.1%} non-zero" if self.storage.startswith("CSR") else "")
        spread = f"({self.shortest} to {self.longest} per query, median {self.median_length:g})"
        return [
            ("queries", str(self.n_queries), ""),
            ("documents", str(self.n_docs), spread),
            ("features", str(self.n_features), f"({storage})"),
            *([] if self.feature_names is None else [("", _listed(self.feature_names, self.n_features), "")]),
            *([("left out", self._left_out(), "")] if self.left_out else []),
            ("grades", self._grades(), ""),
            ("without relevant", str(self.blank_queries), "(no document above grade 0)"),
            ("one grade only", str(self.uninformative_queries), "(not informative)"),
            *self._if_any("one document", self.one_document_queries, "(queries that have no order)"),
            ("constant columns", str(self.constant_features), _in_brackets(self.constant_columns)),
            *self._if_any(
                "nearly constant", len(self.nearly_constant_columns), _in_brackets(self.nearly_constant_columns)
            ),
            *self._if_any("heavy-tailed", len(self.heavy_tailed_columns), self._heavy_tailed()),
            *self._if_any("missing cells", sum(self.missing_cells.values()), f"({self._missing()})"),
            *self._if_any("duplicate rows", self.duplicate_rows, f"({self._duplicates()})"),
            *self._remarks(),
        ]

    def report(self, name: str) -> str:
        """Return the few lines that a command begins with: what is used, and what may be wrong with it."""
        counts = (_count(self.n_queries, "query", "queries"), _count(self.n_docs, "document"))
        listed = f": {_listed(self.feature_names, self.n_features)}" if self.feature_names else ""
        lines = [f"{name}: {', '.join(counts)}, {_count(self.n_features, 'feature')}{listed}"]
        lines += [f"  {line}" for line in self._report()]
        return "\n".join(part for line in lines for part in _folded(line, 4))

    def _report(self) -> Iterator[str]:
        if self.left_out:
            yield f"left out: {self._left_out()}"
        yield f"grades: {self._grades()}"
        if self.lowest_grade:
            yield scale_without_zero(self.lowest_grade)
        if self.duplicate_rows:
            yield f"duplicates: {self._duplicates()}"
        kinds = {
            "of one document": self.one_document_queries,
            "without a relevant document": self.blank_queries,
            "of one grade only": self.uninformative_queries,
        }
        if any(kinds.values()):
            yield "queries: " + ", ".join(f"{count:,} {what}" for what, count in kinds.items() if count)
        columns = {"constant": self.constant_columns, "nearly constant": self.nearly_constant_columns}
        for what, names in columns.items():
            if names:
                yield f"{what}: {_listed(names, self.constant_features if what == 'constant' else len(names))}"
        if self.heavy_tailed_columns:
            yield f"heavy-tailed: {_listed(self.heavy_tailed_columns)}; a logarithm may help (--prepare log)"
        if self.missing_cells:
            yield f"missing cells: {self._missing()}"

    def _grades(self) -> str:
        shown = ", ".join(f"{grade:g}: {count}" for grade, count in list(self.grades.items())[:8])
        return shown + (f", … ({self.n_distinct_grades} distinct)" if self.n_distinct_grades > 8 else "")

    def _left_out(self) -> str:
        words = {"an id": "an id; name it among the features to use it as one"}
        first = next((name for name, why in self.left_out.items() if why == "an id"), None)
        parts = [f"{name} ({words[why] if name == first else why})" for name, why in self.left_out.items()]
        return _listed(parts)

    def _missing(self) -> str:
        return _listed([f"{name} {count}" for name, count in self.missing_cells.items()])

    def _heavy_tailed(self) -> str:
        return f"{_in_brackets(self.heavy_tailed_columns)[:-1]}; a logarithm may help: --prepare log)"

    def _duplicates(self) -> str:
        one = self.duplicate_rows == 1
        what, whose = ("row repeats", "its query") if one else ("rows repeat", "their query")
        return f"{self.duplicate_rows:,} {what} {(self.first_duplicate or '').format(whose)}"

    @staticmethod
    def _if_any(name: str, count: int, note: str) -> list[tuple[str, str, str]]:
        return [(name, str(count), note)] if count else []

    def _remarks(self) -> Iterator[tuple[str, str, str]]:
        if self.lowest_grade:
            yield "lowest grade", f"{self.lowest_grade:g}", f"({scale_without_zero(self.lowest_grade)})"
        if self.unevenness >= validation.UNEVEN:
            yield "uneven columns", f"{self.unevenness:.0e}", "(largest over median: try --prepare log,query)"
        if self.weighted_docs is not None:
            yield "weighted", str(self.weighted_docs), "(documents with a weight)"

    def __str__(self) -> str:
        width = max(len(str(self.n_docs)), 3)
        lines = (f"{name:<16} {value:<{width}} {note}".rstrip() for name, value, note in self.rows())
        return "\n".join(part for line in lines for part in _folded(line, 17))

    def _repr_html_(self) -> str:
        return Table(("data set", "", ""), self.rows()).html()


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _listed(names: Sequence[str], total: int | None = None) -> str:
    """Return names with commas, of many the first ones and how many there are."""
    total = len(names) if total is None else total
    shown = names if total <= 12 and total == len(names) else names[:8]
    return ", ".join(shown) + (f", … ({total:,} in all)" if total > len(shown) else "")


def _in_brackets(names: Sequence[str]) -> str:
    return f"({_listed(names)})" if names else ""


def _folded(line: str, indent: int) -> list[str]:
    """Return a line in lines of a terminal's width, those after the first indented."""
    if len(line) <= WIDTH:
        return [line]
    lead = line[:indent] if not line[:indent].strip() or line[indent - 1 : indent] == " " else ""
    first, *others = wrap(line[len(lead) :], WIDTH - indent)
    return [lead + first, *(" " * indent + other for other in others)]


def _named_row(data: QueryDataset, row: int) -> str:
    """Say what a duplicate row repeats, with its query, and its document where it has an id."""
    if data.doc_ids is not None:
        return f"a document of {{}}, the first {data.doc_ids[row]} of query {data.qid[row]}"
    return f"features and grade of another of {{}}, the first in query {data.qid[row]}"


def _dense_columns(X: AnyArray, names: Sequence[str] | None) -> dict[str, Any]:
    """Return what is said of the columns of a dense matrix: two passes over it, the rest by some of its rows."""
    if not X.size:
        return {"density": 0.0, "constant_features": 0, "bytes": X.nbytes}
    gaps = np.isnan(X)
    if gaps.any():  # the numbers are about the cells that are there
        known = np.array(
            [np.median(column[~gap]) if not gap.all() else 0 for column, gap in zip(X.T, gaps.T, strict=True)]
        )
        X = np.where(gaps, known.astype(X.dtype), X)
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    sampled = min(_SAMPLE_ROWS, max(256, _SAMPLE_VALUES // X.shape[1]))
    part = X[:: max(1, len(X) // sampled)].astype(np.float64)
    middle = np.median(part, axis=0)
    away = np.abs(part - middle)
    constant = low == high
    nearly = ~constant & ((away == 0).mean(axis=0) >= NEARLY)
    away[away == 0] = np.nan
    usual = np.full(X.shape[1], np.inf)
    moving = ~np.isnan(away).all(axis=0)
    usual[moving] = np.nanmedian(away[:, moving], axis=0)
    heavy = ~constant & ~nearly & (np.maximum(high - middle, middle - low) > HEAVY * usual)

    def named(mask: AnyArray) -> list[str]:
        return [str(j + 1) if names is None else names[j] for j in np.flatnonzero(mask).tolist()]

    return {
        "density": int(np.count_nonzero(X)) / X.size,
        "constant_features": int(constant.sum()),
        "bytes": int(X.nbytes),
        "constant_columns": named(constant),
        "nearly_constant_columns": named(nearly),
        "heavy_tailed_columns": named(heavy),
    }


def _sparse_columns(X: CSR) -> dict[str, Any]:
    """Return what is said of the columns of a CSR matrix, most of which are nearly constant by their nature."""
    return {
        "density": X.nnz / max(1, X.shape[0] * X.shape[1]),
        "constant_features": X.shape[1] - _varying_columns(X),
        "bytes": int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes),
    }


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
