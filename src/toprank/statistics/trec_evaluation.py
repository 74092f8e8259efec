"""Runs against judgements: what was retrieved is measured, what was judged is what there was to find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data.dataset import QueryDataset
from ..data.grouping import numbered
from ..data.trec import Qrels, Run, first_repeated
from ..errors import InputError
from ..measures import Measure
from .evaluation import Report, evaluate_grouped


@dataclass(frozen=True)
class Judged:
    """Documents that were retrieved, with their grades (−1 where not judged), then those that only were judged."""

    data: QueryDataset
    scores: Floats
    """NaN for documents that the run lacks: they are to be found, and have no rank."""
    missing: int
    """Judged queries that the run does not answer."""
    unjudged: int
    """Queries of the run without judgements: they count nowhere."""

    @classmethod
    def of(cls, run: Run, qrels: Qrels, *, complete: bool) -> Judged:
        """Match documents by query and id."""
        for name, table in (("run", run), ("qrels", qrels)):
            again = first_repeated(table.qid, table.doc_ids)
            if again is not None:
                raise InputError(f"{name}: document {table.doc_ids[again]} stands twice under query {table.qid[again]}")
            if len(table.qid) == 0:
                raise InputError(f"the {name} {'is' if name == 'run' else 'are'} empty: there is nothing to measure")
        n = len(qrels.qid)
        query, doc = (numbered(np.concatenate(ids)) for ids in ((qrels.qid, run.qid), (qrels.doc_ids, run.doc_ids)))
        n_queries = int(query[:n].max(initial=-1)) + 1
        answered = np.zeros(int(query.max(initial=-1)) + 1, dtype=bool)
        answered[query[n:]] = True
        unjudged, missing = int(answered[n_queries:].sum()), n_queries - int(answered[:n_queries].sum())
        counted = answered | complete
        counted[n_queries:] = False  # nothing is known about a query without judgements
        if missing == n_queries:
            raise InputError("the run and the judgements have no query in common: are the ids written the same way?")
        pair = query * (int(doc.max(initial=0)) + 1) + doc
        by_pair = np.argsort(pair[:n])
        judged = by_pair[np.minimum(np.searchsorted(pair[:n][by_pair], pair[n:]), n - 1)]
        found = pair[judged] == pair[n:]
        lacking = np.ones(n, dtype=bool)
        lacking[judged[found]] = False
        rows, ptr, chosen = _grouped(np.concatenate((query[n:], query[:n][lacking])), counted)
        grades = np.concatenate((np.where(found, qrels.grades[judged], -1), qrels.grades[lacking]))
        names = qrels.qid[np.unique(query[:n], return_index=True)[1]]
        data = QueryDataset(
            X=np.empty((len(rows), 0)),
            y=grades[rows].astype(np.float64),
            ptr=ptr,
            query_ids=names[chosen],
            doc_ids=np.concatenate((run.doc_ids, qrels.doc_ids[lacking]))[rows],
        )
        scores = np.concatenate((run.scores, np.full(int(lacking.sum()), np.nan)))[rows]
        return cls(data, scores, missing, unjudged)


def evaluate_run(
    run: Run | Mapping[str, Mapping[str, float]],
    qrels: Qrels | Mapping[str, Mapping[str, int]],
    measures: str | Measure | Sequence[str | Measure] = ("ndcg@10", "map"),
    convention: str = "trec_eval",
    *,
    complete: bool = True,
) -> Report:
    """Measure a run against judgements, as trec_eval does; both may be dictionaries by query and document.

    Documents that were not judged, or judged below 0, are not relevant (bpref and judged@k know them). Judged documents
    that were not retrieved count as what there was to find: in the ideal order of NDCG, the divisor of average
    precision, the base of recall. A judged query that the run does not answer counts as an empty list (trec_eval's
    `-c`), or not at all with `complete=False`; queries of the run without judgements are left out. `counts` and the
    printed line say how many there are of both. Queries come in the order of the judgements, so that reports of several
    runs on the same queries can be compared.

    >>> run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 0, "b": 1, "c": 1}, "z": {"a": 1}}
    >>> evaluate_run(run, qrels, ["map", "recall@10"]).mean
    {'map': 0.125, 'recall@10': 0.25}
    >>> print(evaluate_run(run, qrels, "map").summary())
    convention trec_eval; 2 queries, 1 of them not answered (counted as 0), ...
    >>> evaluate_run(run, qrels, ["map"], complete=False).mean
    {'map': 0.25}
    """
    judged = Judged.of(Run.of(run), Qrels.of(qrels), complete=complete)
    report = evaluate_grouped(judged.scores, judged.data, measures, convention, of_run=True)
    for measure in report.measures:
        if not measure.for_runs:
            raise InputError(
                f"{measure.name} is not defined for runs, where judged documents may be missing from the list"
            )
    cut = max((m.k for m in report.measures if m.k is not None), default=0)
    retrieved = np.diff(np.concatenate(([0], np.cumsum(~np.isnan(judged.scores))))[judged.data.ptr])
    return replace(
        report,
        counts={
            **report.counts,
            "short_queries": int((retrieved < cut).sum()),
            "missing_queries" if complete else "left_out_queries": judged.missing,
            "unjudged_queries": judged.unjudged,
        },
    )


def _grouped(query: Ints, counted: AnyArray) -> tuple[Ints, Ints, Ints]:
    """Return the rows of the counted queries, query by query, where each begins, and which queries they are."""
    kept = np.flatnonzero(counted[query])
    rows = kept[np.argsort(query[kept], kind="stable")]
    chosen = np.flatnonzero(counted)
    lengths = np.bincount(query[rows], minlength=len(counted))[chosen]
    return rows, np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), chosen
