"""What can be exported, as a value: a linear score, thresholds or trees, with names and a missing-value policy."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from .._files import replacing
from .._typing import ArrayLike, Floats, Ints, Matrix
from ..data.csr import dense
from ..data.dataset import QueryDataset
from ..data.grouping import group_rows
from ..data.linear import scores
from ..data.transforms import QueryNormalizer, SignedLog
from ..data.validation import as_feature_names, as_matrix, is_sparse
from ..errors import InputError
from ..rankers.models import StumpModel, TreeModel

BLOCK_ROWS = 4096
"""Rows that are dense at a time, whatever the size of a sparse X."""


class Scorer(ABC):
    """A score per row of features that have names. `fill` stands in for missing values; None refuses them."""

    names: tuple[str, ...]
    fill: Floats | None
    source: str
    offset: float

    @abstractmethod
    def score_rows(self, X: Floats) -> Floats:
        """Return one score per row of a dense X without gaps."""

    @abstractmethod
    def magnitude(self, X: Floats, ptr: Ints) -> Floats:
        """Return how large the numbers are that a dense row's score is added up from: rounding is a part of it."""

    def renamed(self, names: tuple[str, ...]) -> Scorer:
        """Return the same score with other names for the features."""
        return replace(self, names=names)  # type: ignore[type-var]

    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score per row, in float64. X is a matrix, a frame or a data set; NaN is a missing value.

        `qid` says which rows belong together, where features are prepared query by query.
        """
        if isinstance(X, QueryDataset):
            return X.in_caller_order(self.predict_grouped(X))
        matrix = with_gaps(X)
        ptr, _, order = group_rows(qid, matrix.shape[0])
        if order is None:
            return self.scores(matrix, ptr)
        out = np.empty(matrix.shape[0])
        out[order] = self.scores(matrix[order], ptr)
        return out

    def predict_grouped(self, data: QueryDataset) -> Floats:
        """Return one score per row of `data.X`, grouped by query."""
        return self.scores(data.X, data.ptr)

    def scores(self, X: Matrix, ptr: Ints) -> Floats:
        """Return one score per row of X, whose queries begin at `ptr`."""
        if X.shape[1] != len(self.names):
            raise InputError(f"X has {X.shape[1]} features, but the model is expecting {len(self.names)}")
        out = np.empty(X.shape[0])
        for rows, block, bounds in dense_blocks(X, ptr):
            out[rows] = self._score_block(self._filled(block, rows.start), bounds)
        return out

    def _score_block(self, X: Floats, ptr: Ints) -> Floats:
        return self.score_rows(X)

    def _filled(self, X: Floats, first_row: int) -> Floats:
        gaps = np.isnan(X)
        if not gaps.any() or self.follows:
            return X
        if self.fill is None:
            row, column = (int(i[0]) for i in np.nonzero(gaps))
            raise InputError(
                f"X has NaN in row {first_row + row}, column {column} ({self.names[column]!r}), and the model refuses "
                'missing values: fill it in, or fit with missing="zero"'
            )
        return np.where(gaps, self.fill, X)

    @property
    def follows(self) -> bool:
        """Whether a missing value follows the splits of trees, each of which has a side for it."""
        return False

    @property
    def missing(self) -> str:
        """The missing-value policy in words."""
        if self.follows:
            return "missing values go the way that each split has for them"
        if self.fill is None:
            return "missing values are refused"
        if not self.fill.any():
            return "missing values count as 0"
        return "missing values are filled in, feature by feature"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scorer as JSON by one of the published schemas; `fold` and `toprank export` read it."""
        from .own_json import encode

        with replacing(path) as draft:
            draft.write_bytes(encode(self))

    def fill_value(self, feature: int) -> float | None:
        """Return what stands in for a missing value of a feature, or None where it is refused."""
        return None if self.fill is None else float(self.fill[feature])


def _check(names: tuple[str, ...], fill: Floats | None, *columns: Floats) -> None:
    as_feature_names(names, len(names))
    for column in (*columns, *(() if fill is None else (fill,))):
        if column.shape != (len(names),) or not np.isfinite(column).all():
            raise InputError(f"a scorer of {len(names)} features needs as many finite numbers in each of its columns")


