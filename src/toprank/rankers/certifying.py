"""`toprank.certify`: what new queries will see of a fitted ranker, and what the papers prove about it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..certificates.base import Assumption, Certificate
from ..certificates.performance import PerformanceCertificate, performance
from ..certificates.worst import worst_mean
from ..data.dataset import QueryDataset
from ..data.remote import NotInMemoryError
from ..data.sketch import Sketch, copied_queries
from ..data.validation import check_fraction, check_positive
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..statistics.evaluation import checked_data_set, evaluate
from ..statistics.trec_evaluation import evaluate_run
from ..surrogates.direct import parse_bounded
from .base import Ranker

_NAMED = 5
"""Queries that were learned from are named up to this number."""


ON_TRUST = Assumption(
    "they took no part in learning or choosing: nothing here tells what was learned from, so this is taken on trust"
)
"""What can be said of anybody's scores: no marks of what they were learned from came with them."""


def certify(
    ranker: Any,
    data: Any = None,
    comparator: Any = None,
    *,
    measure: str | Measure | None = None,
    convention: str | None = None,
    confidence: float = 0.95,
    baseline: Mapping[str, Any] | None = None,
    delta: float | None = None,
) -> list[Certificate]:
    """Return what new queries will see of a ranker, or of anybody's model, scores or run, and what is proved of it.

    The first says what new queries will see: bounds on the expected `measure` of the ranker, for any distribution of
    queries. It wants judged queries that took no part in learning, and refuses those that did. After it come the same
    for the difference to each `baseline` ({name: a model or scores, as `evaluate` takes them}); all of these hold
    together with probability `confidence`.

    Then come the theorems of the papers. For online rankers they speak of the stream that was learned from, so `data`
    must be that stream, and of a `comparator`, a weight vector: where it is None, the best one found in batch serves.
    For the kernel perceptron a comparator is a function: another fitted ranker with the same kernel, or a pair
    (documents, coefficients). Those that may fail do so with probability `delta` (1 − confidence where None).

    `data` is a data set. Anybody else's model, one score per row of it (in your row order) and runs are certified by
    `measure` ("ndcg@10" where it is None; under `convention`); `data` may then be judgements (`Qrels`, or grades by
    query and document), on which runs are measured as by `evaluate_run`. Which queries they were learned from nobody
    can tell, so that these took no part is taken on trust, and the certificate says so. A ranker of ours is certified
    by its own `measure` and keeps its certificates as `ranker.certificates_`.

    Without data, a stream that `partial_fit` alone has learned is certified from its totals: what its rounds, each
    ranked before it was learned from, were expected to reach, and what the theorems say of them.

    >>> import toprank as tr
    >>> made = tr.datasets.make_separable(n_queries=300, n_docs=5, random_state=0)
    >>> train, test = made.data[:200], made.data[200:]
    >>> ranker = tr.MinimaxPerceptron("map", random_state=0).fit_queries(train)
    >>> first = tr.certify(ranker, test)[0]
    >>> first.verdict, first.n_queries, first.lower > 0.9
    ('holds', 100, True)
    >>> print(tr.certify(ranker, train)[0].meaning)
    nothing can be said of new queries from these: 1,000 of the 1,000 rows that could be compared were learned from
    (queries 0, 1, 2, 3, 4 and 195 more)
    >>> live = tr.SlamPerceptron("map").partial_fit_queries(train)
    >>> [certificate.reference for certificate in tr.certify(live)]
    ['betting, at all times at once', 'Lemma 5']
    >>> anybody = tr.certify(test.X @ ranker.coef_, test, measure="map")
    >>> [(c.lower == first.lower, c.assumptions[1].state) for c in anybody]
    [(True, 'on trust')]
    """
    check_fraction(confidence=confidence)
    if not isinstance(ranker, Ranker):
        if comparator is not None or delta is not None:
            raise InputError("comparator and delta belong to theorems about rankers of toprank: leave them out")
        wanted = parse_measure(measure or "ndcg@10", convention=convention or _convention_for(data))
        return list(certify_anybody(ranker, data, wanted, confidence, baseline or {}))
    if measure is not None or convention is not None:
        raise InputError("a ranker is certified by its own measure: ranker.set_params(measure=...)")
    data = None if data is None else checked_data_set(data)
    proved = ranker.certify(data, comparator, delta=1 - confidence if delta is None else delta)
    if data is None:
        ranker.certificates_ = proved
        return proved
    certificates = [*certify_performance(ranker, data, confidence=confidence, baseline=baseline or {}), *proved]
    ranker.certificates_ = [
        replace(
            certificate, redo=partial(_again, ranker, place, certificate.terms.get("u"), confidence, baseline, delta)
        )
        for place, certificate in enumerate(certificates)
    ]
    return ranker.certificates_


def _convention_for(data: Any) -> str:
    return "standard" if isinstance(data, QueryDataset) else "trec_eval"


def certify_anybody(
    model: Any, data: Any, measure: Measure, confidence: float, baseline: Mapping[str, Any]
) -> list[PerformanceCertificate]:
    """Bound the expected measure of anybody's model, scores or run, and its difference to each baseline."""
    if data is None:
        raise InputError("certify needs judged queries: certify(model, data), or certify(run, qrels)")
    models = {"": model, **baseline}
    worst, weight, unseen = 0.0, None, [ON_TRUST]
    if isinstance(data, QueryDataset):
        copies = copied_queries(data)
        if copies.any():
            unseen.append(Assumption(f"{copies.sum():,} copies of other queries are left out", True))
        reports = {name: evaluate(one, data, [measure]) for name, one in models.items()}
        worst, weight = worst_mean(measure, data.y, data.ptr, data.query_weight), data.query_weight
        values = {name: np.where(copies, np.nan, one.per_query[measure.name]) for name, one in reports.items()}
    else:
        reports = {name: evaluate_run(one, data, [measure]) for name, one in models.items()}
        values = {name: one.per_query[measure.name] for name, one in reports.items()}
    sure = partial(
        performance,
        values[""],
        measure.name,
        confidence=confidence,
        claims=len(models),
        weight=weight,
        unseen=unseen,
    )
    found = [sure(worst=worst), *(sure(against=values[name], name=name) for name in baseline)]

    def again(place: int, other: QueryDataset) -> Certificate:
        return certify_anybody(model, other, measure, confidence, baseline)[place]

    return [replace(one, redo=partial(again, place)) for place, one in enumerate(found)]


