"""A report on a judge to read: tables, and what follows from them in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._tables import Cell, Table, signed
from ..certificates.judged import ENOUGH_FOR_DIFFERENCES
from ..certificates.performance import Interval
from ..statistics.comparison import interval_text, p_text
from .favour import POWER

if TYPE_CHECKING:
    from .agreement import Agreement
    from .report import JudgeReport

LISTED = 10
"""Pairs of systems, queries and documents that a table lists; JSON has all."""


def all_tables(report: JudgeReport) -> tuple[Table, ...]:
    """Return agreement, systems, favourites, suggestions, and what to look at."""
    made = [confusion(report)]
    if report.measured is not None:
        made.append(systems(report))
        made += [favourites(report)] if report.favours else []
        made += [further_queries(report)] if report.suggestions else []
        made += [over_baseline(report)] if report.gains else []
    return (*made, *apart(report))


def confusion(report: JudgeReport) -> Table:
    """Return how many documents people gave the grade of the row, and the machine that of the column."""
    a = report.agreement
    rows = [[f"people {g}", *row] for g, row in zip(a.grades.tolist(), a.confusion.tolist(), strict=True)]
    return Table(
        ["", *(f"{report.judge} {g}" for g in a.grades.tolist())],
        rows,
        title=f"Grades of {int(a.confusion.sum()):,} documents of {report.n_people:,} queries that both judged",
        notes=[
            f"{_kappa(a, 4).capitalize()} (squared differences; 95% bootstrap over queries); "
            f"equal grades {a.exact:.1%}, higher by {report.judge} {a.higher:.1%}.",
            "Agreement is of documents. What the grades are worth for measuring systems is about queries: that is what "
            "bias, favourites and bounds say, for which runs are needed.",
        ],
        bold={(i, i + 1) for i in range(len(rows))},
    )


def _kappa(a: Agreement, digits: int) -> str:
    if a.kappa != a.kappa:
        return "no weighted kappa, as both gave one grade alone"
    low, high = a.interval
    return f"weighted kappa {a.kappa:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def systems(report: JudgeReport) -> Table:
    """Return each system by people and by the machine, the bias, and what both bound; best by people first."""
    m = report.measured
    assert m is not None
    order = sorted(range(len(m.systems)), key=lambda i: -report.biases[i].people)
    rows: list[list[Cell]] = []
    for i in order:
        b, c = report.biases[i], report.certificates[i]
        shown = c.assumptions_hold
        rows.append(
            [
                b.system,
                b.people,
                b.machine,
                signed(b.bias),
                interval_text(b.interval, sign=True),
                f"≥ {c.people.lower:.4f}" if shown else "–",
                f"≥ {c.lower:.4f}" if shown and c.with_machine else "–",
                f"{m.judged_by_people[i]:.2f}/{m.judged_by_machine[i]:.2f}",
            ]
        )
    first = report.certificates[0]
    assumed = "; ".join(map(str, first.assumptions))
    level = f"{100 * first.confidence:g}%"
    return Table(
        ["", "people", report.judge, "bias", "95% interval", "people alone", "with both", f"judged@{m.k}"],
        rows,
        title=f"{m.measure} on the {report.n_people:,} queries that both judged",
        notes=[
            f"Bias: {report.judge} − people; interval: what the sign-flip test does not reject, each by itself. "
            f"judged@{m.k}: by people on their queries, by {report.judge} on all.",
            f"People alone, with both: lower bounds on the mean by people's grades, each column together with {level} "
            "confidence, for any judge; which of both counts is said before any value is seen. "
            f"Assumed: {assumed}.",
        ],
    )


def favourites(report: JudgeReport) -> Table:
    """Return the pairs of systems between which the machine differs most from people, those that are shown first."""
    first = sorted(report.favours, key=lambda f: (not f.shown, -abs(f.favour)))
    shown = sum(f.shown for f in first)
    more = f"; the {LISTED} largest" if len(first) > LISTED else ""
    return Table(
        ["compared", "favour", "interval", "p (Holm)", "verdict"],
        [
            [f"{f.a} − {f.b}", signed(f.favour), interval_text(f.interval, sign=True), p_text(f.p_holm), f.verdict]
            for f in first[:LISTED]
        ],
        title=f"Is {report.judge} kinder to one system than to another? Shown for {shown:,} of {len(first):,} "
        f"pairs{more}",
        notes=[
            "Favour: the difference of two systems by the machine less that by people, on the same queries; paired "
            "sign-flip test, Holm's correction over all pairs. Not shown does not mean that there is none."
        ],
        bold={(r, 4) for r, f in enumerate(first[:LISTED]) if f.shown},
    )


def over_baseline(report: JudgeReport) -> Table:
    """Return the bounds on each system's difference to the baseline, and what the normal law says beside them."""
    rows = []
    for name, c in report.gains.items():
        ends = (c.people, Interval(c.lower, c.mean, c.upper), c.approximate)
        told = [interval_text((i.lower, i.upper), sign=True) for i in ends]
        rows.append([name, told[0], told[1] if c.with_machine else "–", told[2]])
    return Table(
        ["difference to the baseline", "people alone", "with both", "normal law, approximate"],
        rows,
        title="What both judges say of differences",
        notes=[
            f"Bounds hold together with those on the means, for any judge; differences lie in twice the range, so "
            f"{report.judge} takes part from {ENOUGH_FOR_DIFFERENCES} queries on that people judged. The normal law is "
            "narrower and promises nothing."
        ],
    )


