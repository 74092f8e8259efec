"""Judgements of people and of a machine, matched by query and document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..certificates.base import Assumption
from ..data.grouping import numbered
from ..data.ids import id_text
from ..data.trec import Qrels, Run, first_repeated
from ..errors import InputError

Unjudged = Literal["refuse", "zero"]
"""What becomes of documents that only one of both judged: they are refused, or not relevant for the other."""


@dataclass(frozen=True, eq=False)
class TwoJudges:
    """The judgements of people and of a machine; the machine judged every query that people did.

    Attributes
    ----------
    people, machine : their judgements.
    queries : the queries that both judged, then those of the machine alone.
    n_people : how many of them people judged.
    query, document : of each document that both judged, the number of its query and its id.
    by_people, by_machine : its grades.
    only_people, only_machine : how many documents of the queries of both just one of them judged.
    """

    people: Qrels
    machine: Qrels
    queries: AnyArray
    n_people: int
    query: Ints
    document: AnyArray
    by_people: Ints
    by_machine: Ints
    only_people: int
    only_machine: int

    @classmethod
    def of(
        cls, people: Qrels | Mapping[str, Mapping[str, int]], machine: Qrels | Mapping[str, Mapping[str, int]]
    ) -> TwoJudges:
        """Match judgements by the text of their ids.

        >>> both = TwoJudges.of({"q": {"a": 2, "b": 0}}, {"q": {"a": 1, "b": 0, "c": 1}, "r": {"a": 1}})
        >>> both.queries.tolist(), both.n_people, both.by_people.tolist(), both.by_machine.tolist(), both.only_machine
        (['q', 'r'], 1, [2, 0], [1, 0], 1)
        """
        first, second = (_graded(Qrels.of(qrels), who) for qrels, who in ((people, "people"), (machine, "the machine")))
        n = len(first.qid)
        query, doc = (
            numbered(np.concatenate(ids)) for ids in ((first.qid, second.qid), (first.doc_ids, second.doc_ids))
        )
        n_people = int(query[:n].max()) + 1
        known = np.zeros(int(query.max()) + 1, dtype=bool)
        known[query[n:]] = True
        if not known[:n_people].all():
            lacking = np.flatnonzero(~known[:n_people])
            name = first.qid[int((query[:n] == lacking[0]).argmax())]
            raise InputError(
                f"people judged {len(lacking):,} queries that the machine did not, such as {name}: let the machine "
                "judge all queries that people judged"
            )
        pair = query * (int(doc.max()) + 1) + doc
        _, at_people, at_machine = np.intersect1d(pair[:n], pair[n:], assume_unique=True, return_indices=True)
        in_order = np.argsort(at_people, kind="stable")
        at_people, at_machine = at_people[in_order], at_machine[in_order]
        names = np.concatenate((first.qid, second.qid))[np.unique(query, return_index=True)[1]]
        return cls(
            people=first,
            machine=second,
            queries=names,
            n_people=n_people,
            query=query[:n][at_people],
            document=first.doc_ids[at_people],
            by_people=first.grades[at_people],
            by_machine=second.grades[at_machine],
            only_people=n - len(at_people),
            only_machine=int((query[n:] < n_people).sum()) - len(at_people),
        )

    @property
    def n_machine(self) -> int:
        """How many queries the machine alone judged."""
        return len(self.queries) - self.n_people

    def same_documents(self, unjudged: Unjudged = "refuse") -> Assumption:
        """Say whether both judged the same documents of the queries of both; a difference is refused, or stated.

        Where it is stated, a document that one of both did not judge is not relevant for that one, whoever it is.
        """
        text = f"people and the machine judged the same documents of the {self.n_people:,} queries of both"
        if not self.only_people and not self.only_machine:
            return Assumption(text, True)
        found = (
            f"{self.only_people:,} documents were judged by people alone and {self.only_machine:,} by the machine alone"
        )
        if unjudged == "refuse":
            raise InputError(
                f"{found}, of the queries of both: let both judge the same documents, or say that a document "
                "that one of them did not judge is not relevant for that one (--unjudged zero, unjudged='zero')"
            )
        return Assumption("a document that people or the machine did not judge is not relevant for them", None, found)


def judged_share(run: Run, qrels: Qrels, queries: AnyArray, k: int) -> Floats:
    """judged@k: of the first k documents of a run, the share that was judged, query by query; NaN without documents.

    >>> run, qrels = Run.of({"q": {"a": 3.0, "b": 2.0, "c": 1.0}}), Qrels.of({"q": {"a": 1, "c": 0}})
    >>> judged_share(run, qrels, np.array(["q"]), 2).tolist()
    [0.5]
    """
    top = run.rank <= k
    qid, doc = run.qid[top], run.doc_ids[top]
    judged = set(zip(qrels.qid.tolist(), qrels.doc_ids.tolist(), strict=True))
    place = {name: i for i, name in enumerate(queries.tolist())}
    hits, seen = np.zeros(len(queries)), np.zeros(len(queries))
    for q, d in zip(qid.tolist(), doc.tolist(), strict=True):
        if q in place:
            seen[place[q]] += 1
            hits[place[q]] += (q, d) in judged
    return np.asarray(np.divide(hits, seen, out=np.full(len(queries), np.nan), where=seen > 0))


def _graded(qrels: Qrels, who: str) -> Qrels:
    """Return the judgements that are some, ids as text; a grade below 0 means not judged."""
    kept = qrels.grades >= 0
    found = Qrels(id_text(qrels.qid[kept]), id_text(qrels.doc_ids[kept]), qrels.grades[kept])
    if not len(found.qid):
        raise InputError(f"there are no judgements of {who}")
    again = first_repeated(found.qid, found.doc_ids)
    if again is not None:
        raise InputError(f"{who} judged document {found.doc_ids[again]} of query {found.qid[again]} twice")
    return found
