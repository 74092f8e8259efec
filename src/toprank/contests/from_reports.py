"""Contests held elsewhere, from anybody's reports or TREC runs; and what is certified for every entrant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Floats
from ..certificates.base import Assumption
from ..certificates.performance import performance
from ..certificates.worst import worst_mean
from ..data.dataset import QueryDataset
from ..data.grouping import numbered
from ..data.trec import Qrels, Run
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..rankers.certifying import ON_TRUST
from ..statistics.comparison import Comparison, compare
from ..statistics.fusion import NAMES, Method, fuse
from ..statistics.trec_evaluation import evaluate_run
from .base import Contest, Entrant

if TYPE_CHECKING:
    from ..statistics._paired_tests import Test


def of_comparison(comparison: Comparison, title: str = "Comparison", baseline: str | None = None) -> Contest:
    """Return a comparison of anybody's systems as a contest: values per query, but no documents.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=20, random_state=0)
    >>> reports = {"grades": tr.evaluate(data.y, data), "nothing": tr.evaluate(np.zeros(data.n_docs), data)}
    >>> of_comparison(tr.compare(reports)).best.name
    'grades'
    """
    if not comparison.reports:
        raise InputError("this comparison does not hold the reports it was made of: compare them again")
    main = comparison.measures[0]
    entrants = [Entrant(name, np.empty(0), report) for name, report in comparison.reports.items()]
    return finished(title, None, entrants, comparison, main, baseline)


def of_runs(
    runs: Mapping[str, Run | Mapping[str, Mapping[str, float]]],
    qrels: Qrels | Mapping[str, Mapping[str, int]],
    measures: Sequence[str | Measure] = ("ndcg@10", "map"),
    *,
    convention: str = "trec_eval",
    complete: bool = True,
    fusion: Sequence[Method] = (),
    test: Test = "permutation",
    baseline: str | None = None,
    margin: float | None = None,
    n_resamples: int | None = None,
    random_state: int = 0,
    title: str = "Runs",
) -> Contest:
    """Compare runs on the same judged queries, as `evaluate_run` measures them; the page shows their rankings.

    With `complete=False` only queries that every run answers are compared.

    >>> runs = {"one": {"q": {"a": 2.0, "b": 1.0}}, "two": {"q": {"b": 2.0}}}
    >>> result = of_runs(runs, {"q": {"a": 1, "b": 0}}, ["mrr"])
    >>> [(e.name, e.report.mean["mrr"], e.scores.tolist()) for e in result.entrants]
    [('one', 1.0, [2.0, 1.0]), ('two', 0.0, [-inf, 2.0])]
    """
    judged = Qrels.of(qrels)
    given = {name: Run.of(run) for name, run in runs.items()}
    given |= {NAMES[method]: fuse(list(given.values()), method) for method in fusion}
    if not complete:
        common = set.intersection(*(set(run.qid.tolist()) for run in given.values()))
        given = {name: _within(run, common) for name, run in given.items()}
        kept = np.isin(judged.qid, list(common))
        judged = Qrels(judged.qid[kept], judged.doc_ids[kept], judged.grades[kept])
        if not len(judged.qid):
            raise InputError("no judged query is answered by every run")
    reports = {}
    for name, run in given.items():
        try:
            reports[name] = evaluate_run(run, judged, measures, convention)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
    comparison = compare(
        reports, test, baseline=baseline, margin=margin, n_resamples=n_resamples, random_state=random_state
    )
    data, scores = _pooled(list(given.values()), judged)
    entrants = [Entrant(name, one, reports[name]) for name, one in zip(given, scores, strict=True)]
    entrants.sort(key=lambda entrant: -entrant.report.mean[comparison.measures[0]])
    missing = {name: report.counts["missing_queries"] for name, report in reports.items()}
    notes = tuple(
        f"{name} does not answer {n} of the judged queries, which count 0." for name, n in missing.items() if n
    )
    contest = finished(title, data, entrants, comparison, comparison.measures[0], baseline)
    return replace(contest, notes=(*notes, *contest.notes), warnings=notes)


def finished(
    title: str,
    data: QueryDataset | None,
    entrants: Sequence[Entrant],
    comparison: Comparison,
    main: str,
    against: str | None,
    *,
    unseen: bool | None = None,
    fold: Any = None,
    notes: Sequence[str] = (),
    warnings: Sequence[str] = (),
    chosen_by: str = "",
) -> Contest:
    """Return the contest with what is certified for every entrant; `unseen` says whether nobody learned from `data`."""
    contest = Contest(
        title=title,
        data=data,
        entrants=tuple(entrants),
        comparison=comparison,
        fold=np.zeros(len(entrants[0].report.query_ids), dtype=np.int64) if fold is None else fold,
        notes=tuple(notes),
        warnings=tuple(warnings),
        measure=main,
        chosen_by=chosen_by,
        against=against or "",
    )
    return replace(contest, entrants=_certified(contest, unseen))


def _certified(contest: Contest, unseen: bool | None) -> tuple[Entrant, ...]:
    """Put first among each entrant's certificates what new queries will see of it, and of its gain over `against`.

    All of these hold together with 1 − alpha: each has its share of the error. Measures beyond [0, 1] have none.
    """
    entrants, measure, confidence = contest.entrants, contest.measure, 1 - contest.comparison.alpha
    rival = next((entrant for entrant in entrants if entrant.name == contest.against), None)
    claims = len(entrants) + (0 if rival is None else len(entrants) - 1)
    folds = []
    if contest.n_folds > 1:
        folds = [Assumption(f"the models of the {contest.n_folds} folds count as given; bounded is their mean")]
    certify = partial(performance, measure=measure, confidence=confidence, claims=claims)
    data, result = contest.data, []
    worst = 0.0 if data is None else worst_mean(parse_measure(measure), data.y, data.ptr, data.query_weight)
    for entrant in entrants:
        values, weight = entrant.report.per_query[measure], entrant.report.query_weight
        try:
            known = [*_unseen([entrant], unseen), *folds]
            found = [certify(values, weight=weight, worst=worst, unseen=known)]
            if rival is not None and rival is not entrant:
                other = rival.report.per_query[measure]
                known = [*_unseen([entrant, rival], unseen), *folds]
                found.append(certify(values, against=other, name=rival.name, weight=weight, unseen=known))
        except InputError:  # values beyond [0, 1]
            found = []
        result.append(replace(entrant, certificates=(*found, *entrant.certificates)))
    return tuple(result)


def _unseen(entrants: Sequence[Entrant], unseen: bool | None) -> list[Assumption]:
    """Return what is known of whether those who are judged learned from the test queries."""
    learned = "they took no part in learning or choosing"
    found = [Assumption(learned, unseen)] if any(e.learned_here for e in entrants) else []
    found += [
        ON_TRUST if one.unseen is None else Assumption(f"{one.name}: {learned}", one.unseen)
        for one in entrants
        if not one.learned_here
    ]
    return list(dict.fromkeys(found))


def _within(run: Run, queries: set[str]) -> Run:
    kept = np.isin(run.qid, list(queries))
    return Run(run.qid[kept], run.doc_ids[kept], run.scores[kept])


def _pooled(runs: list[Run], qrels: Qrels) -> tuple[QueryDataset, list[Floats]]:
    """Return the judged and retrieved documents of every judged query, and each run's scores: −∞ if not retrieved."""
    tables: list[Qrels | Run] = [qrels, *runs]
    query, doc = (numbered(np.concatenate([getattr(t, n) for t in tables])) for n in ("qid", "doc_ids"))
    names = np.concatenate([t.doc_ids for t in tables])
    n_queries = int(query[: len(qrels.qid)].max()) + 1
    kept = query < n_queries
    pair = query * (int(doc.max()) + 1) + doc
    _, first, place = np.unique(np.where(kept, pair, -1), return_index=True, return_inverse=True)
    first = first[kept[first]]
    shift = len(np.unique(place)) - len(first)  # the documents of queries that are not judged stand first
    y = np.zeros(len(first))
    y[place[: len(qrels.qid)] - shift] = np.maximum(qrels.grades, 0)
    scores = []
    start = len(qrels.qid)
    for run in runs:
        rows = slice(start, start + len(run.qid))
        one = np.full(len(first), -np.inf)
        one[place[rows][kept[rows]] - shift] = run.scores[kept[rows]]
        scores.append(one)
        start = rows.stop
    data = QueryDataset(
        X=np.empty((len(first), 0)),
        y=y,
        ptr=np.searchsorted(query[first], np.arange(n_queries + 1)).astype(np.int64),
        query_ids=qrels.qid[np.unique(query[: len(qrels.qid)], return_index=True)[1]],
        doc_ids=names[first],
    )
    return data, scores
