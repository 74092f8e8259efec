"""Fusion: several rankings of the same queries as one, from ranks or scores alone. A baseline that learns nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from .._typing import Floats, Ints
from ..data import validation
from ..data.grouping import numbered
from ..data.trec import Run, first_repeated
from ..errors import InputError

Method = Literal["rrf", "combsum", "combmnz"]

NAMES = {"rrf": "fusion by reciprocal rank", "combsum": "fusion by CombSUM", "combmnz": "fusion by CombMNZ"}


def fuse(runs: Sequence[Run | Mapping[str, Mapping[str, float]]], method: Method = "rrf", *, k: float = 60.0) -> Run:
    """Return one run from several: what each adds to a document, summed over the runs that retrieved it.

    `"rrf"`: 1/(k + rank) (reciprocal rank fusion, Cormack, Clarke and Büttcher 2009); `"combsum"`: the score, scaled to
    [0, 1] by the smallest and largest of its list; `"combmnz"`: that sum times the number of runs that retrieved the
    document (Fox and Shaw 1994). Queries and documents stand in the order in which they first appear.

    >>> run = fuse([{"q": {"a": 2.0, "b": 1.0, "c": 0.0}}, {"q": {"b": 9.0, "c": 1.0}}], "combmnz")
    >>> dict(zip(run.doc_ids.tolist(), run.scores.tolist()))
    {'a': 1.0, 'b': 3.0, 'c': 0.0}
    """
    validation.check_choice(get_args(Method), method=method)
    validation.check_not_negative(k=k)
    given = [Run.of(run) for run in runs]
    if len(given) < 2:
        raise InputError(f"fusion needs at least two runs, got {len(given)}")
    for number, run in enumerate(given, 1):
        again = first_repeated(run.qid, run.doc_ids)
        if again is not None:
            raise InputError(f"run {number}: document {run.doc_ids[again]} stands twice under query {run.qid[again]}")
    qid, doc_ids = (np.concatenate([getattr(run, name) for run in given]) for name in ("qid", "doc_ids"))
    query = numbered(qid)
    pair = query * (len(doc_ids) + 1) + numbered(doc_ids)
    _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    total, times = np.zeros(len(first)), np.zeros(len(first))
    start = 0
    for run in given:
        rows = slice(start, start + len(run.qid))
        total[place[rows]] += added(run.scores, query[rows], method, k)
        times[place[rows]] += 1
        start = rows.stop
    order = np.argsort(first, kind="stable")
    kept = first[order]
    return Run(qid[kept], doc_ids[kept], (total * times if method == "combmnz" else total)[order])


def fuse_scores(scores: Sequence[Floats], ptr: Ints, method: Method = "rrf", *, k: float = 60.0) -> Floats:
    """Return one score per document from several systems' scores of the same lists.

    >>> fuse_scores([np.array([3.0, 1.0]), np.array([5.0, 6.0])], np.array([0, 2]), "combsum").tolist()
    [1.0, 1.0]
    """
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    total = np.sum([added(one, query, method, k) for one in scores], axis=0)
    return np.asarray(total * (len(scores) if method == "combmnz" else 1))


def added(scores: Floats, query: Ints, method: Method, k: float) -> Floats:
    """Return what one system adds to each of its documents; tied documents keep the order of their rows.

    >>> added(np.array([5.0, 7.0, 9.0]), np.array([0, 0, 1]), "rrf", 60.0).tolist() == [1 / 62, 1 / 61, 1 / 61]
    True
    """
    order = np.lexsort((-scores, query))
    starts = np.flatnonzero(np.diff(query[order], prepend=-1))
    lengths = np.diff(np.append(starts, len(order)))
    result = np.empty(len(order))
    if method == "rrf":
        result[order] = 1 / (k + 1 + np.arange(len(order)) - np.repeat(starts, lengths))
        return result
    highest, lowest = scores[order][starts], scores[order][starts + lengths - 1]
    # A list whose scores are all equal says nothing: it adds 0.
    span = np.where(highest > lowest, highest - lowest, 1.0)
    result[order] = (scores[order] - np.repeat(lowest, lengths)) / np.repeat(span, lengths)
    return result
