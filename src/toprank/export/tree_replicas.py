"""The arithmetic of engines that add up trees, restated. A tree is what was read from the file, split by split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints
from .replicas import SLACK, Precision, Replica, unit_roundoff


@dataclass(frozen=True)
class EngineSplit:
    """A split as an engine has it: values up to `last` go to `low`. A leaf is a number.

    `first` is the next threshold that the engine could have had: the model's own threshold lies in [last, first), so
    only for a value strictly between the two can the file not say what the model does. `floor` replaces `last` in that,
    for an engine that compares finer numbers than it has thresholds.
    """

    feature: int
    last: float
    first: float
    low: EngineSplit | float
    high: EngineSplit | float
    missing_low: bool = False
    """Whether a missing value goes to `low`."""
    floor: float | None = None


def nodes_of(root: Any) -> Iterator[tuple[Any, int]]:
    """Yield every node of a tree, with the number of splits above it: a leaf is a number, a split has two sides."""
    stack = [(root, 0)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        if not isinstance(node, (int, float)):
            stack += [(node.low, depth + 1), (node.high, depth + 1)]


def leaves(root: Any) -> list[float]:
    """Return the leaves of a tree."""
    return [node for node, _ in nodes_of(root) if isinstance(node, (int, float))]


def float32_of(text: str | float) -> float:
    """Return the float32 number that an engine reads; ValueError where there is none."""
    with np.errstate(over="ignore", under="ignore"):
        number = float(np.float32(float(text)))
    if not np.isfinite(number):
        raise ValueError(f"{text} is no float32 number")
    return number


@dataclass(frozen=True, eq=False)
class TreeReplica(Replica):
    """s ← 0; s ← s + the leaf that x reaches in tree t, for each t in order; s ← s + end. Each addition rounds.

    `values` is the precision of the features, `sums` that of leaves and sums. A missing value becomes `fill`; where
    that is None it goes where each split sends it, or there is no score (`refuses`).

    >>> tree = EngineSplit(0, 1.0, 1.0000001, 0.0, 5.0)
    >>> engine = TreeReplica(("a",), [tree], "float32", np.float32, np.float32)
    >>> engine.score_rows(np.array([[1.0], [1.1], [np.nan]])).tolist()
    [0.0, 5.0, 5.0]
    """

    names: tuple[str, ...] | None
    roots: Sequence[EngineSplit | float]
    rule: str
    values: Precision
    sums: Precision
    fill: Floats | None = None
    refuses: bool = False
    end: float = 0.0
    width: int = 0

    def _rounded(self, X: Floats) -> tuple[Floats, Floats]:
        """Return the values as they are, gaps filled, and as the engine sees them."""
        exact = X if self.fill is None else np.where(np.isnan(X), self.fill, X)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return exact, exact.astype(self.values).astype(np.float64)

    def score_rows(self, X: Floats, query: Ints | None = None) -> Floats:
        """Return the sums of leaves, each addition rounded as the engine rounds it."""
        exact, seen = self._rounded(X)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            total = np.zeros(len(X), dtype=self.sums)
            for root in self.roots:
                total += _walk(root, seen, exact, None)[0].astype(self.sums)
            if self.end:
                total += self.sums(self.end)
        scores = total.astype(np.float64)
        return np.where(np.isnan(exact).any(axis=1), np.nan, scores) if self.refuses else scores

    def rounding(self, X: Floats) -> Floats:
        """Return the roundings of the sum, and the steps at thresholds that float32 cannot tell from a value."""
        exact, seen = self._rounded(X)
        moved = np.zeros(len(X))
        size, count = abs(self.end), 0
        for root in self.roots:
            here, doubtful = _walk(root, seen, exact, None)
            if doubtful.any():
                for to_low in (True, False):
                    moved += np.abs(_walk(root, seen, exact, to_low)[0] - here)
            tips = leaves(root)
            size += max(map(abs, tips))
            count += len(tips)
        # Each leaf and each addition rounds once; the heights of the model are themselves sums in float64.
        relative = (len(self.roots) + SLACK) * unit_roundoff(self.sums) + (count + SLACK) * unit_roundoff(np.float64)
        lost = float(np.finfo(self.sums).smallest_subnormal) * (len(self.roots) + 1)
        return np.asarray(moved + relative * size + lost, dtype=np.float64)

    def doubtful(self, X: Floats) -> int:
        """Return how many values lie between a threshold and the next one that the engine could have had."""
        exact, seen = self._rounded(X)
        return sum(int(_walk(root, seen, exact, None)[1].sum()) for root in self.roots)


def _walk(
    root: EngineSplit | float, seen: Floats, exact: Floats, doubtful_to_low: bool | None
) -> tuple[Floats, AnyArray]:
    """Return the leaf of each row, and whether a doubtful split was on its way; it may be said where those send it."""
    out, doubtful = np.empty(len(seen)), np.zeros(len(seen), dtype=bool)
    stack: list[tuple[EngineSplit | float, AnyArray]] = [(root, np.arange(len(seen)))]
    while stack:
        node, rows = stack.pop()
        if not isinstance(node, EngineSplit):
            out[rows] = node
            continue
        value, true = seen[rows, node.feature], exact[rows, node.feature]
        low = np.where(np.isnan(value), node.missing_low, value <= node.last)
        unsure = ((node.last if node.floor is None else node.floor) < true) & (true < node.first)
        unsure |= (value <= node.last) != (true <= node.last)  # moved across the threshold by its rounding
        doubtful[rows] |= unsure
        if doubtful_to_low is not None:
            low = np.where(unsure, doubtful_to_low, low)
        stack += [(node.low, rows[low]), (node.high, rows[~low])]
    return out, doubtful
