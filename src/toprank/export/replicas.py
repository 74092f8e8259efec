"""The arithmetic of the engines, restated: same order of operations, same precision, same rule for missing values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .._typing import Floats, Ints

Precision: TypeAlias = type[np.float32] | type[np.float64]

SLACK = 10
"""Roundings of one term beside the additions: value, weight, centre, scale, difference, quotient, product; spare."""


class Replica(ABC):
    """An exported file as its engine runs it."""

    names: tuple[str, ...] | None
    """The features it asks for, in its order; None: by position."""
    width: int = 0
    """How many features it takes by position."""
    engine: str = "restated"
    """Who computed: the name of the engine where it ran, "restated" where its arithmetic was computed here."""
    rule: str
    """Precision and missing-value rule in words."""
    last = 0.0
    """Relative error of a last rounding that `rounding` says nothing of."""

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return self.width if self.names is None else len(self.names)

    @abstractmethod
    def score_rows(self, X: Floats, query: Ints | None = None) -> Floats:
        """Return the engine's score of each dense row; NaN is a missing value, and a possible result.

        `query` says which rows belong together, where that matters; None: all of them do.
        """

    def rounding(self, X: Floats) -> Floats | None:
        """Return for each row how far rounding alone can move its score; None: as far as float64 moves the model's."""
        return None

    def doubtful(self, X: Floats) -> int | None:
        """Return how many values rounding may have moved across a threshold; None where there are no thresholds."""
        return None

    def with_text_columns(self) -> Replica | None:
        """Return the same over columns that hold numbers as text; None where the engine has no such columns."""
        return None


def unit_roundoff(precision: Precision) -> float:
    """Return the largest relative error of one rounding."""
    return float(np.finfo(precision).eps) / 2


def next_single(value: float, towards: float) -> float:
    """Return the float32 number after one, in a direction.

    >>> next_single(1.0, float("inf"))
    1.0000001192092896
    """
    with np.errstate(over="ignore", under="ignore"):
        return float(np.nextafter(np.float32(value), np.float32(towards)))


@dataclass(frozen=True, eq=False)
class LinearReplica(Replica):
    """s ← start; s ← s + w_j · (x_j − center_j)/scale_j for each j in order; s ← s + end. Each operation rounds.

    `values` is the precision of features, centres and scales, `sums` that of weights and sums. A missing value becomes
    `fill`, or stays NaN where that is None.

    >>> engine = LinearReplica(("a", "b"), np.array([1.0, 1.0]), "float32", np.float32, np.float32, fill=np.zeros(2))
    >>> engine.score_rows(np.array([[1e8, 1.0], [np.nan, 1.0]])).tolist()
    [100000000.0, 1.0]
    """

    names: tuple[str, ...] | None
    weights: Floats
    rule: str
    values: Precision
    sums: Precision
    fill: Floats | None = None
    center: Floats | None = None
    scale: Floats | None = None
    start: float = 0.0
    end: float | None = None
    width: int = 0

    def _filled(self, X: Floats) -> Floats:
        return X if self.fill is None else np.where(np.isnan(X), self.fill, X)

    def score_rows(self, X: Floats, query: Ints | None = None) -> Floats:
        """Return the scores, each operation rounded as the engine rounds it."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x = self._filled(X).astype(self.values)
            if self.center is not None and self.scale is not None:
                moved = (self.center != 0) | (self.scale != 1)
                center, scale = self.center.astype(self.values), self.scale.astype(self.values)
                x[:, moved] = (x[:, moved] - center[moved]) / scale[moved]
            weights = self.weights.astype(self.sums)
            total = np.full(len(x), self.start, dtype=self.sums)
            for j in range(self.n_features):
                total += weights[j] * x[:, j].astype(self.sums)
            if self.end is not None:
                total += self.sums(self.end)
        return total.astype(np.float64)

    def rounding(self, X: Floats) -> Floats:
        """Return n·unit · Σ_j |w_j| (|x_j| + |c_j|)/s_j, n the number of roundings on the way of a term."""
        center = np.zeros(self.n_features) if self.center is None else np.abs(self.center)
        scale = np.ones(self.n_features) if self.scale is None else self.scale
        reach = (np.abs(np.nan_to_num(self._filled(X))) + center) / scale
        constant = abs(self.start) + abs(self.end or 0.0)
        size = reach @ np.abs(self.weights) + constant
        relative = SLACK * unit_roundoff(self.values) + (self.n_features + SLACK) * unit_roundoff(self.sums)
        # What is too small for a precision is lost whole: at most its smallest number, for each operation.
        lost = float(np.finfo(self.sums).smallest_subnormal) * (reach.sum(axis=1) + self.n_features)
        gone = (
            SLACK
            * float(np.finfo(self.values).smallest_subnormal)
            * float((np.abs(self.weights) * (1 + 1 / scale)).sum())
        )
        return np.asarray(relative * size + lost + gone, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PreparedReplica(Replica):
    """An engine that prepares the features first, step by step in float64; `like` scores what comes out."""

    names: tuple[str, ...] | None
    steps: tuple[str, ...]
    like: Replica
    fill: Floats | None
    rule: str

    def score_rows(self, X: Floats, query: Ints | None = None) -> Floats:
        """Return the scores of the prepared features."""
        query = np.zeros(len(X), dtype=np.int64) if query is None else query
        X = X.copy() if self.fill is None else np.where(np.isnan(X), self.fill, X)
        for step in self.steps:
            if step == "log":
                X = np.sign(X) * np.log(1 + np.abs(X))
                continue
            for one in np.unique(query):
                rows = X[query == one]
                low, spread = rows.min(axis=0), np.ptp(rows, axis=0)
                if step == "standard":
                    low, spread = (
                        np.where(spread > 0, rows.mean(axis=0), low),
                        np.where(spread > 0, rows.std(axis=0), 0),
                    )
                X[query == one] = (rows - low) / np.where(spread > 0, spread, 1.0)
        return self.like.score_rows(X, query)
