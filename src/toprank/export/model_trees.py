"""Thresholds and trees as engines take them: one kind of tree for RankBoost's steps and for boosted trees.

A sum of K thresholds of a feature takes K + 1 values, so it is a tree with K splits; balanced, an engine finds its leaf
in log K comparisons. Engines hold features in float32. Then x > θ is x > T, T the largest float32 number that is not
above θ: for a feature value that is a float32 number the engine decides as the model does. Any other value x is decided
alike unless θ lies between x and its rounding, so at most |x|/2²⁴ away; RankBoost's thresholds are midway between two
values of the training data, so all of those are decided alike where neighbours differ by more than a part in 2²³
(1.2e-7). XGBoost rounds its features to float32 itself: such trees are decided alike for every value.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..errors import InputError
from ..model import Model, StumpFunction, TreeFunction
from .replicas import next_single
from .targets import Settings, listing, policy_note, round_up
from .tree_replicas import leaves, nodes_of

LARGEST = float(np.finfo(np.float32).max)
ABOVE_ALL = float(np.finfo(np.float64).max)
"""A threshold that every number is below: it parts numbers from missing values."""
DEEPEST = 400

Tree: TypeAlias = "ModelSplit | float"
"""A split, or a leaf."""


@dataclass(frozen=True)
class ModelSplit:
    """A split of a tree: values up to the threshold, in the engine's sense, go to `low`. A leaf is a number."""

    feature: int
    threshold: float
    low: Tree
    high: Tree
    missing_low: bool = False
    """Where a missing value goes."""


@dataclass(frozen=True)
class Steps:
    """What one feature adds to the score: heights[number of thresholds below x].

    `meant` are the thresholds as the model has them, `thresholds` as the engine does.

    >>> steps = Steps(0, (1.0, 2.0), (0.0, 5.0, 7.0), (1.0, 2.0))
    >>> steps.height(0.5), steps.height(1.0), steps.height(1.5), steps.height(9.0)
    (0.0, 0.0, 5.0, 7.0)
    """

    feature: int
    thresholds: tuple[float, ...]
    heights: tuple[float, ...]
    meant: tuple[float, ...]

    def height(self, value: float) -> float:
        """Return the height at a value, by the thresholds as the model has them."""
        return self.heights[bisect_left(self.meant, value)]

    def tree(self, fill: float = 0.0) -> Tree:
        """Return the steps as a balanced tree; a missing value goes where `fill` goes."""
        return self._tree(0, len(self.thresholds), fill)

    def _tree(self, first: int, last: int, fill: float) -> Tree:
        if first == last:
            return self.heights[first]
        middle = (first + last) // 2
        low, high = self._tree(first, middle, fill), self._tree(middle + 1, last, fill)
        return ModelSplit(self.feature, self.thresholds[middle], low, high, fill <= self.meant[middle])


def steps_of(model: Model, to_engine: Callable[[float], float] = float) -> list[Steps]:
    """Return the steps of each feature that is used; `to_engine` makes a number that the engine has of a threshold.

    Thresholds that fall together are one. The heights are the sums that the model itself computes.
    """
    stumps = model.function
    assert isinstance(stumps, StumpFunction)
    feature, threshold = stumps.feature, stumps.threshold
    order = np.lexsort((threshold, feature))
    found = []
    for f in np.unique(feature).tolist():
        own = order[feature[order] == f]
        meant, sums = threshold[own].tolist(), np.cumsum(stumps.weight[own]).tolist()
        total = {to_engine(value): (height, value) for value, height in zip(meant, sums, strict=True)}
        heights, exact = zip(*total.values(), strict=True)
        found.append(Steps(f, tuple(total), (0.0, *heights), exact))
    return found


def single_forest(model: Model, to_engine: Callable[[float], float], constant: float) -> tuple[list[Tree], list[str]]:
    """Return the trees of a model for an engine that computes in float32, and what to know about them."""
    roots = forest_of(model, to_engine)
    check_single(model, roots, constant)
    return roots, [used_note(model, roots), *side_notes(model, roots)]


