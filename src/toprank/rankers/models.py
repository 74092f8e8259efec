"""What a ranker has learned: a scoring function, as a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from .._typing import Floats, Ints, Matrix
from ..data import linear
from ..data.validation import check_count, check_finite, check_positive, is_sparse
from ..errors import InputError

__all__ = ["KernelModel", "LinearModel", "StumpModel"]


class Model(ABC):
    """A function from feature rows to scores. Subclasses are frozen dataclasses, listed in `__all__`."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many features a row has."""

    @abstractmethod
    def scores(self, X: Matrix) -> Floats:
        """Return one score per row; X is taken as already checked."""


@dataclass(frozen=True, eq=False)
class LinearModel(Model):
    """f(x) = w·x.

    >>> LinearModel(np.array([1.0, 2.0])).scores(np.array([[1.0, 1.0]])).tolist()
    [3.0]
    """

    coef: Floats

    def __post_init__(self) -> None:
        if self.coef.ndim != 1 or self.coef.dtype.kind != "f" or not np.isfinite(self.coef).all():
            raise InputError("the weights of a linear model must be a list of finite numbers")

    @property
    def n_features(self) -> int:
        """Length of w."""
        return len(self.coef)

    def scores(self, X: Matrix) -> Floats:
        """Return X w."""
        return linear.scores(X, self.coef)


@dataclass(frozen=True, eq=False)
class StumpModel(Model):
    """f(x) = Σ_t weight_t [x_{feature_t} > threshold_t].

    >>> model = StumpModel(2, np.array([0, 1]), np.array([0.5, 2.0]), np.array([1.0, -3.0]))
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
    def _steps(self) -> tuple[Ints, Floats, Floats, Ints]:
        """One step function per used feature: the features, thresholds in order, heights, where each feature starts."""
        order = np.lexsort((self.threshold, self.feature))
        feature, threshold, weight = self.feature[order], self.threshold[order], self.weight[order]
        used, start = np.unique(feature, return_index=True)
        start = np.append(start, len(feature)).astype(np.int64)
        height = np.concatenate([np.cumsum(weight[a:b]) for a, b in pairwise(start)]) if len(used) else np.empty(0)
        return used.astype(np.int64), threshold, height, start

    def scores(self, X: Matrix) -> Floats:
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


@dataclass(frozen=True, eq=False)
class KernelModel(Model):
    """f(x) = Σ_b alpha_b k(x, s_b); k is x·s (linear), (γ x·s + c)^p (polynomial) or exp(−γ‖x − s‖²) (rbf).

    >>> model = KernelModel(np.array([[1.0, 0.0]]), np.array([2.0]), "polynomial", gamma=1.0, coef0=1.0, degree=2)
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

    def scores(self, X: Matrix) -> Floats:
        """Return f of every row, 4,096 rows of a sparse X at a time."""
        out = np.empty(X.shape[0])
        step = 4096 if is_sparse(X) else max(1, X.shape[0])
        for low in range(0, X.shape[0], step):
            rows = X[low : low + step]
            self.score_rows(rows.toarray() if is_sparse(rows) else rows, out[low : low + step])
        return out

    def score_rows(self, X: Floats, out: Floats) -> None:
        """Write f of every row of a dense X."""
        from . import _kernel_kernels as kernels

        kind = kernels.Kind[self.kernel.upper()]
        n = len(self.alpha)
        kernels.kernel_scores(kind, self.gamma, self.coef0, self.degree, X, self.stored, self.alpha, n, out)
