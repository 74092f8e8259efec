"""A contest to read: tables for people, plain values for machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from .._checkpoint import plain
from .._tables import Cell, Table, signed
from .._typing import AnyArray
from ..certificates.performance import PerformanceCertificate
from ..measures.base import mean_value
from ..statistics._paired_tests import FEW, TESTS
from ..statistics.comparison import Comparison, Difference, interval_text, p_text
from ..statistics.evaluation import Report
from .base import Contest, Entrant


def means(contest: Contest) -> Table:
    """Return the means, best first, each with its difference to the baseline (or else to the best)."""
    comparison, main = contest.comparison, contest.main
    others = [m for m in comparison.measures if m != main]
    rival = comparison.baseline or contest.best.name
    level = f"{1 - comparison.alpha:.0%}"
    ranking = sorted(contest.entrants, key=lambda entrant: -comparison.means[main][entrant.name])
    rows: list[list[Cell]] = []
    bold = set()
    for r, entrant in enumerate(ranking):
        rows.append(
            [entrant.name, comparison.means[main][entrant.name], interval_text(comparison.interval(entrant.name, main))]
        )
        promise = promised(entrant)
        rows[-1].append(None if promise is None else f"≥ {promise.lower:.4f}")
        rows[-1] += ["", ""] if entrant.name == rival else _against(comparison, main, entrant.name, rival)
        for c, measure in enumerate(others):
            mark = "" if entrant.name == rival else _mark(comparison, measure, entrant.name, rival)
            rows[-1].append(f"{comparison.means[measure][entrant.name]:.4f}{mark}")
            if comparison.means[measure][entrant.name] == max(comparison.means[measure].values()):
                bold.add((r, 6 + c))
    pairs = len(comparison.differences) // len(comparison.measures)
    family = f"{pairs} pairs × {len(comparison.measures)} measure{'s' if len(comparison.measures) > 1 else ''}"
    counts = contest.best.report.counts
    folds = f" of {contest.n_folds} folds" if contest.n_folds > 1 else ""
    cut = f"; search cut short: {contest.cut_short}" if contest.cut_short else ""
    few = f", rough below {FEW} queries" if comparison.n_queries < FEW else ""
    notes = [
        *([_promises(contest)] if promised(contest.best) is not None else []),
        f"p: {TESTS[comparison.test]}, Holm's correction over {family}; "
        f"* where p ≤ {comparison.alpha:g}: the difference to {rival} is shown. Without *, it is not shown, which does "
        "not mean that there is none.",
        f"Intervals: bootstrap (BCa) over queries, {comparison.n_resamples:,} resamples{few}; each by itself, for "
        f"these fitted models. Queries without relevant documents: "
        f"{counts['blank_queries']}; shorter than a cut-off: {counts['short_queries']}.",
        *([fewer] if (fewer := comparison.counts_fewer(len(contest.fold))) else []),
        *([comparison.caution] if comparison.caution else []),
    ]
    return Table(
        ["", main, f"{level} interval", "new queries", f"− {rival}", "p (Holm)", *others],
        rows,
        title=f"{contest.title}: means over {len(contest.fold)} test queries{folds}, "
        f"convention {comparison.convention}{cut}",
        notes=notes,
        bold=bold | {(0, 0), (0, 1)},
    )


def promised(entrant: Entrant) -> PerformanceCertificate | None:
    """Return what is certified about new queries, where anything is."""
    return next((c for c in entrant.certificates if isinstance(c, PerformanceCertificate) and c.mean == c.mean), None)


def gain(entrant: Entrant) -> PerformanceCertificate | None:
    """Return what is certified about the gain over the baseline on new queries."""
    found = [c for c in entrant.certificates if isinstance(c, PerformanceCertificate)]
    return found[1] if len(found) > 1 else None


def _promises(contest: Contest) -> str:
    found = gain(contest.best)
    best = "" if found is None else f" {contest.best.name}: {found.meaning}."
    return (
        f"New queries: bounds on the expected {contest.main}, all together with {1 - contest.comparison.alpha:.0%} "
        f"confidence, if the test queries are an independent sample of those to come.{best}"
    )


def _pair(comparison: Comparison, measure: str, a: str, b: str) -> tuple[float, Difference] | None:
    """Return the difference a − b however it was made; None for a pair that was not compared."""
    for found in comparison.differences:
        if found.measure == measure and {found.a, found.b} == {a, b}:
            return (found.difference if found.a == a else -found.difference), found
    return None


def _against(comparison: Comparison, measure: str, name: str, rival: str) -> list[Cell]:
    pair = _pair(comparison, measure, name, rival)
    if pair is None:
        return ["", ""]
    difference, found = pair
    return [signed(difference), f"{p_text(found.p_holm)}{'*' if found.shown else ''}"]


def _mark(comparison: Comparison, measure: str, name: str, rival: str) -> str:
    pair = _pair(comparison, measure, name, rival)
    return "*" if pair is not None and pair[1].shown else ""


def settings(contest: Contest) -> Table:
    """Return what was chosen, by how much searching."""
    ranking = sorted(contest.entrants, key=lambda entrant: -entrant.report.mean[contest.main])
    rows: list[list[Cell]] = [
        [
            entrant.name,
            f"{np.mean(entrant.valid):.4f}" if entrant.valid else "",
            f"{entrant.tried} of {entrant.planned}" if entrant.planned else "",
            f"{entrant.searched:.1f}" if entrant.planned else "",
            f"{entrant.processor:.1f}" if entrant.planned else "",
            f"{entrant.seconds:.2f}" if entrant.planned else "",
            chosen(entrant.params),
        ]
        for entrant in ranking
        if entrant.params
    ]
    each = ", all folds together" if contest.n_folds > 1 else ""
    return Table(
        [
            "",
            f"valid {contest.chosen_by or contest.main}",
            "settings tried",
            "search, s",
            "processor, s",
            "fit, s",
            "chosen",
        ],
        rows,
        title="What was chosen",
        notes=[
            f"Seconds of learning{each}: of everything that was tried, by the clock and of all processors together, "
            "and of the chosen settings alone. "
            "The validation value is the largest of all that were tried, and flatters: the test queries judge."
        ],
    )


def chosen(params: Sequence[Mapping[str, Any]]) -> str:
    """Return the chosen settings in words: once where all folds agree, else each value with its number of folds.

    >>> chosen([{"alpha": 0.1}, {"alpha": 0.1}]), chosen([{"alpha": 0.1}, {"alpha": 0.01}, {"alpha": 0.1}])
    ('alpha=0.1', 'alpha=0.1 (2 folds), 0.01 (1)')
    """
    names = list(dict.fromkeys(name for fold in params for name in fold))
    parts = []
    for name in names:
        values = Counter(_short(fold[name]) if name in fold else "–" for fold in params)
        (first, times), *rest = values.most_common()
        text = first if not rest else f"{first} ({times} fold{'s' if times > 1 else ''})"
        parts.append(f"{name}={', '.join([text, *(f'{value} ({n})' for value, n in rest)])}")
    return "; ".join(parts) or "defaults"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_dict(contest: Contest, *, per_query: bool) -> dict[str, Any]:
    """Return a contest as plain values."""
    result: dict[str, Any] = {
        "title": contest.title,
        "measure": contest.main,
        "chosen_by": contest.chosen_by or None,
        "best": contest.best.name,
        "queries": len(contest.fold),
        "documents": None if contest.data is None else contest.data.n_docs,
        "folds": contest.n_folds,
        "cut_short": contest.cut_short or None,
        "notes": list(contest.notes),
        "warnings": list(contest.warnings),
        "entrants": [_entrant(contest, entrant, per_query) for entrant in contest.entrants],
        "comparison": contest.comparison.to_dict(),
        "repeats": None if contest.repeats is None else asdict(contest.repeats),
    }
    if per_query:
        result["fold_of_query"] = contest.fold
    found: dict[str, Any] = plain(result)
    return found


def _entrant(contest: Contest, entrant: Entrant, per_query: bool) -> dict[str, Any]:
    report = entrant.report
    parts = [contest.fold == f for f in range(contest.n_folds)]
    return {
        "name": entrant.name,
        **report.to_dict(per_query=per_query),
        "fold_means": {name: [_fold_mean(report, name, part) for part in parts] for name in report.per_query},
        "params": [
            {k: v if v is None or isinstance(v, (bool, int, float, str)) else str(v) for k, v in fold.items()}
            for fold in entrant.params
        ],
        "valid": list(entrant.valid),
        "tried": entrant.tried,
        "planned": entrant.planned,
        "seconds": entrant.seconds,
        "seconds_searched": entrant.searched,
        "seconds_processor": entrant.processor,
        "learned_here": entrant.learned_here,
        "curves": dict(entrant.curves),
        "certificates": [certificate.to_dict() for certificate in entrant.certificates],
    }


def _fold_mean(report: Report, name: str, part: AnyArray) -> float:
    """Return the mean of a measure over some of the queries."""
    weight, unweighted = report.query_weight, report.unweighted(name)
    return mean_value(
        report.per_query[name][part],
        None if weight is None else weight[part],
        None if unweighted is None else unweighted[part],
    )
