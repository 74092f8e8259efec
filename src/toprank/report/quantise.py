"""Per-query values in three bytes or so each, such that nothing a reader sees differs from the exact numbers.

A value becomes low + step · code. Among the codes near it one is chosen such that, at the four digits shown, every
value and every difference between two systems on a query reads as it would in full, ties stay ties, and who wins a
query stays who wins it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..statistics._statistics import TIE

DIGITS = 4
"""Decimals shown on the page."""
_UNIT = 10.0**DIGITS
_FINEST = 2e-7
"""A step no coarser than this leaves 500 codes in every unit of the last digit."""
_TRIES = 400
_CHUNK = 1 << 21


@dataclass(frozen=True)
class Codes:
    """Whole numbers for values (system × query): `low + step * code`, or places in a `table` of few distinct values.

    The largest code of that width stands for NaN.
    """

    codes: Ints
    width: int
    """Bytes per value."""
    low: float = 0.0
    step: float = 0.0
    table: tuple[float, ...] | None = None

    @property
    def blank(self) -> int:
        """The code of a query that does not count."""
        return int(256**self.width - 1)

    def decode(self) -> Floats:
        """Return the values as the page computes them."""
        skipped = self.codes == self.blank
        if self.table is not None:
            return np.append(self.table, np.nan)[np.where(skipped, len(self.table), self.codes)]
        return np.where(skipped, np.nan, self.low + self.step * self.codes)

    def planes(self) -> bytes:
        """Return the lowest byte of every code, then the next, …; query by query, since systems resemble each other."""
        flat = self.codes.T.ravel()
        return b"".join((flat >> (8 * i) & 255).astype(np.uint8).tobytes() for i in range(self.width))


def quantise(values: Floats) -> Codes:
    """Return the narrowest codes of values (system × query) that show the same four digits.

    >>> quantise(np.array([[0.5, 1 / 3, np.nan], [0.25, 0.5, np.nan]])).decode().tolist()
    [[0.5, 0.3333333333333333, nan], [0.25, 0.5, nan]]
    >>> many = np.random.default_rng(0).random((2, 1000))
    >>> codes = quantise(many)
    >>> codes.width, bool((shown(codes.decode()) == shown(many)).all())
    (3, True)
    """
    blank = np.isnan(values)
    distinct = np.unique(values[~blank])
    if len(distinct) < 255:
        places = np.where(blank, 255, np.searchsorted(distinct, np.where(blank, 0, values)))
        return Codes(places.astype(np.int64), 1, table=tuple(distinct.tolist()))
    low = float(distinct[0])
    span = float(distinct[-1]) - low
    for width in range(3, 7):
        step = span / (256**width - 64)  # room above the largest value for a shift, and for NaN
        if step > _FINEST:
            continue
        codes = _fitted(np.where(blank, low, values), low, step)
        if codes is not None:
            coded = Codes(codes, width, low, step)
            codes[blank] = coded.blank
            return coded
    raise ValueError(f"values from {low:g} to {low + span:g} cannot be shown to {DIGITS} digits")


def shown(values: Floats) -> Ints:
    """Return the last digit's units that `f"{value:.4f}"` prints, as whole numbers.

    >>> shown(np.array([0.03125, 0.12346])).tolist()
    [312, 1235]
    """
    scaled = values * _UNIT
    units = np.rint(scaled)
    for at in np.argwhere(np.abs(np.abs(scaled - np.floor(scaled)) - 0.5) < 1e-6):
        # So near to the middle only the printed text says which way it is rounded.
        units[tuple(at)] = round(float(f"{values[tuple(at)]:.{DIGITS}f}") * _UNIT)
    return units.astype(np.int64)


def _fitted(values: Floats, low: float, step: float) -> Ints | None:
    codes = np.rint((values - low) / step).astype(np.int64)
    size = max(1, _CHUNK // max(1, len(values) ** 2))
    for start in range(0, values.shape[1], size):
        part = slice(start, start + size)
        wrong = ~_reads_the_same(values[:, part], codes[:, part], low, step)
        for q in np.flatnonzero(wrong) + start:
            better = _shifted(values[:, q], codes[:, q], low, step, int(q))
            if better is None:
                return None
            codes[:, q] = better
    return codes


def _reads_the_same(values: Floats, codes: Ints, low: float, step: float) -> AnyArray:
    """Say for each query (column) whether values, differences and winners read the same from the codes."""
    decoded = low + step * codes
    right: AnyArray = np.all(_within(decoded, shown(values)), axis=0)
    exact = values[:, None] - values
    exact[np.abs(exact) <= TIE] = 0
    from_codes = decoded[:, None] - decoded
    right &= (np.sign(exact) == np.sign(from_codes)).all(axis=(0, 1))
    return right & _within(from_codes, shown(exact)).all(axis=(0, 1))


def _within(values: AnyArray, units: Ints) -> AnyArray:
    """Say whether the values round to these units, with some room, so that every way of rounding agrees."""
    return np.abs(values * _UNIT - units) < 0.5 - 1e-8


def _shifted(values: Floats, codes: Ints, low: float, step: float, seed: int) -> Ints | None:
    """Return codes a few steps away that read the same; None where so many tries found none."""
    rng = np.random.default_rng(seed)
    order = np.argsort(values, kind="stable")
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.concatenate(([0], np.cumsum(np.diff(values[order]) > TIE)))
    first = np.zeros(group.max() + 1, dtype=np.int64)
    first[group] = codes
    for attempt in range(_TRIES):
        reach = 1 + attempt // 40
        moved = np.maximum(0, first + rng.integers(-reach, reach + 1, size=len(first)))
        tried: Ints = moved[group]
        if _reads_the_same(values[:, None], tried[:, None], low, step)[0]:
            return tried
    return None
