"""RankBoost as trees: the thresholds of one feature make one step function, and a step function makes one tree.

A sum of K thresholds of a feature takes K + 1 values, so it is a tree with K splits; balanced, an engine finds its leaf
in log K comparisons. Engines hold features in float32. Then x > θ is x > T, T the largest float32 number that is not
above θ: for a feature value that is a float32 number the engine decides as the model does. Any other value x is decided
alike unless θ lies between x and its rounding, so at most |x|/2²⁴ away; thresholds are midway between two values of the
training data, so all of those are decided alike where neighbours differ by more than a part in 2²³ (1.2e-7).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .replicas import next_single
from .scorers import Stumps
from .targets import Settings, listing, round_up

LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Cut:
    """A split of a tree: values up to the threshold, in the engine's sense, go to `low`. A leaf is a number."""

    threshold: float
    low: Cut | float
    high: Cut | float


@dataclass(frozen=True)
class Steps:
    """What one feature adds to the score: heights[number of thresholds below x].

    >>> steps = Steps(0, (1.0, 2.0), (0.0, 5.0, 7.0))
    >>> steps.height(0.5), steps.height(1.0), steps.height(1.5), steps.height(9.0)
    (0.0, 0.0, 5.0, 7.0)
    """

    feature: int
    thresholds: tuple[float, ...]
    heights: tuple[float, ...]

    def height(self, value: float) -> float:
        """Return the height at a value, by the thresholds as they stand here."""
        return self.heights[bisect_left(self.thresholds, value)]

    def tree(self) -> Cut | float:
        """Return the steps as a balanced tree."""
        return self._tree(0, len(self.thresholds))

    def _tree(self, first: int, last: int) -> Cut | float:
        if first == last:
            return self.heights[first]
        middle = (first + last) // 2
        return Cut(self.thresholds[middle], self._tree(first, middle), self._tree(middle + 1, last))


def steps_of(scorer: Stumps, place: Callable[[float], float] = float) -> list[Steps]:
    """Return the steps of each feature that is used; `place` moves a threshold to a number that the engine has.

    Thresholds that fall together are one. The heights are the sums that the model itself computes.
    """
    feature, threshold = scorer.model.feature, scorer.model.threshold
    order = np.lexsort((threshold, feature))
    found = []
    for f in np.unique(feature).tolist():
        own = order[feature[order] == f]
        total = dict(
            zip(map(place, threshold[own].tolist()), np.cumsum(scorer.model.weight[own]).tolist(), strict=True)
        )
        found.append(Steps(f, tuple(total), (0.0, *total.values())))
    return found


def check_single(scorer: Stumps, steps: list[Steps], settings: Settings) -> None:
    """Refuse thresholds and heights that float32 cannot hold."""
    for step in steps:
        if max(map(abs, step.thresholds)) >= LARGEST:
            raise InputError(
                f"a threshold of {scorer.names[step.feature]!r} does not fit into float32, in which the engine "
                "computes: divide the feature by a constant and fit again"
            )
    reach = sum(max(map(abs, step.heights)) for step in steps) + abs(scorer.offset + settings.shift)
    if not reach < LARGEST:
        raise InputError("the weights do not fit into float32, in which the engine computes")


def single(value: float) -> float:
    """Return the nearest float32 number, as a float: its text means the same in either precision."""
    with np.errstate(under="ignore"):
        return float(np.float32(value))


def below(value: float) -> float:
    """Return the largest float32 number that is not above a value.

    >>> below(0.1) <= 0.1 < above(0.1)
    True
    >>> below(0.5), above(0.5)
    (0.5, 0.5000000596046448)
    """
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(value)
    return float(near) if float(near) <= value else next_single(float(near), -np.inf)


def above(value: float) -> float:
    """Return the smallest float32 number above a value."""
    return next_single(below(value), np.inf)


def side_notes(scorer: Stumps, steps: list[Steps]) -> list[str]:
    """Say what is promised of thresholds in float32, and which of them are too close together for it."""
    notes = [
        "thresholds are rounded so that every feature value that is a float32 number falls on the model's side; of "
        "other values only one that float32 cannot tell from a threshold can change sides (verify-export counts them)"
    ]
    lost = len({(f, t) for f, t, _ in scorer.thresholds}) - sum(len(step.thresholds) for step in steps)
    if lost:
        notes.append(
            f"{lost} thresholds are closer to another than float32 can tell and fall together with it: documents with "
            "values between the two can rank differently"
        )
    return notes


def used_note(scorer: Stumps, steps: list[Steps]) -> str:
    """Say how large the model is."""
    splits = sum(len(step.thresholds) for step in steps)
    return (
        f"{len(scorer.thresholds)} thresholds of RankBoost are {splits} splits in {len(steps)} trees, one for each "
        f"feature it uses ({len(steps)} of {len(scorer.names)})"
    )


def negative_notes(scorer: Stumps, steps: list[Steps], settings: Settings) -> list[str]:
    """Say how far scores can fall below 0, which Lucene does not allow."""
    lowest = sum(min(step.heights) for step in steps) + scorer.offset
    if lowest >= 0:
        return []
    needed = -lowest + 1e-6 * sum(max(map(abs, step.heights)) for step in steps)  # and some for rounding
    if settings.shift >= needed:
        return []
    return [
        f"scores can be negative (down to {settings.shift - needed:.3g}), and Lucene allows no negative scores: "
        f"--shift {round_up(needed):g} or more lifts them all and changes no ranking"
    ]


def missing_note(scorer: Stumps, steps: list[Steps], how: str, where: str) -> str:
    """State the missing-value policy: `how` the file follows it, or that nothing is promised (`where`)."""
    if scorer.fill is None:
        return f"{scorer.missing} by the model, but {where}: make sure that every feature has a value"
    values = [(scorer.names[step.feature], float(scorer.fill[step.feature])) for step in steps]
    other = listing([f"{name} = {value:g}" for name, value in values if value])
    return f"{scorer.missing}{f' ({other})' if other else ''}: {how}"
