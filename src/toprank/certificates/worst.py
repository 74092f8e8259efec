"""What the worst order of given lists has: a bound that it meets says nothing.

This is the one rule for what is vacuous, for every certificate about a measure or about mistakes: `vacuous_from` is the
value that the same lists have with their documents in the worst order, lower grades first. Every ranker respects it,
whatever it learned.
"""

from __future__ import annotations

import numpy as np

from .._typing import Floats, Ints
from ..measures.base import Measure
from ..surrogates.precision_at_k import MistakesAvg


def worst_values(measure: Measure, y: Floats, ptr: Ints) -> Floats:
    """Return the measure of the worst order of each list, NaN where the convention skips the list.

    >>> import toprank as tr
    >>> worst_values(tr.measure("map"), np.array([0.0, 1.0, 1.0, 1.0]), np.array([0, 2, 4])).tolist()
    [0.5, 1.0]
    """
    return measure.per_query(-y, y, ptr)


def worst_mean(measure: Measure, y: Floats, ptr: Ints, weight: Floats | None = None) -> float:
    """Return the mean measure of the worst orders, over the lists that the convention counts.

    >>> import toprank as tr
    >>> worst_mean(tr.measure("map"), np.array([0.0, 1.0, 1.0, 1.0]), np.array([0, 2, 4]))
    0.75
    """
    values = worst_values(measure, y, ptr)
    weight = np.where(np.isnan(values), 0.0, 1.0 if weight is None else weight)
    return float(np.nan_to_num(values) @ weight / weight.sum()) if weight.sum() > 0 else 0.0


def most_mistakes(k: int | None, kappa: float | None, y: Floats, ptr: Ints, *, share: bool = False) -> Floats:
    """Return how many of the first k places negatives can take, min(k, negatives), of each list; or their share of k.

    >>> most_mistakes(2, None, np.array([1.0, 1.0, 0.0]), np.array([0, 3])).tolist()
    [1.0]
    """
    return MistakesAvg(k=k, kappa=kappa, normalize=share).per_query(-y, y, ptr)[0]
