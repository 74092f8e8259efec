"""Reports that can be paired: the same queries, measures, convention and weights, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from .._typing import AnyArray, Floats
from ..data import validation
from ..data.ids import same_ids
from ..errors import InputError


@runtime_checkable
class Measured(Protocol):
    """What a comparison reads of a `Report`."""

    per_query: Mapping[str, Floats]
    convention: str
    query_ids: AnyArray
    query_weight: Floats | None


@runtime_checkable
class WithBlanks(Protocol):
    """A report that knows which queries a weighted mean adds without their weight."""

    def unweighted(self, name: str) -> AnyArray | None:
        """Return these queries; None where the mean of that measure weighs all."""


class Paired(NamedTuple):
    """The values of a measure (system × query) with the weights of the queries, scaled to mean 1."""

    values: Floats
    weight: Floats
    in_mean: Floats
    """The values as the weighted mean counts them: v/w where a convention adds v without the weight w."""


def aligned(reports: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, Paired]]:
    """Return the systems and, by measure, their values and weights, for reports that can be paired."""
    how = 'compare({"mine": toprank.evaluate(…), "theirs": toprank.evaluate(…)})'
    if not isinstance(reports, Mapping):
        raise InputError(f"compare takes reports by name, got {type(reports).__name__}: {how}")
    for name, report in reports.items():
        if not isinstance(report, Measured):
            raise InputError(f"{name!r} is no report but {type(report).__name__}: {how}")
    if len(reports) < 2:
        raise InputError(f"compare needs at least two reports, got {len(reports)}")
    systems = tuple(reports)
    first, *others = reports.values()
    measures = tuple(first.per_query)
    for name, report in zip(systems[1:], others, strict=True):
        if str(report.convention) != str(first.convention):
            raise InputError(
                f"{systems[0]!r} follows the convention {first.convention} and {name!r} {report.convention}: "
                "evaluate both under one convention"
            )
        if tuple(report.per_query) != measures:
            raise InputError(
                f"{systems[0]!r} has the measures {', '.join(measures)} and {name!r} {', '.join(report.per_query)}: "
                "evaluate both with the same measures"
            )
        if not same_ids(report.query_ids, first.query_ids):
            raise InputError(
                f"{systems[0]!r} and {name!r} hold different queries (or another order of them): "
                "paired tests need both evaluated on the same data"
            )
        if not _same(report.query_weight, first.query_weight):
            raise InputError(
                f"{systems[0]!r} and {name!r} weigh the queries differently: evaluate both on the same data"
            )
    weight = np.ones(len(first.query_ids)) if first.query_weight is None else first.query_weight
    values = {}
    for m in measures:
        unweighted = first.unweighted(m) if isinstance(first, WithBlanks) else None
        values[m] = _counted(m, np.array([report.per_query[m] for report in reports.values()]), weight, unweighted)
    if not values:
        raise InputError("the reports hold no measures: there is nothing to compare")
    return systems, values


def _same(one: Floats | None, other: Floats | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def _counted(measure: str, rows: Floats, weight: Floats, unweighted: AnyArray | None) -> Paired:
    """Leave out queries that do not count (NaN for every system alike, or weight 0); scale the weights to mean 1."""
    skipped = np.isnan(rows)
    if (skipped != skipped[0]).any():
        raise InputError(f"{measure} skips other queries in one report than in another: evaluate both on the same data")
    kept = ~skipped[0] & (weight > 0)
    if not kept.any():
        raise InputError(f"{measure} counts no query: there is nothing to compare")
    values, weights = rows[:, kept], weight[kept]
    in_mean = values if unweighted is None else values / np.where(unweighted[kept], weights, 1.0)
    return Paired(values, weights / weights.mean(), in_mean)


def pairs_of(systems: tuple[str, ...], baseline: str | None) -> list[tuple[int, int]]:
    """Return which systems are compared: every pair, or each with the baseline."""
    if baseline is None:
        return list(combinations(range(len(systems)), 2))
    validation.check_choice(systems, baseline=baseline)
    base = systems.index(baseline)
    return [(i, base) for i in range(len(systems)) if i != base]
