"""Functions from rows to scores, as values: linear, sums of thresholds, trees, kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import linear
from ..data.csr import as_csr, dense
from ..data.remote import RemoteMatrix
from ..data.validation import check_count, check_finite, check_positive, is_sparse
from ..errors import InputError

__all__ = ["KernelFunction", "LinearFunction", "LinearFunctions", "StumpFunction", "TreeFunction"]


Nested: TypeAlias = "float | tuple[int, float, bool, Nested, Nested]"
"""A tree for `TreeFunction.build`: a leaf, or (feature, value, whether a missing value goes low, low, high)."""


class ScoringFunction(ABC):
    """A function from rows of numbers to scores. Subclasses are frozen dataclasses, listed in `__all__`.

    It knows neither names nor missing cells nor preparation: `Model` does, and is what everybody scores with.
    """

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many features a row has."""

    def scores(self, X: Matrix) -> Floats:
        """Return one score per row; values are taken as already checked, but neither the width nor where they stand."""
        if X.shape[1] != self.n_features:
            raise InputError(f"X has {X.shape[1]} features, but this function is expecting {self.n_features} features")
        if isinstance(X, RemoteMatrix):
            return X.collect(self._scores_of_part)
        return self._scores(as_csr(X) if is_sparse(X) else X)

    def _scores_of_part(self, X: Matrix, ptr: Ints) -> Floats:
        return self._scores(X)

    @abstractmethod
    def _scores(self, X: Matrix) -> Floats:
        """Return one score per row of a matrix as wide as the model."""

    def as_value(self) -> ScoringFunction:
        """Return the function as one that a file can hold: itself, unless it belongs to another package."""
        return self


@dataclass(frozen=True, eq=False)
class LinearFunction(ScoringFunction):
    """f(x) = w·x.

    >>> LinearFunction(np.array([1.0, 2.0])).scores(np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """

    coef: Floats

    def __post_init__(self) -> None:
        if self.coef.ndim != 1 or self.coef.dtype.kind != "f" or not np.isfinite(self.coef).all():
            raise InputError("the weights of a linear model must be a list of finite numbers")
        object.__setattr__(self, "coef", np.ascontiguousarray(self.coef, dtype=np.float64))

    @property
    def n_features(self) -> int:
        """Length of w."""
        return len(self.coef)

    def _scores(self, X: Matrix) -> Floats:
        """Return X w."""
        return linear.scores(X, self.coef)


@dataclass(frozen=True, eq=False)
class LinearFunctions(ScoringFunction):
    """f_j(x) = w_j·x for each label j: as many scores a row as there are labels.

    >>> LinearFunctions(np.array([[1.0, 2.0], [0.0, 1.0]])).scores(np.array([[1.0, 1.0]])).tolist()
    [[3.0, 1.0]]
    """

    coef: Floats

    def __post_init__(self) -> None:
        if self.coef.ndim != 2 or not len(self.coef) or self.coef.dtype != np.float64:
            raise InputError("the weights of linear models must be a table of numbers, a row for each label")
        if not np.isfinite(self.coef).all():
            raise InputError("the weights of linear models must be finite numbers")

    @property
    def n_features(self) -> int:
        """Length of each w."""
        return int(self.coef.shape[1])

    def _scores(self, X: Matrix) -> Floats:
        """Return X w_j, a column for each label, with the bits that each has alone."""
        return np.column_stack([linear.scores(X, w) for w in self.coef])