def proved(ranker: Ranker, data: QueryDataset | None, comparator: Any, delta: float) -> list[Certificate]:
    """Do what `Ranker.certify` says."""
    check_fraction(delta=delta)
    check_is_fitted(ranker, "model_")
    if data is None:
        if comparator is not None:
            check_positive(comparator=comparator)
        return ranker._certify_stream(comparator, 1 - delta)
    ranker.model_.check_one_score()
    seen = ranker.inputs_.apply(checked_data_set(data), type(ranker).__name__)
    against = None if comparator is None else ranker._as_comparator(comparator)
    try:
        return ranker._certify(seen, learned_here(ranker.learned_from_, data), against, delta)
    except NotInMemoryError as error:
        warnings.warn(f"the theorems about {type(ranker).__name__} are left out: {error}", stacklevel=4)
        return []


def certify_performance(
    ranker: Ranker, data: QueryDataset, *, confidence: float = 0.95, baseline: Mapping[str, Any] | None = None
) -> list[PerformanceCertificate]:
    """Bound the expected measure of a ranker, and its difference to each baseline, from judged queries."""
    judged = ranker._with_labels(data, ranker._later_labels(data.y))
    rivals, unseen = baseline or {}, not_learned_from(ranker.learned_from_, data)
    name, models, worst = str(ranker.measure), (ranker, *rivals.values()), 0.0
    try:
        target = parse_bounded(ranker.measure)
        name = target.name
    except InputError as error:
        unseen = (*unseen, Assumption(f"{error}", False))
    values = [np.full(data.n_queries, np.nan)] * len(models)
    if all(assumption.verified is not False for assumption in unseen):
        copies = copied_queries(judged)
        if copies.any():
            unseen = (*unseen, Assumption(f"{copies.sum():,} copies of other queries are left out", True))
        values = [np.where(copies, np.nan, evaluate(model, judged, [target]).per_query[name]) for model in models]
        worst = worst_mean(target, judged.y, judged.ptr, judged.query_weight)
    sure = partial(
        performance, values[0], name, confidence=confidence, claims=len(models), weight=data.query_weight, unseen=unseen
    )
    others = (sure(against=other, name=rival) for rival, other in zip(rivals, values[1:], strict=True))
    return [sure(worst=worst), *others]


def not_learned_from(seen: Sketch | None, data: QueryDataset) -> tuple[Assumption, ...]:
    """Say whether the queries of `data` took part in learning, as far as can be told from their rows."""
    seen = seen or Sketch.unknown()
    found = seen.compare(data)
    if found.matched > found.explained:
        said = f"{found.matched:,} of the {found.compared:,} rows that could be compared were learned from"
        return (Assumption("none of these queries was learned from", False, f"{said} ({_queries(found.query_ids)})"),)
    unnoticed = Assumption("their features have not been changed since learning: changed rows are not recognised")
    choosing = Assumption("they took no part in choosing it")
    if not seen.complete or not found.compared:
        why = "none of their rows could be compared" if seen.complete else "the model file does not say"
        return (Assumption(f"they took no part in learning: {why}"), choosing)
    said = f"of {found.rows:,} different rows {found.compared:,} could be compared"
    if found.compared == found.rows:
        said = f"all {found.rows:,} different rows were compared"
    seldom = f"more than {100 * found.detectable:.2g}% overlap would have been seen with 99% probability"
    if found.matched:
        chance = f"{found.matched:,} equal rows that were learned from, as equal rows in different queries explain"
        return (Assumption(f"they took no part in learning: {said}, and {chance}"), unnoticed, choosing)
    more = "" if found.compared == found.rows else f": {seldom}"
    return (Assumption(f"{said}, none was learned from{more}", True), unnoticed, choosing)


def learned_here(seen: Sketch | None, data: QueryDataset) -> Assumption:
    """Say whether these rows were learned from, as far as can be told."""
    seen = seen or Sketch.unknown()
    found, compared = seen.learned_all(data)
    if found < compared and not seen.complete:
        return Assumption("it learned from these rows: the model file does not say")
    if not compared:
        return Assumption("it learned from these rows: none of them could be compared")
    return Assumption("it learned from these rows", found == compared, f"{found:,} of {compared:,} that were compared")


def _queries(ids: Sequence[Any]) -> str:
    """Name some queries.

    >>> _queries([7]), _queries(range(7))
    ('query 7', 'queries 0, 1, 2, 3, 4 and 2 more')
    """
    named = ", ".join(str(one) for one in ids[:_NAMED])
    more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
    return f"{'query' if len(ids) == 1 else 'queries'} {named}{more}"


def _again(
    ranker: Ranker,
    place: int,
    u: Any,
    confidence: float,
    baseline: Mapping[str, Any] | None,
    delta: float | None,
    data: QueryDataset,
) -> Certificate:
    """Certify again with the same comparator, and return the certificate at the same place."""
    before = ranker.certificates_
    try:
        return certify(ranker, data, u, confidence=confidence, baseline=baseline, delta=delta)[place]
    finally:
        ranker.certificates_ = before
