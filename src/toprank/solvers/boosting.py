"""RankBoost over presorted columns: thresholds of single features as weak rankers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Ints, Matrix
from ..data import blocks
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse


def columns_of(X: Matrix) -> Callable[[int], Floats]:
    """Return k ↦ column k as a float64 array, from one transposed copy."""
    if is_sparse(X):
        by_column = X.tocsc()

        def sparse(k: int) -> Floats:
            values = np.zeros(X.shape[0])
            a, b = by_column.indptr[k], by_column.indptr[k + 1]
            values[by_column.indices[a:b]] = by_column.data[a:b]
            return values

        return sparse
    turned = np.ascontiguousarray(X.T, dtype=np.float64)
    return lambda k: turned[k]


@dataclass(frozen=True, eq=False)
class Rounds:
    """What a boosting run did: candidate and weight of each round, and numbers to look at."""

    candidates: Ints
    weights: Floats
    trace: dict[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SortedColumns:
    """Rows of every column from high to low, the places where a threshold can be marked; see `best_threshold`."""

    order: AnyArray
    start: Ints
    turn: Ints

    @classmethod
    def of(cls, X: Matrix, thresholds: int | None = None, taught: AnyArray | None = None) -> SortedColumns:
        """Sort once; `thresholds` limits how many places a column keeps (None: all), `taught` says which rows count."""
        from . import _boosting_kernels as kernels

        n_docs, n_features = X.shape
        n_taught = n_docs if taught is None else int(taught.sum())
        orders: list[AnyArray] = []
        turn = np.empty(n_features, dtype=np.int64)
        start = np.zeros(n_features + 1, dtype=np.int64)
        if is_sparse(X):
            by_column = X.tocsc()
        else:
            column = columns_of(X)
        for k in range(n_features):
            if is_sparse(X):
                a, b = by_column.indptr[k], by_column.indptr[k + 1]
                rows, values = by_column.indices[a:b], by_column.data[a:b].astype(np.float64)
            else:
                rows, values = np.arange(n_docs), column(k)
            # The potentials add up to 0, so the documents at 0 need not be looked at: CSR or not, the same pass.
            used = values != 0 if taught is None else (values != 0) & taught[rows]
            rows, values = rows[used], values[used]
            zeros = len(rows) < n_taught
            above = values > 0 if zeros else np.ones(len(values), dtype=bool)
            down = np.argsort(-values[above], kind="stable")
            up = np.argsort(values[~above], kind="stable")
            head, tail = rows[above][down].astype(np.int32), rows[~above][up].astype(np.int32)
            kernels.mark_runs(head, values[above][down], zeros)
            kernels.mark_runs(tail, values[~above][up], zeros)
            if thresholds is not None:
                kernels.keep_marks(head, thresholds)
                kernels.keep_marks(tail, thresholds)
            orders += [head, tail]
            turn[k] = start[k] + len(head)
            start[k + 1] = turn[k] + len(tail)
        return cls(np.concatenate(orders), start, turn)

    def threshold(self, X: Matrix, column: int, place: int) -> float:
        """Return θ between the run that ends at `place` and the next value: x > θ exactly for the rows above it."""
        row, stop = int(self.order[place]), int(self.start[column + 1])
        here = float(X[row if row >= 0 else ~row, column])
        next_row = int(self.order[place + 1]) if place + 1 < stop else None
        if next_row is None or place + 1 == self.turn[column]:
            beyond = 0.0  # the run of zeros that is left out
        else:
            beyond = float(X[next_row if next_row >= 0 else ~next_row, column])
        low, high = min(here, beyond), max(here, beyond)
        middle = low + 0.5 * (high - low)
        return middle if low <= middle < high else low


@dataclass(frozen=True)
class RankBoostRounds:
    """h_t = argmax |r|, r = Σ D(i,j) (h(x_i) − h(x_j)), α_t = ½ ln((1+r)/(1−r)), D ∝ e^{H_j − H_i}."""

    rounds: int
    both: bool = True
    """Whether a stump may also count against its documents (r < 0)."""
    watch: Callable[[int, int, float, float], bool] | None = None
    """Called after each round with its number, column, threshold and weight; True stops."""

    def run(
        self, data: QueryDataset, columns: SortedColumns, pair_weight: Floats, executor: Executor | None = None
    ) -> tuple[Rounds, Floats]:
        """Boost; `pair_weight` is the weight of one pair of each query. Returns the rounds and their thresholds."""
        from . import _boosting_kernels as kernels

        codes = np.empty(data.n_docs, dtype=np.int64)
        levels = kernels.grade_codes(data.y, data.ptr, codes)
        H, potential = np.zeros(data.n_docs), np.empty(data.n_docs)
        start_weight = total = kernels.potentials(H, codes, data.ptr, pair_weight, levels, potential)
        cap = 1.0 - 1e-9
        runs = _column_runs(columns)
        chosen: list[int] = []
        thresholds: list[float] = []
        weights: list[float] = []
        losses: list[float] = []
        edges: list[float] = []
        for t in range(1, self.rounds + 1):
            search = partial(_best, columns, potential, self.both)
            size, r, column, place = blocks.map_reduce(search, runs, executor, combine=_better)
            if not size > 1e-12 * total:
                break
            r = float(np.clip(r / total, -cap, cap))
            weight = float(0.5 * np.log((1 + r) / (1 - r)))
            theta = columns.threshold(data.X, column, place)
            kernels.step(H, columns.order, columns.start, columns.turn, column, place, weight)
            total = kernels.potentials(H, codes, data.ptr, pair_weight, levels, potential)
            chosen.append(column)
            thresholds.append(theta)
            weights.append(weight)
            losses.append(total / start_weight)
            edges.append(abs(r))
            stop = self.watch is not None and self.watch(t, column, theta, weight)
            if stop or abs(r) >= cap:
                break
        trace = {"loss": np.array(losses), "edge": np.array(edges)}
        return Rounds(np.array(chosen, dtype=np.int64), np.array(weights), trace), np.array(thresholds)


def _column_runs(columns: SortedColumns) -> list[tuple[int, int]]:
    """Cut the columns into at most 16 runs of about equal work."""
    d = len(columns.turn)
    size = -(-d // min(16, d))
    return [(k, min(k + size, d)) for k in range(0, d, size)]


_Found: TypeAlias = tuple[float, float, int, int]


def _best(columns: SortedColumns, potential: Floats, both: bool, run: tuple[int, int]) -> _Found:
    from . import _boosting_kernels as kernels

    found: _Found = kernels.best_threshold(columns.order, columns.start, columns.turn, potential, both, *run)
    return found


def _better(left: _Found, right: _Found) -> _Found:
    return right if right[0] > left[0] else left
