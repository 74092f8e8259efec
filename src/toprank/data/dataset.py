"""Judged queries as one value: features, grades and where each query begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .._tables import Table
from .._typing import AnyArray, ArrayLike, Floats, Ints, Matrix
from ..errors import InputError
from . import csr, validation
from .csr import dense, is_sparse
from .grades import check_not_swapped
from .grouping import bounds_of, group_rows, in_order, query_of_rows, rows_of
from .remote import RemoteMatrix
from .source import Source
from .weights import weight_of_queries

if TYPE_CHECKING:
    from .blocks import BlockResults
    from .info import DatasetInfo

T = TypeVar("T")

PER_ROW, PER_QUERY = ("y", "doc_ids", "doc_weight"), ("query_ids", "query_weight")
"""The arrays of a data set beside X and ptr: one value per document, or one per query."""


@dataclass(frozen=True, eq=False)
class QueryDataset:
    """Documents of queries, grouped: query q owns rows `ptr[q]:ptr[q+1]`.

    Build one with `QueryDataset.from_arrays`, `read_letor` or `read_table`. It is immutable: slices share memory
    with it, and nothing ever writes to `X`.

    `X`, `y`, `qid` and `doc_ids` are grouped by query. What goes in or out beside a data set (`evaluate(scores, data)`,
    `ranker.predict(data)`, `ranker.rank(data)`) is in the caller's row order, which `order` remembers;
    `in_caller_order` and `grouped` go from one to the other. A slice `data[...]` is a data set of its own: the order of
    its rows is the caller's order.

    >>> data = QueryDataset.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> data.n_queries, data.n_docs, data.n_features
    (2, 3, 1)
    >>> data.query_ids.tolist(), data.qid.tolist(), data.y.tolist()
    (['a', 'b'], ['a', 'a', 'b'], [0.0, 2.0, 1.0])
    >>> data.in_caller_order(data.y).tolist(), data.grouped(np.array([0, 1, 2])).tolist()
    ([0.0, 1.0, 2.0], [0, 2, 1])
    >>> data.feature(0).tolist()
    [1.0, 2.0, 3.0]
    >>> data[1].X.tolist()
    [[2.0]]
    """

    X: Matrix
    y: Floats
    ptr: Ints
    query_ids: AnyArray
    feature_names: tuple[str, ...] | None = None
    doc_ids: AnyArray | None = None
    query_weight: Floats | None = None
    doc_weight: Floats | None = None
    """How much a document counts where it is preferred to another: a click at a place that few see counts more."""
    order: Ints | None = None
    """The caller's row behind each of ours; None: the same order."""
    has_missing: bool = False
    """Whether X may have missing cells (NaN), which a model then fills by its own rule."""
    mapped: tuple[Path, int, int] | None = field(default=None, repr=False)
    """Folder of memory-mapped arrays and the range of queries, when X lives on disk."""
    source: Source | None = field(default=None, repr=False)
    """Where the data set was read from, and what became of the columns; parts of it do not have it."""

    def __post_init__(self) -> None:
        """Check shapes, types and bounds, however a data set is made; the values of X are not read."""
        X = validation.as_rows(self.X)
        n_docs, n_features = X.shape
        ptr = validation.as_ptr(self.ptr, n_docs)
        vars(self).update(
            X=X,
            y=validation.as_labels(self.y, n_docs),
            ptr=ptr,
            query_ids=validation.as_query_ids(self.query_ids, len(ptr) - 1),
            feature_names=validation.as_feature_names(self.feature_names, n_features),
            doc_ids=validation.as_doc_ids(self.doc_ids, n_docs),
            query_weight=validation.as_query_weight(self.query_weight, len(ptr) - 1),
            doc_weight=validation.as_doc_weight(self.doc_weight, n_docs),
            order=validation.as_order(self.order, n_docs),
        )

    def _with(self, **changes: Any) -> QueryDataset:
        """Do what `replace` does, with parts of what was checked before: nothing is checked again."""
        made, own = object.__new__(QueryDataset), vars(self)
        vars(made).update({name: own[name] for name in _FIELDS - changes.keys()}, **changes)
        return made

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        doc_ids: ArrayLike | None = None,
        query_weight: ArrayLike | Mapping[Any, float] | None = None,
        doc_weight: ArrayLike | None = None,
        missing: validation.Missing = "error",
    ) -> QueryDataset:
        """Check and group the caller's arrays; `qid` is one id per row in any order, None means one list.

        `missing` says what becomes of missing cells (NaN): "error" refuses them, "zero" takes them for 0, "keep" leaves
        them to the model that learns from the rows or scores them.

        `query_weight` is a mapping or a Series by query id, one weight per row (the same in all rows of a query), or
        one per query in order of first appearance; `doc_weight` has one per row. Only rows that
        are not yet grouped by query are copied.
        """
        validation.check_collected(X)
        if feature_names is None:
            columns = getattr(X, "columns", None)
            feature_names = None if columns is None else [str(name) for name in columns]
        X, has_missing = validation.as_matrix_with_gaps(X, feature_names=feature_names, missing=missing)
        n_docs, n_features = X.shape
        if n_docs == 0:
            raise InputError(
                f"the data set is empty: X has 0 sample(s) (shape={X.shape}), at least one document is required"
            )
        if n_features == 0:
            raise InputError(f"X has 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
        labels = validation.as_labels(y, n_docs)
        ids = validation.as_doc_ids(doc_ids, n_docs)
        weights = validation.as_doc_weight(doc_weight, n_docs)
        ptr, query_ids, order = group_rows(qid, n_docs)
        if len(query_ids) > 1:
            check_not_swapped(labels, validation.as_qid(qid, n_docs))
        return cls(
            X=in_order(X, order),
            y=in_order(labels, order),
            ptr=ptr,
            query_ids=query_ids,
            feature_names=feature_names,  # type: ignore[arg-type]
            doc_ids=in_order(ids, order),
            query_weight=weight_of_queries(query_weight, query_ids, ptr, order),
            doc_weight=in_order(weights, order),
            order=order,
            has_missing=has_missing,
        )

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.ptr) - 1

    @property
    def n_docs(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is CSR."""
        return validation.is_sparse(self.X)

    @property
    def row_values(self) -> float:
        """Stored feature values in a row, in the mean."""
        if isinstance(self.X, RemoteMatrix):
            return self.X.row_values
        return self.X.nnz / max(1, self.n_docs) if is_sparse(self.X) else self.n_features

    @cached_property
    def lengths(self) -> Ints:
        """Documents per query."""
        return np.diff(self.ptr)

    @cached_property
    def query_of_rows(self) -> Ints:
        """Number of each row's query: 0 for those of the first."""
        return query_of_rows(self.ptr)

    @cached_property
    def qid(self) -> AnyArray:
        """Query id of each row: what `fit(X, y, qid=...)` takes."""
        return np.repeat(self.query_ids, self.lengths)

    @cached_property
    def informative(self) -> AnyArray:
        """Which queries have documents of different grade, or weight: only these say what a better order is."""
        graded = informative_queries(self.y, self.ptr)
        # Where every document was clicked, how often (over its propensity) still says which is the better one.
        return graded if self.doc_weight is None else graded | informative_queries(self.doc_weight, self.ptr)

    @cached_property
    def largest_grade(self) -> Floats:
        """Largest grade of each query; 0 for a query without documents."""
        return _extreme_grades(np.maximum, self.y, self.ptr)

    def in_caller_order(self, values: AnyArray) -> AnyArray:
        """Return values of the rows of `X` in the row order the caller used."""
        if self.order is None:
            return values
        result = np.empty_like(values)
        result[self.order] = values
        return result

    def place(self, row: int) -> str:
        """Say where a row of the caller stands, in the file that it was read from where there is one."""
        return f"row {row}" if self.source is None else self.source.place(row)

    def grouped(self, values: AnyArray) -> AnyArray:
        """Return values of the caller's rows in the order of the rows of `X`."""
        grouped: AnyArray = in_order(values, self.order)
        return grouped

    def feature(self, which: int | str) -> AnyArray:
        """Return one feature, by its column or its name, in the row order the caller used."""
        if isinstance(which, str):
            if which not in (self.feature_names or ()):
                raise InputError(f"the data set has no feature {which!r}")
            which = (self.feature_names or ()).index(which)
        if not -self.n_features <= which < self.n_features:
            raise InputError(f"the data set has {self.n_features} features, and none in column {which}")
        return self.in_caller_order(dense(self.X[:, [which]])[:, 0])

    def __len__(self) -> int:
        return self.n_queries

    def __iter__(self) -> Iterator[QueryDataset]:
        return (self[q] for q in range(self.n_queries))

    def __getitem__(self, which: int | slice | ArrayLike) -> QueryDataset:
        """Return one query or a run of queries (views), or any queries (a copy), as a data set of its own."""
        if isinstance(which, (int, np.integer)):
            q = int(which) + (self.n_queries if which < 0 else 0)
            if not 0 <= q < self.n_queries:
                raise IndexError(f"query {which} of {self.n_queries}")
            return self._run(q, q + 1)
        if isinstance(which, slice):
            start, stop, step = which.indices(self.n_queries)
            if step == 1:
                return self._run(start, max(start, stop))
            which = np.arange(start, stop, step)
        chosen = np.asarray(which)
        if chosen.dtype == bool:
            if chosen.shape != (self.n_queries,):
                raise InputError(f"a mask of queries needs {self.n_queries} values, got shape {chosen.shape}")
            chosen = np.flatnonzero(chosen)
        return self._take(chosen.astype(np.int64))

    def map_reduce(
        self,
        fn: Callable[[QueryDataset], T],
        combine: Callable[[T, T], T] | None = None,
        *,
        executor: Executor | None = None,
        values: int | None = None,
    ) -> T:
        """Combine fn of each block of queries, in an order that the data alone decide; `combine` None adds them up.

        A block has about `values` feature values. Results of a run of blocks are combined where they are, then those of
        the runs.

        >>> data = QueryDataset.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "a"])
        >>> float(data.map_reduce(lambda block: block.y.sum()))
        3.0
        """
        return self.keep(_itself, executor=executor, values=values).map_reduce(fn, combine)

    def keep(
        self, fn: Callable[[QueryDataset], T], *, executor: Executor | None = None, values: int | None = None
    ) -> BlockResults[T]:
        """Return fn of each block of queries, kept where it was made for `map_reduce` over them."""
        from .blocks import BLOCK_VALUES, LocalResults

        if isinstance(self.X, RemoteMatrix):
            return self.X.keep(self, fn, values or BLOCK_VALUES)
        return LocalResults.of(self, values or BLOCK_VALUES, executor).keep(fn)

    def _run(self, start: int, stop: int) -> QueryDataset:
        a, b = int(self.ptr[start]), int(self.ptr[stop])
        place = None if self.mapped is None else (self.mapped[0], self.mapped[1] + start, self.mapped[1] + stop)
        bounds = self.ptr[start : stop + 1] - a
        return self._part(csr.rows(self.X, a, b), bounds, slice(a, b), slice(start, stop), place)

    def _take(self, chosen: Ints) -> QueryDataset:
        rows, ptr = rows_of(self.ptr, chosen)
        return self._part(self.X[rows], ptr, rows, chosen)

    def keep_rows(self, keep: AnyArray) -> QueryDataset:
        """Return the data set without the rows where the mask is False; a query may be left without documents."""
        return self._part(self.X[keep], bounds_of(keep)[self.ptr], keep, slice(None))

    def _part(self, X: Matrix, ptr: Ints, rows: Any, queries: Any, mapped: Any = None) -> QueryDataset:
        """Return the rows and the queries that these indices choose; `X` and `ptr` are theirs already."""
        changes = {"X": X, "ptr": ptr, "order": None, "mapped": mapped, "source": None}
        for names, which in ((PER_ROW, rows), (PER_QUERY, queries)):
            changes |= {name: in_order(getattr(self, name), which) for name in names}
        return self._with(**changes)

    def with_X(
        self, X: Any, feature_names: Sequence[str] | None = None, *, missing: validation.Missing | None = None
    ) -> QueryDataset:
        """Return the same queries with other features, given row by row as `X` is: grouped by query.

        Missing cells are refused, unless dense rows of a data set that has some are replaced by dense rows, or
        `missing` says otherwise.
        """
        if missing is None:
            keep = self.has_missing and not (self.is_sparse or validation.is_sparse(X))
            missing = "keep" if keep else "error"
        X, has_missing = validation.as_matrix_with_gaps(X, feature_names=feature_names, missing=missing)
        if X.shape[0] != self.n_docs:
            raise InputError(f"X has {X.shape[0]} rows for {self.n_docs} documents")
        names = validation.as_feature_names(feature_names, X.shape[1])
        return self._with(X=X, feature_names=names, has_missing=has_missing, mapped=None)

    def with_columns(self, columns: Ints) -> QueryDataset:
        """Return the same queries with these columns of X, in this order."""
        names = None if self.feature_names is None else tuple(self.feature_names[j] for j in columns)
        return self._with(X=validation.as_rows(self.X[:, columns]), feature_names=names, mapped=None)

    def __reduce__(self) -> Any:
        """Pickle a memory-mapped X by its place on disk: a worker process opens the file, nothing is copied."""
        if self.mapped is None:
            return super().__reduce__()
        return _reopen, ({f.name: getattr(self, f.name) for f in fields(self) if f.name != "X"},)

    def info(self) -> DatasetInfo:
        """Summarise the data set; printed, it is a small table."""
        from .info import DatasetInfo

        return DatasetInfo.of(self)

    def _repr_html_(self) -> str:
        if self.mapped is None:
            return self.info()._repr_html_()
        # A data set on disk may be larger than memory: a notebook shows what is known without reading it.
        facts = [("queries", str(self.n_queries)), ("documents", str(self.n_docs)), ("features", str(self.n_features))]
        return Table(("data set", ""), [*facts, ("on disk", str(self.mapped[0]))]).html()

    def __repr__(self) -> str:
        kind = f"CSR {self.X.dtype}" if self.is_sparse else str(self.X.dtype)
        return f"QueryDataset({self.n_queries} queries, {self.n_docs} documents, {self.n_features} features, {kind})"


_FIELDS = frozenset(each.name for each in fields(QueryDataset))


def _reopen(beside_X: dict[str, Any]) -> QueryDataset:
    """Map the rows again, which were checked when the folder was opened."""
    from .mapped import map_rows

    made = object.__new__(QueryDataset)
    vars(made).update(beside_X, X=map_rows(*beside_X["mapped"]))
    return made


def _itself(data: QueryDataset) -> QueryDataset:
    return data


def informative_queries(y: Floats, ptr: Ints) -> AnyArray:
    """Say which queries have documents of different grade."""
    return _extreme_grades(np.maximum, y, ptr) > _extreme_grades(np.minimum, y, ptr)


def _extreme_grades(pick: np.ufunc, y: Floats, ptr: Ints) -> Floats:
    """Largest or smallest grade per query; 0 for one without documents."""
    result = np.zeros(len(ptr) - 1)
    filled = np.diff(ptr) > 0
    if filled.any():
        result[filled] = pick.reduceat(y, ptr[:-1][filled])
    return result
