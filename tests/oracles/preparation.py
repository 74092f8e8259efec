"""Copies relative to a query, knots, ramps and steps by their definitions, column by column."""

from __future__ import annotations

import math
from itertools import pairwise


def rank(values: list[float]) -> list[float]:
    """Mean place among the values from the lowest, scaled to 0 … 1; 0 where all are equal."""
    if len(set(values)) < 2:
        return [0.0] * len(values)
    places = sorted(values)
    mean_place = {v: sum(i for i, u in enumerate(places) if u == v) / places.count(v) for v in set(values)}
    return [mean_place[v] / (len(values) - 1) for v in values]


def minmax(values: list[float]) -> list[float]:
    """(x − min)/(max − min); 0 where all are equal."""
    low, width = min(values), max(values) - min(values)
    return [(v - low) / width if width else 0.0 for v in values]


def standard(values: list[float]) -> list[float]:
    """(x − mean)/deviation; 0 where all are equal."""
    if len(set(values)) < 2:
        return [0.0] * len(values)
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
    return [(v - mean) / deviation for v in values]


def knots(values: list[float], count: int, kind: str) -> list[float]:
    """Quantiles of the values; where several are one or useless, of the different useful values."""
    ordered, useful = sorted(values), sorted(set(values))
    useful = useful[1:-1] if kind == "ramps" else useful[:-1]
    if len(useful) <= count:
        return useful
    found = {ordered[i * len(ordered) // (count + 1)] for i in range(1, count + 1)} & set(useful)
    if len(found) == count:
        return sorted(found)
    return [useful[i * len(useful) // (count + 1)] for i in range(1, count + 1)]


def curve(value: float, knot: float, chosen: list[float], learned: list[float], kind: str) -> float:
    """One ramp or step of a column whose knots are `chosen`, learned from its values `learned`."""
    if kind == "steps":
        return float(value > knot) - float(knot < 0)
    scale = chosen[-1] - chosen[0] if len(chosen) > 1 else max(learned) - min(learned)
    return (max(value, knot) - max(0.0, knot)) / scale


def prepared(
    columns: list[list[float]], ptr: list[int], train: list[list[float]], train_ptr: list[int], words: list[str]
) -> list[list[float]]:
    """All columns after the words of a chain; knots are learned from the columns of `train`."""
    views = {"+rank": rank, "+minmax": minmax, "+standard": standard, "query": minmax, "standard": standard}
    base, train_base = columns, train
    for word in words:
        if word == "log":
            base = columns = [[math.copysign(math.log1p(abs(v)), v) for v in column] for column in columns]
            train_base = train = [[math.copysign(math.log1p(abs(v)), v) for v in column] for column in train]
        elif word in views:
            seen, train_seen = (
                [_by_query(column, ends, views[word]) for column in part]
                for part, ends in ((base, ptr), (train_base, train_ptr))
            )
            if word[0] == "+":
                columns, train = columns + seen, train + train_seen
            else:
                base = columns = seen
                train_base = train = train_seen
        else:
            kind, count = word.split(":")
            chosen = [knots(column, int(count), kind) for column in train]
            more = [
                [curve(v, t, chosen[j], train[j], kind) for v in columns[j]]
                for j in range(len(columns))
                for t in chosen[j]
            ]
            columns = columns + more
    return columns


def _by_query(column: list[float], ptr: list[int], view) -> list[float]:
    return [v for a, b in pairwise(ptr) for v in view(column[a:b])]