def forest_of(model: Model, to_engine: Callable[[float], float] = float) -> list[Tree]:
    """Return the trees of a model; `to_engine` makes a number that the engine has of each threshold.

    A missing value goes its own way where the model says so, else where its fill goes (0 where it is refused).
    """
    if isinstance(model.function, StumpFunction):
        return [step.tree(model.rule.fill_value(step.feature) or 0.0) for step in steps_of(model, to_engine)]
    trees = model.function
    assert isinstance(trees, TreeFunction)
    if trees.depth > DEEPEST:
        raise InputError(f"a tree is {trees.depth} splits deep: no deeper than {DEEPEST} can be exported")
    columns = (trees.feature, trees.value, trees.low, trees.high, trees.missing_low)
    built: dict[int, Tree] = {}
    for node, (feature, value, low, high, missing_low) in reversed(
        list(enumerate(zip(*(column.tolist() for column in columns), strict=True)))
    ):
        if feature < 0:
            built[node] = value
            continue
        side = missing_low if model.rule.native else (model.rule.fill_value(feature) or 0.0) <= value
        threshold = value if value == ABOVE_ALL else to_engine(value)
        built[node] = ModelSplit(feature, threshold, built[low], built[high], side)
    return [built[node] for node in trees.root.tolist()]


def splits_of(roots: Sequence[Tree]) -> Iterator[ModelSplit]:
    """Yield every split of the trees."""
    return (node for root in roots for node, _ in nodes_of(root) if isinstance(node, ModelSplit))


def used_features(roots: Sequence[Tree]) -> list[int]:
    """Return the features that some split looks at, in order."""
    return sorted({cut.feature for cut in splits_of(roots)})


def lowest_score(roots: Sequence[Tree], model: Model) -> float:
    """Return a score that none is below."""
    return sum(min(leaves(root)) for root in roots) + model.offset


def largest_sum(roots: Sequence[Tree]) -> float:
    """Return how large the sum of the leaves can get."""
    return sum(max(map(abs, leaves(root))) for root in roots)


def check_single(model: Model, roots: Sequence[Tree], constant: float) -> None:
    """Refuse thresholds and leaves, with the constant that is added to them, that float32 cannot hold."""
    for cut in splits_of(roots):
        if abs(cut.threshold) >= LARGEST and cut.threshold != ABOVE_ALL:
            raise InputError(
                f"a threshold of {model.names[cut.feature]!r} does not fit into float32, in which the engine "
                "computes: divide the feature by a constant and fit again"
            )
    if not largest_sum(roots) + abs(constant) < LARGEST:
        raise InputError("the weights do not fit into float32, in which the engine computes")


def nearest_single(value: float) -> float:
    """Return the nearest float32 number, as a float: its text means the same in either precision."""
    with np.errstate(under="ignore"):
        return float(np.float32(value))


def finite_in_single(value: float) -> float:
    """Return a threshold that float32 has: that of `ABOVE_ALL` is the largest there."""
    return LARGEST if value == ABOVE_ALL else value


def single_below(value: float) -> float:
    """Return the largest float32 number that is not above a value.

    >>> single_below(0.1) <= 0.1 < single_above(0.1)
    True
    >>> single_below(0.5), single_above(0.5)
    (0.5, 0.5000000596046448)
    """
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(value)
    return float(near) if float(near) <= value else next_single(float(near), -np.inf)


def single_above(value: float) -> float:
    """Return the smallest float32 number above a value."""
    return next_single(single_below(value), np.inf)


def double_after(value: float) -> float:
    """Return the float64 number after a value."""
    number = math.nextafter(value, math.inf)
    if math.isinf(number):
        raise InputError("a threshold is the largest number there is: divide the feature by a constant and fit again")
    return number


def same_in_single(trees: TreeFunction) -> bool:
    """Whether a value and its float32 rounding always take the same way, as in XGBoost, which rounds first."""
    threshold = trees.value[trees.feature >= 0]
    threshold = threshold[threshold < np.finfo(np.float64).max]
    after = np.nextafter(threshold, np.inf)
    with np.errstate(over="ignore", under="ignore"):
        return bool((threshold.astype(np.float32) < after.astype(np.float32)).all())


