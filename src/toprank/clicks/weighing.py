"""From clicks to queries that a ranker learns from: each click weighs 1/p of the position it was made at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data.dataset import QueryDataset
from ..data.ids import id_text
from ..data.validation import check_fraction
from ..errors import InputError
from ..statistics.evaluation import checked_data_set
from .log import ClickLog, Counts
from .propensities import Propensities
from .simulation import document_ids


def click_weights(log: ClickLog, propensities: Propensities, clip: float | None = 0.1) -> tuple[Counts, Floats]:
    """Return the log added up, and for each document of a query Σ over its clicks of 1/max(p_k, clip).

    With trust, Σ over its impressions of (click − trust_k)/max(p_k, clip), where that is above 0: a click on what was
    merely believed counts for less, and what was seen and not clicked counts against.
    """
    if not isinstance(propensities, Propensities):
        raise InputError(f"propensities must be Propensities, got {type(propensities).__name__}: Propensities.known(…)")
    if clip is not None:
        check_fraction(clip=clip)
    counts = log.counts
    reach = len(propensities)
    beyond = np.flatnonzero((counts.position > reach) & (counts.clicks > 0))
    if len(beyond):
        raise InputError(
            f"{int(counts.clicks[beyond].sum())} clicks are at positions after {reach}, the first at "
            f"{int(counts.position[beyond].min())}, for which there is no propensity: estimate them with a larger cut, "
            "or leave those rows out"
        )
    inside = np.minimum(counts.position, reach) - 1
    p = propensities.values[inside]
    never = np.flatnonzero((p == 0) & (counts.clicks > 0))
    if len(never):
        raise InputError(
            f"position {int(counts.position[never[0]])} has clicks and propensity 0: what is never seen is not clicked"
        )
    value = np.where(counts.position <= reach, counts.clicks - counts.shown * propensities.trust[inside], 0.0)
    weight = np.divide(value, p if clip is None else np.maximum(p, clip), out=np.zeros(len(p)), where=p > 0)
    return counts, np.maximum(np.add.reduceat(weight, counts.ptr[:-1]), 0.0)


def weighed(
    log: ClickLog, features: QueryDataset, propensities: Propensities, clip: float | None, *, drop: bool, shown: bool
) -> QueryDataset:
    """Do what `ClickLog.to_queries` says; `drop` clicks without features, keep only what was `shown`."""
    checked_data_set(features)
    counts, weight = click_weights(log, propensities, clip)
    row = _rows_of(log, counts, features)
    lost = np.flatnonzero((row < 0) & (weight > 0))
    if len(lost) and not drop:
        pair = lost[0]
        raise InputError(
            f"{len(lost)} clicked documents have no features, the first is document "
            f"{log.doc_ids[counts.document[pair]]!s} of query {log.query_ids[counts.query[pair]]!s}: add them, or drop "
            "their clicks (unknown='drop', or --drop-unknown)"
        )
    found = row >= 0
    of_row = np.zeros(features.n_docs)
    of_row[row[found]] = weight[found]
    of_query = np.ones(features.n_queries) if features.query_weight is None else features.query_weight
    of_query = of_query * np.bincount(np.repeat(np.arange(len(of_query)), features.lengths), of_row, len(of_query))
    clicked = np.flatnonzero(of_query > 0)
    if not len(clicked):
        raise InputError("no click of the log is on a document with features: nothing can be learned from it")
    judged = replace(features, y=(of_row > 0).astype(np.float64), doc_weight=of_row, query_weight=of_query)
    if shown:
        seen = np.zeros(features.n_docs, dtype=bool)
        seen[row[found]] = True
        judged = judged.keep_rows(seen)
    return judged[clicked]


def _rows_of(log: ClickLog, counts: Counts, features: QueryDataset) -> Ints:
    """Return the row in `features` of each pair of the log, −1 where there is none."""
    query = _numbers_in(log.query_ids, features.query_ids)[counts.query]
    names = document_ids(features)
    distinct, number = np.unique(id_text(names), return_inverse=True)
    document = _numbers_in(log.doc_ids, distinct)[counts.document]
    of_row = np.repeat(np.arange(features.n_queries), features.lengths) * len(distinct) + number
    order = np.argsort(of_row, kind="stable")
    again = np.flatnonzero(of_row[order][1:] == of_row[order][:-1])
    if len(again):
        at = order[again[0]]
        raise InputError(
            f"features has document {names[at]!s} twice in query {features.qid[at]!s}: a click must say which it was on"
        )
    wanted = query * len(distinct) + document
    place = np.minimum(np.searchsorted(of_row[order], wanted), len(order) - 1)
    hit = (query >= 0) & (document >= 0) & (of_row[order][place] == wanted)
    return np.where(hit, order[place], -1)


def _numbers_in(ids: AnyArray, known: AnyArray) -> Ints:
    """Return the place of each id among the known ones, −1 where it is not there; ids are compared as text."""
    places = {name: i for i, name in enumerate(id_text(known).tolist())}
    return np.array([places.get(name, -1) for name in id_text(ids).tolist()], dtype=np.int64)