@dataclass(frozen=True, eq=False)
class Linear(Scorer):
    """score = offset + Σ_j weights_j x_j.

    `center` and `scale` remember the scaler that is folded into the weights, for engines that have normalisers of
    their own: weights_j x_j = weights_j scale_j · (x_j − center_j)/scale_j + constant. They never change a score.

    >>> linear = Linear(("bm25", "age"), np.array([2.0, -0.5]), fill=np.zeros(2))
    >>> linear.predict([[1.0, 2.0], [1.0, float("nan")]]).tolist()
    [1.0, 2.0]
    """

    names: tuple[str, ...]
    weights: Floats
    offset: float = 0.0
    fill: Floats | None = None
    source: str = "linear model"
    center: Floats | None = None
    scale: Floats | None = None

    def __post_init__(self) -> None:
        scaler = () if self.center is None or self.scale is None else (self.center, self.scale)
        _check(self.names, self.fill, self.weights, *scaler)
        if (self.center is None) != (self.scale is None) or not np.isfinite(self.offset):
            raise InputError("a linear scorer has a finite offset, and both center and scale or neither")
        if self.scale is not None and not (self.scale > 0).all():
            raise InputError("the scales of a scaler must be above 0")

    def score_rows(self, X: Floats) -> Floats:
        """Return offset + X w."""
        return scores(np.ascontiguousarray(X), self.weights) + self.offset

    def magnitude(self, X: Floats, ptr: Ints) -> Floats:
        """Return |offset| + Σ_j |w_j x_j|."""
        return np.asarray(np.abs(X) @ np.abs(self.weights) + abs(self.offset))


@dataclass(frozen=True, eq=False)
class _ModelScorer(Scorer):
    """score = offset + what a model of ours says."""

    names: tuple[str, ...]
    model: Any
    fill: Floats | None = None
    source: str = ""
    offset: float = 0.0

    def __post_init__(self) -> None:
        _check(self.names, self.fill)
        if self.model.n_features != len(self.names) or not np.isfinite(self.offset):
            raise InputError(f"{self.source} must have a finite offset, and a name for each feature of the model")

    def score_rows(self, X: Floats) -> Floats:
        """Return the offset and the model's sum of steps or leaves."""
        return np.asarray(self.model.scores(np.ascontiguousarray(X)) + self.offset)


@dataclass(frozen=True, eq=False)
class Stumps(_ModelScorer):
    """score = offset + Σ_t weight_t [x_{feature_t} > threshold_t]: what RankBoost learns.

    >>> model = StumpModel(2, np.array([1]), np.array([0.5]), np.array([3.0]))
    >>> Stumps(("bm25", "age"), model).predict([[0.0, 1.0], [9.0, 0.5]]).tolist()
    [3.0, 0.0]
    """

    model: StumpModel
    source: str = "sum of thresholds"

    @cached_property
    def thresholds(self) -> list[tuple[int, float, float]]:
        """One (feature, threshold, weight) per stump."""
        columns = (self.model.feature, self.model.threshold, self.model.weight)
        return [(int(f), float(t), float(w)) for f, t, w in zip(*columns, strict=True)]

    def magnitude(self, X: Floats, ptr: Ints) -> Floats:
        """Return |offset| + Σ_t |weight_t|, the same for all rows."""
        return np.full(len(X), abs(self.offset) + float(np.abs(self.model.weight).sum()))


@dataclass(frozen=True, eq=False)
class Trees(_ModelScorer):
    """score = offset + Σ_t the leaf that x reaches in tree t: boosted trees of LightGBM or XGBoost.

    Without a `fill`, a missing value follows the splits (`gaps="follow"`), or is refused (`gaps="refuse"`).

    >>> from toprank.rankers.models import TreeModel
    >>> trees = Trees(("bm25",), TreeModel.build(1, [(0, 0.5, True, -1.0, 1.0)]))
    >>> trees.predict([[0.5], [0.6], [float("nan")]]).tolist()
    [-1.0, 1.0, -1.0]
    """

    model: TreeModel
    source: str = "trees"
    gaps: Literal["follow", "refuse"] = "follow"

    @property
    def follows(self) -> bool:
        """Whether a missing value follows the splits."""
        return self.fill is None and self.gaps == "follow"

    @cached_property
    def same_in_single(self) -> bool:
        """Whether a value and its float32 rounding always take the same way, as in XGBoost, which rounds first."""
        threshold = self.model.value[self.model.feature >= 0]
        threshold = threshold[threshold < np.finfo(np.float64).max]
        after = np.nextafter(threshold, np.inf)
        with np.errstate(over="ignore", under="ignore"):
            return bool((threshold.astype(np.float32) < after.astype(np.float32)).all())

    def magnitude(self, X: Floats, ptr: Ints) -> Floats:
        """Return |offset| + Σ_t the largest leaf of tree t, the same for all rows."""
        leaf = np.where(self.model.feature < 0, np.abs(self.model.value), 0.0)
        largest = np.maximum.reduceat(leaf, np.sort(self.model.root))
        return np.full(len(X), abs(self.offset) + float(largest.sum()))