def side_notes(model: Model, roots: Sequence[Tree]) -> list[str]:
    """Say what is promised of thresholds in float32, and which of them are too close together for it."""
    if isinstance(model.function, TreeFunction) and same_in_single(model.function):
        return ["the model rounds its features to float32, as the engine does: every value takes the model's way"]
    notes = [
        "thresholds are rounded so that every feature value that is a float32 number falls on the model's side; of "
        "other values only one that float32 cannot tell from a threshold can change sides (verify-export counts them)"
    ]
    function = model.function
    meant = len({t[:2] for t in function.thresholds}) if isinstance(function, StumpFunction) else 0
    lost = meant - sum(1 for _ in splits_of(roots))
    if meant and lost:
        notes.append(
            f"{lost} thresholds are closer to another than float32 can tell and fall together with it: documents with "
            "values between the two can rank differently"
        )
    return notes


def used_note(model: Model, roots: Sequence[Tree]) -> str:
    """Say how large the model is."""
    splits, used = sum(1 for _ in splits_of(roots)), len(used_features(roots))
    if not isinstance(model.function, StumpFunction):
        return f"{len(roots)} trees with {splits} splits look at {used} of {len(model.names)} features"
    return (
        f"{len(model.function.thresholds)} thresholds of RankBoost are {splits} splits in {len(roots)} trees, one for "
        f"each feature it uses ({used} of {len(model.names)})"
    )


def shift_up(model: Model, roots: Sequence[Tree], settings: Settings) -> tuple[float, list[str]]:
    """Return what to add so that no score is below 0, unless the settings say what, and what to say of it."""
    base = lowest_score(roots, model)
    needed = 0.0 if base >= 0 else -base + 1e-6 * largest_sum(roots)  # and some for rounding
    shift = (round_up(needed) if needed else 0.0) if settings.shift is None else settings.shift
    notes = [shift_note(shift)] if shift else []
    if shift < needed:
        notes.append(negative_note(f"down to {shift - needed:.3g}", f"--shift {round_up(needed):g} or more"))
    return shift, notes


def shift_note(shift: float, through: str = "") -> str:
    """Say that scores are shifted."""
    return f"{shift:+g} is added to every score{through}: no ranking changes"


def negative_note(why: str, remedy: str) -> str:
    """Say what happens to scores below 0 in a rescore by the model alone."""
    return (
        f"scores can be negative ({why}), and hits outside the rescored window count 0 there, so they would stand "
        f"above such documents (Lucene itself only asserts that no score is negative): {remedy} lifts them all and "
        "changes no ranking"
    )


def missing_note(model: Model, roots: Sequence[Tree], how: str, where: str) -> str:
    """State the missing-value policy with the values that stand in: see `policy_note`."""
    other = listing(
        [f"{model.names[j]} = {value:g}" for j in used_features(roots) if (value := model.rule.fill_value(j))]
    )
    return policy_note(model, where, f"{f' ({other})' if other else ''}: {how}")


def stand_in(model: Model, roots: Sequence[Tree], target: str) -> dict[int, float]:
    """Return a value for each used feature that goes every split's way for missing ones; refuse where there is none.

    For a target that puts one value in for a missing one: it must be above the thresholds whose missing side is high,
    and not above those whose missing side is low. 0 where it does.
    """
    ways: dict[int, tuple[float, float]] = {}
    for cut in splits_of(roots):
        high, low = ways.get(cut.feature, (-math.inf, math.inf))
        ways[cut.feature] = (high, min(low, cut.threshold)) if cut.missing_low else (max(high, cut.threshold), low)
    found = {}
    for feature, (high, low) in ways.items():
        if not high < low:
            raise InputError(
                f"in {target} one value stands in for a missing one, and the splits of {model.names[feature]!r} send "
                'missing values where no single value goes: say missing="zero" (--missing zero) if they are 0 for you, '
                'or missing="error" if there are none'
            )
        found[feature] = 0.0 if high < 0 <= low else _clear_of(high, low)
    return found


def _clear_of(high: float, low: float) -> float:
    """Return a number above `high` and not above `low`, far from both where there is room, so that rounding is too.

    >>> _clear_of(2.0, math.inf), _clear_of(-math.inf, -0.5), _clear_of(1.0, 2.0)
    (4.0, -1.5, 1.5)
    """
    if math.isinf(low):
        return next_single(high + max(abs(high), 1.0), math.inf) if math.isinf(2 * high) else 2 * max(high, 1.0)
    wanted = (high + low) / 2 if math.isfinite(high) else low - max(abs(low), 1.0)
    single = float(np.float32(wanted))
    return single if high < single <= low else float(low)
