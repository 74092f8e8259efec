"""Grades that mislead: a scale without 0, and grades in the place of query ids."""

from __future__ import annotations

import warnings

import numpy as np

from .._typing import AnyArray, Floats
from ..errors import InputError

MOST_GRADES = 10
"""No scale of grades has more steps than this, and few tables have fewer queries."""


def lowest_above_zero(y: Floats) -> float:
    """Return the lowest grade of a scale that begins above 0, or 0 where there is nothing to say.

    >>> lowest_above_zero(np.array([1.0, 5.0])), lowest_above_zero(np.array([0.0, 5.0])), lowest_above_zero(np.ones(2))
    (1.0, 0.0, 0.0)
    """
    if not len(y):
        return 0.0
    low, high = float(y.min()), float(y.max())
    return low if 0 < low < high and low.is_integer() else 0.0


def scale_without_zero(lowest: float) -> str:
    """Return what to know of grades that begin at `lowest`."""
    return (
        f"no document has grade 0: the lowest grade is {lowest:g}, and measures count every document above 0 as "
        f"relevant; subtract {lowest:g} from the grades"
    )


def warn_of_lowest_grade(y: Floats, n_queries: int) -> None:
    """Say that a scale begins above 0: every document counts as relevant, and MAP is 1 for any order.

    One list may well be graded so; that no document of several queries has grade 0 is hardly meant.
    """
    lowest = lowest_above_zero(y)
    if lowest and n_queries > 1:
        warnings.warn(scale_without_zero(lowest), stacklevel=4)


def check_not_swapped(y: Floats, qid: AnyArray) -> None:
    """Refuse ids where grades belong: y stands in blocks as ids do, and qid has a few small numbers all over the rows.

    >>> check_not_swapped(np.repeat(np.arange(12.0), 4), np.array([0, 2, 1, 0] * 12))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: y looks like query ids and qid like grades: the order is fit(X, y, qid), ...
    """
    if qid.dtype.kind not in "iuf" or _blocks(qid) <= 1.5 * _blocks(y):
        return
    blocks, ids = np.unique(y), np.unique(qid)
    small = len(ids) <= MOST_GRADES and (ids == np.trunc(ids)).all() and ids[0] >= 0 and ids[-1] <= 31
    if not small or len(blocks) != _blocks(y) or len(blocks) <= max(2, len(ids)) or (y != np.trunc(y)).any():
        return
    found = (
        f"y looks like query ids and qid like grades: the order is fit(X, y, qid), and here y has {len(blocks)} values "
        f"in as many blocks of rows, qid the values {', '.join(f'{one:g}' for one in ids.tolist())} all over them"
    )
    if len(blocks) > MOST_GRADES:
        raise InputError(found)
    warnings.warn(found, stacklevel=5)


def _blocks(values: AnyArray) -> int:
    return 1 + int(np.count_nonzero(values[1:] != values[:-1]))
