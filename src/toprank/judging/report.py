"""`tr.judge`: what a machine's grades are worth, beside those of people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations
from typing import Any, get_args

import numpy as np

from .._checkpoint import plain
from .._tables import Shown, Table
from .._typing import Floats
from ..certificates.base import Assumption
from ..certificates.two_judges import JudgedCertificate, Rival, judged_performance, random_sample
from ..data.trec import Qrels, Run
from ..data.validation import check_choice, check_fraction
from ..errors import InputError
from ..measures import Measure
from ..statistics.trec_evaluation import evaluate_run
from . import tables
from .agreement import Agreement, agreement, documents_apart, mean_gaps
from .favour import Bias, Favour, Suggestion, biases, favours, suggestions
from .matching import TwoJudges, Unjudged, judged_share

MOST_DOCUMENTS = 100
"""Documents that are listed of those whose grades differ most."""


@dataclass(frozen=True, eq=False)
class Measured:
    """A measure of several systems by both judges, on the queries of both and on those of the machine alone."""

    measure: str
    systems: tuple[str, ...]
    people: Floats
    """System × query that people judged."""
    machine: Floats
    """System × query, those of both first."""
    judged_by_people: Floats
    """judged@k of each system: the mean share of its first k documents that people judged, on their queries."""
    judged_by_machine: Floats
    """The same of the machine, on all queries."""
    k: int

    @property
    def beside(self) -> Floats:
        """The machine's values on the queries that people judged."""
        return self.machine[:, : self.people.shape[1]]

    def orders_alike(self) -> float:
        """Return the share of pairs of systems whose means both judges order alike, on the queries of both."""
        h, f = self.people.mean(axis=1), self.beside.mean(axis=1)
        alike = [(h[a] - h[b]) * (f[a] - f[b]) > 0 for a, b in combinations(range(len(h)), 2)]
        return float(np.mean(alike)) if alike else float("nan")