@dataclass(frozen=True, eq=False)
class StumpFunction(ScoringFunction):
    """f(x) = Σ_t weight_t [x_{feature_t} > threshold_t].

    >>> model = StumpFunction(2, np.array([0, 1]), np.array([0.5, 2.0]), np.array([1.0, -3.0]))
    >>> model.scores(np.array([[1.0, 1.0], [0.5, 3.0]])).tolist()
    [1.0, -3.0]
    """

    width: int
    feature: Ints
    threshold: Floats
    weight: Floats

    def __post_init__(self) -> None:
        shapes = {np.shape(values) for values in (self.feature, self.threshold, self.weight)}
        if shapes != {(len(self.feature),)}:
            raise InputError("a stump has one feature, one threshold and one weight: the lists differ in length")
        if not (np.isfinite(self.threshold).all() and np.isfinite(self.weight).all()):
            raise InputError("the thresholds and weights of stumps must be finite numbers")
        if self.feature.dtype.kind not in "iu" or type(self.width) is not int:
            raise InputError("the features of stumps must be whole numbers")
        if len(self.feature) and not 0 <= self.feature.min() <= self.feature.max() < self.width:
            raise InputError(f"a stump looks at a feature outside 0 … {self.width - 1}")

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return self.width

    @cached_property
    def thresholds(self) -> list[tuple[int, float, float]]:
        """One (feature, threshold, weight) per stump."""
        columns = (self.feature, self.threshold, self.weight)
        return [(int(f), float(t), float(w)) for f, t, w in zip(*columns, strict=True)]

    @cached_property
    def _steps(self) -> tuple[Ints, Floats, Floats, Ints]:
        """One step function per used feature: the features, thresholds in order, heights, where each feature starts."""
        order = np.lexsort((self.threshold, self.feature))
        feature, threshold, weight = self.feature[order], self.threshold[order], self.weight[order]
        used, start = np.unique(feature, return_index=True)
        start = np.append(start, len(feature)).astype(np.int64)
        height = np.concatenate([np.cumsum(weight[a:b]) for a, b in pairwise(start)]) if len(used) else np.empty(0)
        return used.astype(np.int64), threshold, height, start

    def _scores(self, X: Matrix) -> Floats:
        """Return the sum of the steps, by halving in each feature's thresholds."""
        from ..solvers import _boosting_kernels as kernels

        used, threshold, height, start = self._steps
        out = np.empty(X.shape[0])
        if is_sparse(X):
            where = np.full(self.width, -1, dtype=np.int64)
            where[used] = np.arange(len(used))
            at_zero = np.array(
                [self.weight[self.feature == f][self.threshold[self.feature == f] < 0].sum() for f in used]
            )
            kernels.stump_scores_csr(X.data, X.indices, X.indptr, where, threshold, height, start, at_zero, out)
        else:
            kernels.stump_scores_dense(X, used, threshold, height, start, out)
        return out


def _scores_in_parts(X: Matrix, write: Callable[[Matrix, Floats], None]) -> Floats:
    """Return the scores that `write` puts into its second argument, 4,096 rows of a sparse X at a time."""
    out = np.empty(X.shape[0])
    step = 4096 if is_sparse(X) else max(1, X.shape[0])
    for first in range(0, X.shape[0], step):
        write(X[first : first + step], out[first : first + step])
    return out