Step: TypeAlias = Literal["log", "minmax", "standard"]
"""A preparation of every feature: the signed logarithm, or scaling within each query."""


def export_step(step: str) -> Step:
    """Return a step of a ranker's `prepare` by the name it has in exported files."""
    return "minmax" if step == "query" else step  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Prepared(Scorer):
    """score = inner(x'), x' the features after each step: sign(x) log(1 + |x|), or scaled within a query.

    `fill` stands in for missing values before the first step.

    >>> inner = Linear(("clicks",), np.array([2.0]))
    >>> Prepared(inner, ("minmax",)).predict([[1.0], [3.0], [10.0], [30.0]], qid=[1, 1, 2, 2]).tolist()
    [0.0, 2.0, 0.0, 2.0]
    """

    inner: Linear | Stumps | Trees
    steps: tuple[Step, ...]
    fill: Floats | None = None

    def __post_init__(self) -> None:
        _check(self.inner.names, self.fill)
        if not self.steps or not set(self.steps) <= set(get_args(Step)):
            raise InputError(f"features are prepared by {', '.join(get_args(Step))}, not by {self.steps}")

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The features, as they are before any step."""
        return self.inner.names

    @property
    def source(self) -> str:  # type: ignore[override]
        """The ranker."""
        return self.inner.source

    @property
    def offset(self) -> float:  # type: ignore[override]
        """The constant of the score."""
        return self.inner.offset

    def score_rows(self, X: Floats) -> Floats:
        """Return the scores, all rows being one query."""
        return self._score_block(X, np.array([0, len(X)]))

    def _score_block(self, X: Floats, ptr: Ints) -> Floats:
        return self.inner.score_rows(self.prepared(X, ptr))

    def prepared(self, X: Floats, ptr: Ints) -> Floats:
        """Return the features after every step."""
        qid = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        for step in self.steps:
            X = dense(
                SignedLog().fit_transform(X) if step == "log" else QueryNormalizer(step).fit_transform(X, qid=qid)
            )
        return np.ascontiguousarray(X)

    def magnitude(self, X: Floats, ptr: Ints) -> Floats:
        """Return that of the prepared features, and of what was taken off them on the way."""
        size = self.inner.magnitude(self.prepared(X, ptr), ptr)
        if not isinstance(self.inner, Linear):
            return size
        for first, last in pairwise(ptr):
            rows = X[first:last]
            spread = np.ptp(rows, axis=0)
            taken = np.where(spread > 0, np.abs(rows).max(axis=0) / np.where(spread > 0, spread, 1.0), 0.0) + 1.0
            size[first:last] += len(rows) * float(taken @ np.abs(self.inner.weights))
        return size

    def renamed(self, names: tuple[str, ...]) -> Prepared:
        """Return the same score with other names for the features."""
        return replace(self, inner=replace(self.inner, names=names))


def with_gaps(X: Any) -> Matrix:
    """Return X as float64, dense or CSR, with its NaN kept; anything else that is not a number is refused."""
    checked = as_matrix(X, missing="zero")
    if is_sparse(checked):
        matrix = checked.astype(np.float64)
        from scipy.sparse import csr_array

        original = csr_array(X, copy=True)  # the caller's buffers stay as they are
        original.sum_duplicates()
        matrix.data[np.isnan(original.data)] = np.nan
        return matrix
    return np.ascontiguousarray(np.asarray(X, dtype=np.float64))


def dense_blocks(X: Matrix, ptr: Ints) -> Iterator[tuple[slice, Floats, Ints]]:
    """Yield the rows of X in dense float64 blocks of whole queries, with the boundaries of the queries in each."""
    first = 0
    while first < len(ptr) - 1:
        last = max(first + 1, int(np.searchsorted(ptr, ptr[first] + BLOCK_ROWS, side="right")) - 1)
        rows = slice(int(ptr[first]), int(ptr[last]))
        yield rows, np.asarray(dense(X[rows]), dtype=np.float64), ptr[first : last + 1] - ptr[first]
        first = last
