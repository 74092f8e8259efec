"""How well a ranker does on held-out clicks: the only thing settings may be chosen by when nothing is judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Floats
from ..data import validation
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..measures import measure as parse
from ..measures.base import Measure, mean_value
from ..statistics.evaluation import checked_data_set, grouped_scores


@dataclass(frozen=True)
class ClickValue:
    """What a ranker is worth on clicks: the mean discount of a click, each weighted by 1/p, and its interval.

    Σ over clicks of 1/(p · log2(1 + rank)) divided by Σ 1/p; the bootstrap interval is over queries.
    """

    value: float
    lower: float
    upper: float
    n_queries: int
    k: int | None

    def __str__(self) -> str:
        cut = "" if self.k is None else f" in the top {self.k}"
        return (
            f"mean discount of a click{cut} {self.value:.4f} [{self.lower:.4f}, {self.upper:.4f}] over "
            f"{self.n_queries} queries (clicks weighted by 1/p; 95% bootstrap interval)"
        )


def click_value(
    model: Any, clicks: QueryDataset, k: int | None = 10, *, resamples: int = 1000, random_state: int = 0
) -> ClickValue:
    """Return what a model, or scores, are worth on queries made by `ClickLog.to_queries` from held-out sessions.

    Each click counts 1/log2(1 + rank of what was clicked), weighted by 1/p: up to the normaliser the DCG that full
    judgements of 0 and 1 would give. Dividing by the weights keeps it between 0 and 1 and far steadier. Ties count as
    their expected value. `resamples=0` leaves the interval out (NaN), where many settings are compared.

    >>> import toprank as tr
    >>> clicks = tr.QueryDataset.from_arrays([[2.0], [1.0]], [0, 1], doc_weight=[0, 5])
    >>> round(click_value(clicks.X[:, 0], clicks).value, 4)
    0.6309
    """
    checked_data_set(clicks)
    found, total = _discounts(validation.as_scores(grouped_scores(model, clicks), clicks.n_docs), clicks, k)
    lower = upper = np.nan
    if resamples:
        validation.check_count(resamples=resamples)
        rng = validation.as_generator(random_state)
        drawn = rng.multinomial(len(total), np.full(len(total), 1 / len(total)), size=resamples)
        weight = drawn @ total
        lower, upper = np.percentile((drawn @ found)[weight > 0] / weight[weight > 0], [2.5, 97.5])
    return ClickValue(float(found.sum() / total.sum()), float(lower), float(upper), len(total), k)


def _discounts(scores: Floats, clicks: QueryDataset, k: int | None) -> tuple[Floats, Floats]:
    """Return the weighted discounts of the clicks of each query, and its weights, for scores grouped by query."""
    if clicks.doc_weight is None:
        raise InputError("these queries have no doc_weight: make them with ClickLog.to_queries")
    largest = clicks.doc_weight.max(initial=0.0)
    if not largest > 0:
        raise InputError("no document of these queries was clicked: there is nothing to count")
    weights = clicks.doc_weight / largest  # only their ratios count, and sums of them stay numbers
    name = "dcg" if k is None else f"dcg@{k}"
    found = parse(f"{name}:gain=linear").per_query(scores, weights, clicks.ptr)
    total: Floats = np.bincount(clicks.query_of_rows, weights, clicks.n_queries).astype(np.float64)
    return found, total


CLICK_VALUE = "click value"
"""What tables call the value of held-out clicks."""


def choice_value(measure: Any, scores: Floats, data: QueryDataset) -> float:
    """Return what settings are chosen by, for scores grouped by query: the mean measure, or on clicks their value.

    On queries with weights of documents (`ClickLog.to_queries`) this is `click_value` up to the measure's cut-off: the
    measure itself would take each clicked document for relevant, and prefer what the old ranker preferred.

    >>> import toprank as tr
    >>> clicks = tr.QueryDataset.from_arrays([[2.0], [1.0]], [1, 1], doc_weight=[1, 9])
    >>> round(choice_value(tr.measure("ndcg@1"), np.array([0.0, 1.0]), clicks), 4)
    0.9
    """
    if data.doc_weight is None:
        if isinstance(measure, Measure):
            return measure.mean(scores, data.y, data.ptr, data.query_weight, doc_ids=data.doc_ids)
        return mean_value(measure.per_query(scores, data.y, data.ptr, doc_ids=data.doc_ids), data.query_weight)
    found, total = _discounts(scores, data, getattr(measure, "k", None))
    return float(found.sum() / total.sum())