@dataclass(frozen=True, eq=False)
class TreeFunction(ScoringFunction):
    """f(x) = Σ_t the leaf of tree t that x reaches, added in the order of the trees: boosted trees of any origin.

    Nodes of all trees stand in one list, children behind their parents; tree t begins at node `root[t]`. At a node with
    a `feature`, x ≤ `value` goes on at `low`, any other number at `high`, and a missing value (NaN) at `low` where
    `missing_low` says so. A node without one (−1) is a leaf, and its `value` is what the tree adds. Absent entries of a
    sparse X are 0, or missing where `absent_missing` says so, as in XGBoost. `TreeFunction.build` takes nested trees.

    >>> stump = (0, 0.5, True, -1.0, (1, 2.0, False, 1.0, 3.0))  # feature, x ≤, missing goes low?, low, high
    >>> model = TreeFunction.build(2, [stump, 10.0])
    >>> model.scores(np.array([[0.5, 9.0], [1.0, 9.0], [1.0, np.nan], [np.nan, 0.0]])).tolist()
    [9.0, 13.0, 13.0, 9.0]
    """

    width: int
    root: Ints
    feature: Ints
    value: Floats
    low: Ints
    high: Ints
    missing_low: AnyArray
    absent_missing: bool = False

    @classmethod
    def build(cls, width: int, trees: Sequence[Nested], *, absent_missing: bool = False) -> TreeFunction:
        """Return the model of trees, each a leaf (a number) or (feature, value, missing goes low, low, high)."""
        rows: list[list[Any]] = []
        root = []
        for tree in trees:
            root.append(len(rows))
            stack: list[tuple[Nested, list[Any], int]] = [(tree, [], 0)]
            while stack:
                node, parent, side = stack.pop()
                if parent:
                    parent[side] = len(rows)
                if isinstance(node, tuple):
                    rows.append([node[0], node[1], 0, 0, node[2]])
                    stack += [(node[4], rows[-1], 3), (node[3], rows[-1], 2)]
                else:
                    rows.append([-1, node, 0, 0, False])
        columns = np.array(rows, dtype=object).reshape(-1, 5).T
        feature, low, high = (columns[i].astype(np.int64) for i in (0, 2, 3))
        value, missing = columns[1].astype(np.float64), columns[4].astype(bool)
        return cls(width, np.array(root, dtype=np.int64), feature, value, low, high, missing, absent_missing)

    def __post_init__(self) -> None:
        n = len(self.feature)
        columns = (self.feature, self.value, self.low, self.high, self.missing_low)
        if {np.shape(column) for column in columns} != {(n,)} or np.ndim(self.root) != 1:
            raise InputError("a node of a tree has a feature, a value and two children: the lists differ in length")
        if any(column.dtype.kind not in "iu" for column in (self.root, self.feature, self.low, self.high)):
            raise InputError("the features, children and roots of trees must be whole numbers")
        if type(self.width) is not int or self.missing_low.dtype != bool or not isinstance(self.absent_missing, bool):
            raise InputError("the width of trees must be a whole number, and missing_low true or false")
        if not np.isfinite(self.value).all():
            raise InputError("the thresholds and leaves of trees must be finite numbers")
        if not len(self.root) or not ((self.root >= 0) & (self.root < n)).all():
            raise InputError("there is no tree, or one begins at a node that is not there")
        if not ((self.feature >= -1) & (self.feature < self.width)).all():
            raise InputError(f"a tree looks at a feature outside 0 … {self.width - 1}")
        split, node = self.feature >= 0, np.arange(n)
        for child in (self.low, self.high):
            if not ((child > node) & (child < n))[split].all():
                raise InputError("the children of a node of a tree must stand behind it")

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return self.width

    @cached_property
    def depth(self) -> int:
        """Comparisons on the longest way to a leaf."""
        depth = np.zeros(len(self.feature), dtype=np.int64)
        for node in np.flatnonzero(self.feature >= 0):  # children stand behind their parents
            depth[[self.low[node], self.high[node]]] = depth[node] + 1
        return int(depth.max())

    def _scores(self, X: Matrix) -> Floats:
        """Return f of every row."""
        from . import _tree_kernels as kernels

        columns = (self.root, self.feature, self.value, self.low, self.high, self.missing_low)
        return _scores_in_parts(X, lambda rows, out: kernels.tree_scores(self._dense(rows), *columns, out))

    def _dense(self, X: Matrix) -> Any:
        if not is_sparse(X):
            return X
        dense = np.full(X.shape, np.nan if self.absent_missing else 0.0)
        dense[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
        return dense


@dataclass(frozen=True, eq=False)
class KernelFunction(ScoringFunction):
    """f(x) = Σ_b alpha_b k(x, s_b); k is x·s (linear), (γ x·s + c)^p (polynomial) or exp(−γ‖x − s‖²) (rbf).

    >>> model = KernelFunction(np.array([[1.0, 0.0]]), np.array([2.0]), "polynomial", gamma=1.0, coef0=1.0, degree=2)
    >>> model.scores(np.array([[1.0, 5.0], [0.0, 1.0]])).tolist()
    [8.0, 2.0]
    """

    stored: Floats
    alpha: Floats
    kernel: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1

    def __post_init__(self) -> None:
        if self.kernel not in ("linear", "polynomial", "rbf"):
            raise InputError(f"a kernel is 'linear', 'polynomial' or 'rbf', not {self.kernel!r}")
        if self.stored.ndim != 2 or self.alpha.shape != (len(self.stored),):
            raise InputError("a kernel model has one coefficient for each stored document")
        if not (np.isfinite(self.stored).all() and np.isfinite(self.alpha).all()):
            raise InputError("the documents and coefficients of a kernel model must be finite numbers")
        check_positive(gamma=self.gamma)
        check_finite(coef0=self.coef0)
        check_count(degree=self.degree)

    @property
    def n_features(self) -> int:
        """Length of a stored document."""
        return int(self.stored.shape[1])

    def _scores(self, X: Matrix) -> Floats:
        """Return f of every row."""
        return _scores_in_parts(X, lambda rows, out: self.score_rows(dense(rows), out))

    def score_rows(self, X: Floats, out: Floats) -> None:
        """Write f of every row of a dense X."""
        from . import _kernel_kernels as kernels

        form = kernels.KernelForm.of(self.kernel, self.gamma, self.coef0, self.degree)
        kernels.kernel_scores(form, X, self.stored, self.alpha, out)
