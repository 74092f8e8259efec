"""Runs against judgements: what was retrieved is measured, what was judged is what there was to find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ._typing import AnyArray, Floats, Ints
from .data.dataset import QueryDataset
from .data.trec import Qrels, Run, codes, repeated
from .errors import InputError
from .evaluation import Report, evaluate_grouped
from .measures import AP, AUC, DCG, MRR, NDCG, MeanNDCG, Measure, Norm, Recall, Short, Ties
from .measures.base import BLANK


@dataclass(frozen=True)
class Judged:
    """Retrieved documents with their grades, and beside them every judged document of the same queries."""

    retrieved: QueryDataset
    scores: Floats
    y: Floats
    ptr: Ints
    missing: int
    """Judged queries that the run does not answer."""
    unjudged: int
    """Queries of the run without judgements: they count nowhere."""

    @classmethod
    def of(cls, run: Run, qrels: Qrels, *, complete: bool) -> Judged:
        """Match documents by query and id; a document that is not judged, or below 0, has grade 0."""
        for name, table in (("run", run), ("qrels", qrels)):
            again = repeated(table.qid, table.doc_ids)
            if again is not None:
                raise InputError(f"{name}: document {table.doc_ids[again]} stands twice under query {table.qid[again]}")
            if len(table.qid) == 0:
                raise InputError(f"the {name} {'is' if name == 'run' else 'are'} empty: there is nothing to measure")
        n = len(qrels.qid)
        query, doc = (codes(np.concatenate(ids)) for ids in ((qrels.qid, run.qid), (qrels.doc_ids, run.doc_ids)))
        n_queries = int(query[:n].max(initial=-1)) + 1
        answered = np.zeros(int(query.max(initial=-1)) + 1, dtype=bool)
        answered[query[n:]] = True
        unjudged, missing = int(answered[n_queries:].sum()), n_queries - int(answered[:n_queries].sum())
        counted = answered | complete
        counted[n_queries:] = False  # nothing is known about a query without judgements
        if missing == n_queries:
            raise InputError("the run and the judgements have no query in common: are the ids written the same way?")
        pair = query * (int(doc.max(initial=0)) + 1) + doc
        y, ptr, _ = _grouped(np.maximum(qrels.grades, 0), query[:n], counted)
        rows, run_ptr, chosen = _grouped(np.arange(len(run.qid)), query[n:], counted)
        by_pair = np.argsort(pair[:n])
        at = np.minimum(np.searchsorted(pair[:n][by_pair], pair[n:][rows]), n - 1)
        judged = by_pair[at]
        found = pair[judged] == pair[n:][rows]
        names = qrels.qid[np.unique(query[:n], return_index=True)[1]]
        retrieved = QueryDataset(
            X=np.empty((len(rows), 0)),
            y=np.where(found, np.maximum(qrels.grades[judged], 0), 0).astype(np.float64),
            ptr=run_ptr,
            query_ids=names[chosen],
            doc_ids=run.doc_ids[rows],
        )
        return cls(retrieved, run.scores[rows], y.astype(np.float64), ptr, missing, unjudged)

    def value(self, measure: Measure, values: Floats) -> Floats:
        """Turn values that know only the retrieved documents into values that know all the judged ones.

        NDCG, average precision and recall divide by what there is to find: the value is rescaled from what was
        retrieved of it to all of it. Where there is nothing to find the measure's own rule for blank queries holds.
        """
        part = _to_find(measure, self.retrieved.y, self.retrieved.ptr)
        whole = _to_find(measure, self.y, self.ptr)
        if part is None or whole is None or not isinstance(measure, (NDCG, AP, Recall, MRR)):
            return values
        share = part / np.where(whole > 0, whole, 1)
        rescaled = np.where(part > 0, values * share, 0.0)
        return np.where(whole > 0, rescaled, BLANK[measure.blank])


def evaluate_run(
    run: Run | Mapping[str, Mapping[str, float]],
    qrels: Qrels | Mapping[str, Mapping[str, int]],
    measures: str | Measure | Sequence[str | Measure] = ("ndcg@10", "map"),
    convention: str = "trec_eval",
    *,
    complete: bool = True,
) -> Report:
    """Measure a run against judgements, as trec_eval does; both may be dictionaries by query and document.

    Documents that were not judged, or judged below 0, have grade 0. Judged documents that were not retrieved count as
    what there was to find: in the ideal order of NDCG, the divisor of average precision, the base of recall. A judged
    query that the run does not answer counts as an empty list (trec_eval's `-c`), or not at all with `complete=False`;
    queries of the run without judgements are left out. `counts` and the printed line say how many there are of both.
    Queries come in the order of the judgements, so that reports of several runs on the same queries can be compared.

    >>> run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 0, "b": 1, "c": 1}, "z": {"a": 1}}
    >>> evaluate_run(run, qrels, ["map", "recall@10"]).mean
    {'map': 0.125, 'recall@10': 0.25}
    >>> print(evaluate_run(run, qrels, "map").summary())
    convention trec_eval; 2 queries, 1 of them not answered (counted as 0), ...
    >>> evaluate_run(run, qrels, ["map"], complete=False).mean
    {'map': 0.25}
    """
    judged = Judged.of(Run.of(run), Qrels.of(qrels), complete=complete)
    report = evaluate_grouped(judged.scores, judged.retrieved, measures, convention=convention)
    for measure in report.measures:
        if isinstance(measure, (MeanNDCG, AUC)):
            raise InputError(
                f"{measure.name} is not defined for runs, where judged documents may be missing from the list"
            )

    def known(per_query: Mapping[str, Floats]) -> dict[str, Floats]:
        pairs = zip(per_query.items(), report.measures, strict=True)
        return {name: judged.value(measure, values) for (name, values), measure in pairs}

    blank = np.maximum.reduceat(judged.y, judged.ptr[:-1]) <= 0  # no query here is without a judged document
    return replace(
        report,
        per_query=known(report.per_query),
        in_file_order=None if report.in_file_order is None else known(report.in_file_order),
        counts={
            **report.counts,
            "blank_queries": int(blank.sum()),
            "missing_queries" if complete else "left_out_queries": judged.missing,
            "unjudged_queries": judged.unjudged,
        },
    )


def _to_find(measure: Measure, y: Floats, ptr: Ints) -> Floats | None:
    """Return, per query, what a measure divides by: best possible DCG or relevant documents; None where it does not."""
    if isinstance(measure, NDCG):
        best = DCG(k=measure.k, gain=measure.gain, discount=measure.discount, ties=Ties.INPUT, short=Short.PAD)
        return best.per_query(y, y, ptr)
    if not isinstance(measure, (AP, Recall, MRR)):
        return None
    relevant = np.add.reduceat(np.append(y > measure.above, 0), ptr[:-1]) * (np.diff(ptr) > 0)
    if isinstance(measure, AP) and measure.norm == Norm.CUT and measure.k is not None:
        relevant = np.minimum(relevant, measure.k)
    if isinstance(measure, MRR):
        relevant = np.minimum(relevant, 1)  # it asks only whether there is anything
    return relevant.astype(np.float64)


def _grouped(values: AnyArray, query: Ints, counted: AnyArray) -> tuple[AnyArray, Ints, Ints]:
    """Return the values of the counted queries, query by query, where each begins, and which queries they are."""
    kept = np.flatnonzero(counted[query])
    order = kept[np.argsort(query[kept], kind="stable")]
    chosen = np.flatnonzero(counted)
    lengths = np.bincount(query[order], minlength=len(counted))[chosen]
    return values[order], np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), chosen