@dataclass(frozen=True, eq=False)
class JudgeReport(Shown):
    """What a machine's grades are worth beside people's; printed, tables and what follows from them.

    Attributes
    ----------
    judge : what the machine is called.
    n_people, n_machine : queries that people judged, and those that the machine alone judged.
    agreement : on the grades of documents.
    measured : the measure of every system by both judges; None without runs, as the four below are empty.
    biases : how much higher the machine's grades put each system.
    favours : for every pair of systems, whether the machine is kinder to one.
    suggestions : how many queries people must judge to show the differences that the machine sees.
    certificates : for each system, what both judges together say of the measure by people's grades.
    gains : the same for the difference of each system to the baseline, by its name; empty without a baseline.
    queries_apart : queries by how much both differ on the measure, or on grades without runs, the furthest apart first.
    documents_apart : the 100 documents whose grades differ most: query, document, grades by people and by the machine.
    next_queries : the queries of the machine alone in random order: in this order people should judge them.
    sample, pool : whether people's queries can be a random sample, and both judged the same documents.
    """

    judge: str
    n_people: int
    n_machine: int
    agreement: Agreement
    measured: Measured | None
    biases: tuple[Bias, ...]
    favours: tuple[Favour, ...]
    suggestions: tuple[Suggestion, ...]
    certificates: tuple[JudgedCertificate, ...]
    gains: Mapping[str, JudgedCertificate]
    queries_apart: tuple[tuple[str, float], ...]
    documents_apart: tuple[tuple[str, str, int, int], ...]
    next_queries: tuple[str, ...]
    sample: Assumption | None
    pool: Assumption | None

    def tables(self) -> tuple[Table, ...]:
        """Return everything as tables."""
        return tables.all_tables(self)

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What follows, sentence by sentence."""
        return tables.sentences(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        a, m = self.agreement, self.measured
        values = {
            "judge": self.judge,
            "queries": {"people": self.n_people, "machine_alone": self.n_machine},
            "agreement": {**asdict(a), "grades": a.grades.tolist(), "confusion": a.confusion.tolist()},
            "measure": None if m is None else m.measure,
            "orders_alike": None if m is None or len(m.systems) < 2 else m.orders_alike(),
            "biases": [asdict(one) for one in self.biases],
            "favours": [{**asdict(one), "verdict": one.verdict} for one in self.favours],
            "suggestions": [asdict(one) for one in self.suggestions],
            "queries_apart": [{"query": q, "difference": gap} for q, gap in self.queries_apart],
            "documents_apart": [
                dict(zip(("query", "document", "people", "machine"), row, strict=True)) for row in self.documents_apart
            ],
            "judge_next": list(self.next_queries),
            "sentences": list(self.notes),
        }
        found: dict[str, Any] = plain(values)
        if m is not None:
            found["judged"] = {
                "k": m.k,
                "people": dict(zip(m.systems, m.judged_by_people.tolist(), strict=True)),
                "machine": dict(zip(m.systems, m.judged_by_machine.tolist(), strict=True)),
            }
        found["certificates"] = {
            system: certificate.to_dict()
            for system, certificate in zip(() if m is None else m.systems, self.certificates, strict=True)
        }
        found["gains"] = {system: certificate.to_dict() for system, certificate in self.gains.items()}
        return found


def judge(
    people: Qrels | Mapping[str, Mapping[str, int]],
    machine: Qrels | Mapping[str, Mapping[str, int]],
    runs: Mapping[str, Run | Mapping[str, Mapping[str, float]]] | None = None,
    measure: str | Measure = "ndcg@10",
    *,
    convention: str = "trec_eval",
    judge_name: str = "the machine",
    baseline: str | None = None,
    confidence: float = 0.95,
    target: str | None = None,
    with_machine: bool | None = None,
    unjudged: Unjudged = "refuse",
    random_state: int = 0,
) -> JudgeReport:
    """Say what a machine's judgements are worth beside people's: agreement, bias, favourites and bounds from both.

    The machine judged all queries that people did, and perhaps others. Its grades enter bounds on what people's grades
    would give, which hold whatever the machine says if people's queries are a random sample of all.

    Parameters
    ----------
    people : judgements by people, as `read_qrels` returns them or as dictionaries by query and document.
    machine : judgements by a machine.
    runs : rankings of systems by name; without them there is only agreement.
    measure : the measure that bias and bounds are about; its values lie in [0, 1].
    convention : whose rules the measure follows.
    judge_name : what the machine is called in sentences.
    baseline : the system over which gains are bounded. [default: none; suggestions are about the machine's best]
    confidence : how often all bounds hold together, at least.
    target : bounds are on "these" queries or "new" ones like them. [default: these; new where people judged all]
    with_machine : whether the machine takes part in bounds, said before anything is looked at; None goes by numbers.
    unjudged : "refuse" queries whose documents one of both did not judge, or count these "zero" for that one.
    random_state : seed of the bootstrap, of sign flips and of the queries to judge next.

    >>> people = {"q": {"a": 1, "b": 0}, "r": {"a": 0, "b": 1}}
    >>> machine = {"q": {"a": 1, "b": 0}, "r": {"a": 1, "b": 1}, "s": {"a": 1, "b": 0}}
    >>> runs = {name: {q: dict(zip(order, (2.0, 1.0))) for q in "qrs"} for name, order in (("A", "ab"), ("B", "ba"))}
    >>> found = judge(people, machine, runs, "p@1")
    >>> [round(one.bias, 2) for one in found.biases], found.next_queries, found.n_machine
    ([0.5, 0.0], ('s',), 1)
    """
    check_fraction(confidence=confidence)
    check_choice(get_args(Unjudged), unjudged=unjudged)
    both = TwoJudges.of(people, machine)
    target = ("these" if both.n_machine else "new") if target is None else target
    check_choice(("these", "new"), target=target)
    others = both.queries[both.n_people :]
    shared: dict[str, Any] = {
        "judge": judge_name,
        "n_people": both.n_people,
        "n_machine": both.n_machine,
        "agreement": agreement(both, random_state=random_state),
        "documents_apart": tuple(documents_apart(both, MOST_DOCUMENTS)),
        "next_queries": tuple(map(str, np.random.default_rng(random_state).permutation(others))),
    }
    if not runs:
        return JudgeReport(**shared, **_without_runs(both))
    pool = both.same_documents(unjudged)
    measured = measure_by_both(both, {name: Run.of(run) for name, run in runs.items()}, measure, convention)
    if baseline is not None:
        check_choice(measured.systems, baseline=baseline)
    f = measured.machine.mean(axis=0)
    sample = random_sample(f[: both.n_people], f[both.n_people :], judge_name)
    certified = partial(
        certify_system,
        measured,
        judge_name=judge_name,
        confidence=confidence,
        claims=len(runs) + (0 if baseline is None else len(runs) - 1),
        target=target,
        with_machine=with_machine,
        sample=sample,
        known=(pool,),
    )
    parts = _with_runs(both, measured, baseline, certified, random_state)
    return JudgeReport(**shared, **parts, sample=sample, pool=pool)


def _with_runs(
    both: TwoJudges,
    measured: Measured,
    baseline: str | None,
    certified: Callable[..., JudgedCertificate],
    random_state: int,
) -> dict[str, Any]:
    """Return what is said of systems; `certified` makes the certificate of one, or of its difference to another."""
    systems, h, f = measured.systems, measured.people, measured.machine
    base = int(np.argmax(f.mean(axis=1))) if baseline is None else systems.index(baseline)
    pairs = [(base, other) for other in range(len(systems)) if other != base]
    apart = np.abs(measured.beside - h).mean(axis=0)
    worst = np.argsort(-apart, kind="stable")
    return {
        "measured": measured,
        "biases": tuple(biases(systems, h, measured.beside, random_state=random_state)),
        "favours": tuple(favours(systems, h, measured.beside, random_state=random_state)),
        "suggestions": tuple(suggestions(systems, pairs, h, f, max(1, len(pairs)))),
        "certificates": tuple(certified(i) for i in range(len(systems))),
        "gains": {} if baseline is None else {systems[i]: certified(i, against=base) for _, i in pairs},
        "queries_apart": tuple((str(both.queries[i]), float(apart[i])) for i in worst.tolist()),
    }


def measure_by_both(both: TwoJudges, runs: Mapping[str, Run], measure: str | Measure, convention: str) -> Measured:
    """Measure every run by the grades of people and by those of the machine; a query that it lacks counts 0."""
    rows, name, k = [], str(measure), 10
    for system, run in runs.items():
        try:
            reports = [evaluate_run(run, qrels, [measure], convention) for qrels in (both.people, both.machine)]
        except InputError as error:
            raise InputError(f"{system}: {error}") from None
        (name,) = reports[0].per_query
        k = reports[0].measures[0].k or 10
        rows.append([_in_order(report, name, both.queries) for report in reports])
    h, f = (np.array([pair[side] for pair in rows]) for side in (0, 1))
    shares = [
        [
            float(np.nanmean(judged_share(run, qrels, queries, k)))
            for qrels, queries in ((both.people, both.queries[: both.n_people]), (both.machine, both.queries))
        ]
        for run in runs.values()
    ]
    by_people, by_machine = np.array(shares).T
    return Measured(name, tuple(runs), h[:, : both.n_people], f, by_people, by_machine, k)


def certify_system(
    measured: Measured,
    system: int,
    *,
    judge_name: str,
    confidence: float,
    claims: int,
    target: str,
    with_machine: bool | None,
    sample: Assumption,
    known: tuple[Assumption, ...],
    against: int | None = None,
) -> JudgedCertificate:
    """Certify one system from the values of both judges, or its difference to another one."""

    def values(of: int) -> tuple[Floats, Floats, Floats]:
        n = measured.people.shape[1]
        return measured.people[of], measured.machine[of, :n], measured.machine[of, n:]

    return judged_performance(
        *values(system),
        measured.measure,
        judge_name=judge_name,
        against=None if against is None else Rival(measured.systems[against], *values(against)),
        confidence=confidence,
        claims=claims,
        target=target,
        with_machine=with_machine,
        sample=sample,
        known=known,
    )


def _without_runs(both: TwoJudges) -> dict[str, Any]:
    gaps = mean_gaps(both)
    worst = [i for i in np.argsort(-np.nan_to_num(gaps, nan=-1), kind="stable").tolist() if gaps[i] > 0]
    return {
        "measured": None,
        "biases": (),
        "favours": (),
        "suggestions": (),
        "certificates": (),
        "gains": {},
        "queries_apart": tuple((str(both.queries[i]), float(gaps[i])) for i in worst),
        "sample": None,
        "pool": None,
    }


def _in_order(report: Any, name: str, queries: Any) -> Floats:
    """Return the values of a report in the order of these queries; NaN for one that it does not have."""
    place = dict(zip(report.query_ids.tolist(), report.per_query[name].tolist(), strict=True))
    return np.array([place.get(query, np.nan) for query in queries.tolist()])