def further_queries(report: JudgeReport) -> Table:
    """Return how many more queries people must judge to show what the machine suggests."""
    rows = []
    for s in sorted(report.suggestions, key=lambda s: -abs(s.machine))[:LISTED]:
        more = "no number" if s.needed is None else f"{max(0, s.needed - report.n_people):,}"
        rows.append([f"{s.a} − {s.b}", signed(s.machine), signed(s.people), "yes" if s.agree else "no", more])
    return Table(
        ["compared", report.judge, "people", "same sign", "further queries"],
        rows,
        title="How many more queries people would have to judge to show what the machine suggests",
        notes=[
            f"For a chance of {POWER:.0%} at 5% divided by the number of these pairs, from the spread of people's "
            "differences, by the normal law, if the machine's difference is the true one. 0 means that the queries "
            "judged so far should be enough, not that they have shown it."
        ],
    )


def apart(report: JudgeReport) -> list[Table]:
    """Return the queries and documents on which both differ most, and the queries to judge next."""
    made = []
    if report.queries_apart:
        what = (
            "mean |difference| of grades"
            if report.measured is None
            else f"mean |difference| of {report.measured.measure}"
        )
        made.append(
            Table(["query", what], [list(row) for row in report.queries_apart[:LISTED]], title="Queries furthest apart")
        )
    if report.documents_apart:
        rows: list[list[Cell]] = [list(row) for row in report.documents_apart[:LISTED]]
        made.append(Table(["query", "document", "people", report.judge], rows, title="Documents furthest apart"))
    if report.next_queries:
        note = "Drawn at random from the others: judged in this order, people's queries stay a random sample."
        made.append(Table(["query"], [[q] for q in report.next_queries[:LISTED]], title="To judge next", notes=[note]))
    return made


def sentences(report: JudgeReport) -> tuple[str, ...]:
    """Return what follows, most important last: agreement, bias, order, favourites, the bound on the best system."""
    a, m = report.agreement, report.measured
    said = [
        f"{report.judge} gives the grade of people to {a.exact:.0%} of the documents that both judged, a higher one to "
        f"{a.higher:.0%} ({_kappa(a, 2)})."
    ]
    if m is None:
        return tuple(said)
    bias = np.array([b.bias for b in report.biases])
    spread = f" ({signed(float(bias.min()), 3)} to {signed(float(bias.max()), 3)} by system)" if len(bias) > 1 else ""
    said.append(f"By its grades {m.measure} is {signed(float(bias.mean()), 3)} higher on average{spread}.")
    if len(m.systems) > 1:
        said.append(f"It orders {m.orders_alike():.0%} of the pairs of systems as people do, on the queries of both.")
        shown = [f for f in report.favours if f.shown]
        most = max(shown, key=lambda f: abs(f.favour), default=None)
        which = "" if most is None else f"; most: {most.verdict} ({most.a} − {most.b}: {signed(most.favour, 3)})"
        pairs = f"{len(shown):,} of {len(report.favours):,} pairs"
        said.append(f"That it favours one system over another is shown for {pairs}{which}.")
    best = int(np.argmax([b.people for b in report.biases]))
    said.append(f"{m.systems[best]}: {report.certificates[best].meaning}.")
    return tuple(said)


def gains(report: JudgeReport) -> tuple[str, ...]:
    """Return what is certified of each system's difference to the baseline, a sentence each."""
    return tuple(f"{name}: {certificate.meaning}." for name, certificate in report.gains.items())
