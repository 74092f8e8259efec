"""Certificates of a model from two judges: queries with features, graded by people, and more graded by a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..certificates.base import Assumption
from ..certificates.two_judges import JudgedCertificate, Rival, judged_performance
from ..data.dataset import QueryDataset
from ..data.ids import id_text
from ..errors import InputError
from ..measures import Measure
from ..rankers.base import Ranker
from ..rankers.certifying import not_learned_from
from ..statistics.evaluation import checked_data_set, evaluate
from ..surrogates.direct import parse_bounded


def certify_with_judge(
    ranker: Ranker,
    people: QueryDataset,
    machine: QueryDataset,
    *,
    judge_name: str = "the machine",
    baseline: Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    target: str = "these",
    with_machine: bool | None = None,
) -> list[JudgedCertificate]:
    """Certify the measure of a ranker by people's grades, from few queries of theirs and many graded by a machine.

    Parameters
    ----------
    ranker : a fitted ranker; its `measure` is certified.
    people : queries with people's grades, which took no part in learning.
    machine : the same queries with the machine's grades, and others; they are matched by their ids.
    judge_name : what the machine is called in sentences.
    baseline : models by name, or functions of a data set that return scores; the difference to each is certified too.
    confidence : how often all certificates hold together, at least.
    target : "these" queries, or "new" ones like them.
    with_machine : whether the machine takes part, said before the values are seen; None goes by the number of queries.

    >>> import toprank as tr
    >>> made = tr.datasets.make_graded(n_queries=300, random_state=0)
    >>> ranker = tr.ListNet().fit_queries(made[:100])
    >>> found = certify_with_judge(ranker, made[100:160], made[100:], judge_name="robot")[0]
    >>> found.verdict, found.n_queries, found.n_machine, found.with_machine
    ('holds', 60, 140, True)
    """
    for data in (people, machine):
        if checked_data_set(data).query_weight is not None:
            raise InputError("bounds from two judges know no weights of queries: leave them out")
    rows = _places(people, machine)
    others = np.setdiff1d(np.arange(machine.n_queries), rows)
    measure = parse_bounded(ranker.measure)
    models = {"": ranker, **(baseline or {})}

    def values(model: Any) -> tuple[Floats, Floats, Floats]:
        h, f = (_values(ranker, model, data, measure) for data in (people, machine))
        return h, f[rows], f[others]

    found = {name: values(model) for name, model in models.items()}
    known = (_same_documents(people, machine, rows), *not_learned_from(ranker.learned_from_, machine))
    shared: dict[str, Any] = {
        "judge_name": judge_name,
        "confidence": confidence,
        "claims": len(models),
        "target": target,
        "with_machine": with_machine,
        "known": known,
    }
    own = judged_performance(*found[""], measure.name, **shared)
    gains = [
        judged_performance(*found[""], measure.name, against=Rival(name, *found[name]), **shared)
        for name in baseline or {}
    ]
    return [own, *gains]


def people_and_machine(data: QueryDataset, grades: Floats) -> QueryDataset:
    """Return the queries of which people graded every document, with their grades; NaN is a document they did not.

    `grades` are one per row of `data.X`. A query of which people graded some documents is refused.

    >>> data = QueryDataset.from_arrays(np.zeros((4, 1)), [0, 1, 2, 3], ["q", "q", "r", "r"])
    >>> people_and_machine(data, np.array([1.0, 0.0, np.nan, np.nan])).y.tolist()
    [1.0, 0.0]
    """
    graded = np.add.reduceat((~np.isnan(grades)).astype(np.int64), data.ptr[:-1])
    part = (graded > 0) & (graded < data.lengths)
    if part.any():
        at = int(part.argmax())
        raise InputError(
            f"people graded {graded[at]} of the {data.lengths[at]} documents of query {data.query_ids[at]}: they grade "
            "all documents of a query, or none"
        )
    chosen = np.flatnonzero(graded)
    if not len(chosen):
        raise InputError("people graded no query")
    whole = replace(data, y=np.where(np.isnan(grades), 0.0, grades))
    return whole[chosen]


def _values(ranker: Ranker, model: Any, data: QueryDataset, measure: Measure) -> Floats:
    """Return the measure of a model, or of the scores that a function gives a data set, query by query."""
    labelled = ranker._with_labels(data, ranker._later_labels(data.y))
    scored = model(data) if callable(model) else model
    return evaluate(scored, labelled, [measure]).per_query[measure.name]


def _places(people: QueryDataset, machine: QueryDataset) -> Ints:
    """Return where each query of people stands among those of the machine."""
    place = {name: i for i, name in enumerate(id_text(machine.query_ids).tolist())}
    names = id_text(people.query_ids).tolist()
    lacking = [name for name in names if name not in place]
    if lacking:
        raise InputError(
            f"people judged {len(lacking):,} queries that the machine did not, such as {lacking[0]}: let the machine "
            "judge all queries that people judged"
        )
    return np.array([place[name] for name in names], dtype=np.int64)


def _same_documents(people: QueryDataset, machine: QueryDataset, rows: Ints) -> Assumption:
    """Refuse queries of which both judged different documents: by their ids, or by their number without ids."""
    ids = people.doc_ids is not None and machine.doc_ids is not None
    for query, row in enumerate(rows.tolist()):
        if _documents(people, query, ids) != _documents(machine, row, ids):
            raise InputError(
                f"people and the machine judged different documents of query {people.query_ids[query]}: let both judge "
                "the same"
            )
    what = "documents" if ids else "number of documents"
    return Assumption(f"people and the machine judged the same {what} of the {len(rows):,} queries of both", True)


def _documents(data: QueryDataset, query: int, ids: bool) -> set[str] | int:
    rows = slice(int(data.ptr[query]), int(data.ptr[query + 1]))
    found: AnyArray | None = data.doc_ids
    return set(id_text(found[rows]).tolist()) if ids and found is not None else rows.stop - rows.start
