"""RankBoost over histograms of columns: thresholds of single features as weak rankers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property, partial, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data.csr import dense
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from .deadline import out_of_time

if TYPE_CHECKING:
    from ._boosting_kernels import Codes, Pairs


@dataclass(frozen=True, eq=False)
class Rounds:
    """What a boosting run did: the candidate and the weight of each round, and its trace."""

    candidates: Ints
    weights: Floats
    trace: dict[str, Floats] = field(default_factory=dict)


TOGETHER = 16
"""How many columns are copied from X at a time: neighbours in a row come from memory together."""
BLOCK = 512
"""How many rows are coded at a time."""
SAMPLE = 1 << 16
"""How many values of a column decide its thresholds, at most, where the number of thresholds is limited."""
LARGEST_R = 1.0 - 1e-9
"""A stump that orders all pairs has r = 1, and its weight would be infinite."""


@dataclass(frozen=True, eq=False)
class BinnedColumns:
    """Every value as a code: how many thresholds (edges) of its column lie below it.

    Up to 255 thresholds a code is one byte, a quarter of X in single precision. Zeros that X does not store have no
    code here either.
    """

    codes: AnyArray
    """Column after column."""
    rows: AnyArray
    """The row of each code, where X is sparse; else empty."""
    begin: Ints
    """Where the codes of each column begin."""
    at_zero: Ints
    """The code of 0 in each column."""
    edges: Floats
    """The thresholds of each column, rising; column after column."""
    start: Ints
    """Where the edges of each column begin."""

    @classmethod
    def of(cls, X: Matrix, thresholds: int | None = None, weight: Floats | None = None) -> BinnedColumns:
        """Choose at most `thresholds` per column (None: one between any two values) by the rows with a weight above 0.

        Where they are to be few, they are spread evenly over the weights.
        """
        from . import _boosting_kernels as kernels

        n_docs, d = X.shape
        weight = np.ones(n_docs) if weight is None else weight
        used = np.flatnonzero(weight)
        if thresholds is not None:
            used = used[:: -(-len(used) // SAMPLE)]
        weight = weight[used]
        weight = weight / max(weight.min(initial=np.inf), 1e-300 * weight.max(initial=0.0))  # whole numbers are counts
        by_column = X[used].tocsc() if is_sparse(X) else None
        parts = []
        for k in range(d):
            if by_column is None:
                if k % TOGETHER == 0:
                    several = np.ascontiguousarray(dense(X[used, k : k + TOGETHER]).T, dtype=np.float64)
                parts.append(_edges(several[k % TOGETHER], weight, 0.0, thresholds))
            else:
                a, b = by_column.indptr[k], by_column.indptr[k + 1]
                stored, zeros = weight[by_column.indices[a:b]], np.delete(weight, by_column.indices[a:b])
                parts.append(_edges(by_column.data[a:b].astype(np.float64), stored, zeros.sum(), thresholds))
        edges, start = np.concatenate(parts), np.concatenate(([0], np.cumsum([len(part) for part in parts])))
        most = int(np.diff(start).max(initial=0))
        kind = next(t for t in (np.uint8, np.uint16, np.uint32) if most <= np.iinfo(t).max)
        at_zero = np.array([np.searchsorted(part, 0.0) for part in parts], dtype=np.int64)
        if is_sparse(X):
            full = X.tocsc()
            codes = np.empty(full.nnz, dtype=kind)
            for k, (a, b) in enumerate(pairwise(full.indptr)):
                codes[a:b] = np.searchsorted(parts[k], full.data[a:b].astype(np.float64))
            return cls(codes, full.indices.astype(np.int32), full.indptr.astype(np.int64), at_zero, edges, start)
        codes = np.empty((d, n_docs), dtype=kind)
        for low in range(0, n_docs, BLOCK):  # few enough to stay in the cache from column to column
            kernels.write_codes(X[low : low + BLOCK], edges, start, codes[:, low : low + BLOCK])
        begin = np.arange(d + 1, dtype=np.int64) * n_docs
        return cls(codes.reshape(-1), np.empty(0, dtype=np.int32), begin, at_zero, edges, start)

    @cached_property
    def for_kernels(self) -> Codes:
        """What the kernels read."""
        from ._boosting_kernels import Codes

        return Codes(self.codes, self.rows, self.begin, self.at_zero, np.diff(self.start))

    def threshold(self, column: int, edge: int) -> float:
        """Return θ: x > θ exactly for the rows whose code is above the edge."""
        return float(self.edges[self.start[column] + edge])


def _edges(values: Floats, weight: Floats, zeros: float, limit: int | None) -> Floats:
    """Return thresholds between the values, rising; at most `limit`, evenly over weights. `zeros` weighs more 0s."""
    if len(weight) and (weight == weight[0]).all():  # no need to know which value is whose
        distinct, counts = np.unique(values, return_counts=True)
        counts = counts * weight[0]
    else:
        distinct, place = np.unique(values, return_inverse=True)
        counts = np.bincount(place, weight, len(distinct)).astype(np.float64)  # of none it makes whole numbers
    if zeros:
        at = int(np.searchsorted(distinct, 0.0))
        if at == len(distinct) or distinct[at] != 0:
            distinct, counts = np.insert(distinct, at, 0.0), np.insert(counts, at, 0.0)
        counts[at] += zeros
    low, high = distinct[:-1], distinct[1:]
    middle = low + 0.5 * (high - low)
    found = np.where((low <= middle) & (middle < high), middle, low)
    if limit is None or len(found) <= limit:
        return found
    size = _bin_size(counts, limit + 1)
    above = np.cumsum(np.minimum(counts, size)[::-1])[:-1]  # the weight above each place, from the highest place down
    goals = np.arange(1, limit + 1) * (size * (1.0 - 1e-9))  # reached but for rounding is reached
    return np.asarray(found[::-1][np.unique(np.searchsorted(above, goals))][::-1])


def _bin_size(counts: AnyArray, bins: int) -> float:
    """Return s with Σ min(count, s) = s · bins: a value that weighs more than a bin takes one, and no more of them.

    >>> _bin_size(np.array([90.0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]), 6)
    2.0
    """
    common, before, size = 0, -1, np.inf
    while before < common < bins:  # as many as bins only by rounding, where so many are all but equal
        rest = counts.sum(where=counts <= size)  # not a difference of sums, which large weights would leave nothing of
        before, size = common, float(rest / (bins - common))
        common = int(np.count_nonzero(counts > size))
    return size


@dataclass(frozen=True)
class RankBoostRounds:
    """h_t = argmax |r|, r = Σ D(i,j) (h(x_i) − h(x_j)), α_t = ½ ln((1+r)/(1−r)), D ∝ e^{H_j − H_i}."""

    rounds: int
    both: bool = True
    """Whether a stump may also lower the scores above its threshold (r < 0)."""
    watch: Callable[[int, int, float, float], bool] | None = None
    """Called after each round with its number, column, threshold and weight; True stops."""

    def run(
        self,
        data: QueryDataset,
        columns: BinnedColumns,
        pair_weight: Floats,
        executor: Executor | None = None,
        scores: Floats | None = None,
    ) -> tuple[Rounds, Floats]:
        """RankBoost (Freund et al. 2003, Fig. 1) with stumps h = [x_k > θ] and α by their third method.

        D_1(i, j) = pair_weight_q for y_i > y_j in query q
        For t = 1, …, T:
            choose the stump h_t with the largest |r|, r = Σ_{i,j} D_t(i, j) (h_t(x_i) − h_t(x_j))
            α_t = ½ ln((1 + r)/(1 − r))
            D_{t+1}(i, j) = D_t(i, j) e^{α_t (h_t(x_j) − h_t(x_i))} / Z_t
        H = Σ_t α_t h_t

        D stays unnormalised: of each document i there is its `potential` Σ_j D(i, j) − D(j, i), so that r is the sum of
        the potentials above θ, over the sum of D. Returns the rounds and their thresholds. `scores` are those so far
        (0 where None).
        """
        from . import _boosting_kernels as kernels

        H, potential, pairs = np.zeros(data.n_docs), np.empty(data.n_docs), pairs_of(data, pair_weight)
        D_1 = D = kernels.potentials(H, pairs, potential)
        if scores is not None:
            H += scores
            D = kernels.potentials(H, pairs, potential)
        parts = _parts_of_columns(len(columns.at_zero))
        features: list[int] = []
        thetas: list[float] = []
        alphas: list[float] = []
        trace: dict[str, list[float]] = {"loss": [], "edge": []}
        for t in range(1, self.rounds + 1):
            search = partial(_best_in_part, columns, potential, self.both)
            found = map(search, parts) if executor is None else executor.map(search, parts)
            size, r, k, edge = reduce(_better_of, found)
            if not size > 1e-12 * D:
                break
            r = float(np.clip(r / D, -LARGEST_R, LARGEST_R))
            theta, alpha = columns.threshold(k, edge), float(0.5 * np.log((1 + r) / (1 - r)))
            kernels.add_stump(H, columns.for_kernels, k, edge, alpha)
            D = kernels.potentials(H, pairs, potential)
            features.append(k)
            thetas.append(theta)
            alphas.append(alpha)
            trace["loss"].append(D / D_1)
            trace["edge"].append(abs(r))
            stop = self.watch is not None and self.watch(t, k, theta, alpha)
            if stop or out_of_time() or abs(r) >= LARGEST_R:
                break
        reached = {name: np.array(values) for name, values in trace.items()}
        return Rounds(np.array(features, dtype=np.int64), np.array(alphas), reached), np.array(thetas)


def pairs_of(data: QueryDataset, pair_weight: Floats) -> Pairs:
    """Return the pairs of documents that differ in grade, as the kernels take them."""
    from . import _boosting_kernels as kernels

    level = np.empty(data.n_docs, dtype=np.int64)
    levels = kernels.number_grades_of_lists(data.y, data.ptr, level)
    return kernels.Pairs(level, levels, data.ptr, pair_weight)


def _parts_of_columns(d: int) -> list[tuple[int, int]]:
    """Cut the columns into at most 16 parts of about equal work."""
    size = -(-d // min(16, d))
    return [(k, min(k + size, d)) for k in range(0, d, size)]


_Found: TypeAlias = tuple[float, float, int, int]


def _best_in_part(columns: BinnedColumns, potential: Floats, both: bool, part: tuple[int, int]) -> _Found:
    from . import _boosting_kernels as kernels

    found: _Found = kernels.best_threshold(columns.for_kernels, potential, both, *part)
    return found


def _better_of(left: _Found, right: _Found) -> _Found:
    from ._boosting_kernels import CLEARLY

    return right if right[0] > left[0] * CLEARLY else left
