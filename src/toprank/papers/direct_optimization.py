"""Direct optimisation of ranking measures: its bounds, tables and figures, recomputed.

`toprank reproduce direct-optimization table2 --out DIR` writes one exhibit; every fit is kept in DIR, so an interrupted
run goes on where it was, and exhibits share their fits. Hyper-parameters are chosen by MAP on the validation part;
`DEVELOPMENT` says what was not. Collections that are absent from the data folder are named in the notes and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._tables import Cell, Table
from .._typing import Floats
from ..certificates.boosting import adarank_bounds
from ..comparison import compare
from ..rankers.boosting import AdaRank
from ..rankers.direct import PermuRank
from ..surrogates.pairwise import misordered_pairs, pair_counts
from ._direct_bounds import fig1, fig2, fig3, fig4
from ._direct_folds import (
    FUSION,
    MEASURES,
    METHODS,
    MORE,
    MQ2008,
    OHSUMED,
    OHSUMED_3,
    TD2003,
    TD2004,
    Letor,
    Results,
    run,
)
from ._direct_published import FROM_MEMORY, LETOR, TABLE_2, TABLE_3
from .base import Exhibit

DEVELOPMENT = (
    "C, alpha, eta, thresholds and rounds are chosen per fold by validation MAP. The methods' designs were not: their "
    "variants (AdaRank's rule, PermuRank's pairs, RankBoost's stumps and how often it looks at the validation part) "
    "were compared on these same folds with the test scores in view, so the figures are not an untouched test."
)

Place = str | Path | None
"""A folder: of the collections (None: TOPRANK_DATA), or of finished pieces (None: none are kept)."""

ELSEWHERE = ("WSJ", "AP")
"""Collections of the paper that were never published as feature files."""


def _absent(letors: Sequence[Letor], found: Sequence[Results]) -> tuple[str, ...]:
    missing = [letor.label for letor in letors if letor not in [results.letor for results in found]]
    notes = [f"Left out, not among the data: {', '.join(missing)}."] if missing else []
    return (*notes, f"Left out, never published as feature files: {', '.join(ELSEWHERE)}.")


def _run_all(letors: Sequence[Letor], methods: Sequence[str], data: Place, checkpoint: Place) -> list[Results]:
    return [results for letor in letors if (results := run(letor, methods, data, checkpoint)) is not None]


def _table(
    name: str, number: int, what: str, published: dict[str, dict[str, float]], data: Place, checkpoint: Place
) -> Exhibit:
    found = _run_all((OHSUMED, TD2003, TD2004), METHODS, data, checkpoint)
    column = MEASURES.index(what)
    columns = ["method"]
    for results in found:
        columns += [results.letor.label, "published", "difference"]
    rows: list[list[Cell]] = []
    for method in METHODS:
        row: list[Cell] = [method]
        for results in found:
            ours, theirs = float(results.means(method)[column]), published[method][results.letor.label]
            row += [ours, theirs, f"{ours - theirs:+.4f}"]
        rows.append(row)
    values = {results.letor.label: {m: results.means(m)[column] for m in METHODS} for results in found}
    notes = (
        "Mean over the queries of a fold, then over folds.",
        DEVELOPMENT,
        *_absent((OHSUMED, TD2003, TD2004), found),
    )
    return Exhibit(name, f"Table {number}: {what.upper()} on the test parts", values, Table(columns, rows), notes)


def table2(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Table 2: MAP of the five methods, beside the paper's."""
    return _table("table2", 2, "map", TABLE_2, data, checkpoint)


def table3(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Table 3: NDCG@3 of the five methods, beside the paper's."""
    return _table("table3", 3, "ndcg@3", TABLE_3, data, checkpoint)


def table4(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Table 4: the direct methods compared: which measures, how long a fold takes, how well they rank."""
    methods = ("AdaRank", "PermuRank", "SVMmap")
    found = _run_all((OHSUMED, TD2003, TD2004), METHODS, data, checkpoint)
    seconds = {m: float(np.mean([r["seconds"] for results in found for r in results.runs[m]])) for m in methods}
    reached = {m: float(np.mean([results.means(m)[0] for results in found])) for m in methods}
    rows: list[list[Cell]] = [
        ["measure", "any in [0, 1]", "MAP, NDCG, NDCG@k", "MAP (NDCG, NDCG@k of 0/1 gains)"],
        ["seconds per fold, all settings", *(f"{seconds[m]:.2f}" for m in methods)],
        ["MAP", *(f"{reached[m]:.4f}" for m in methods)],
    ]
    notes = ("Seconds depend on the machine.", *_absent((OHSUMED, TD2003, TD2004), found))
    values = {"seconds": seconds, "map": reached}
    return Exhibit("table4", "Table 4: the direct methods compared", values, Table(("", *methods), rows), notes)


def _accuracies(number: int, letor: Letor, data: Place, checkpoint: Place) -> Exhibit:
    name, title = f"fig{number}", f"Fig. {number}: accuracies on {letor.label}"
    results = run(letor, METHODS, data, checkpoint)
    if results is None:
        return Exhibit(name, title, {}, notes=(f"{letor.label} is not among the data: nothing was computed.",))
    means = {method: results.means(method) for method in METHODS}

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        at = np.arange(len(MEASURES))
        for i, (method, values) in enumerate(means.items()):
            axis.bar(at + 0.16 * (i - 2), values, 0.16, label=method)
        axis.set_xticks(at, MEASURES)
        axis.set_ylim(bottom=0.8 * min(values.min() for values in means.values()))
        axis.legend(fontsize=8)

    table = Table(("method", *MEASURES), [[m, *map(float, values)] for m, values in means.items()])
    notes = (f"Convention {letor.convention}; {len(results.tests)} folds.",)
    return Exhibit(name, title, {"measures": MEASURES, "means": means}, table, notes, draw)


def fig8(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 8: MAP and NDCG@1, 3, 5, 10 of the five methods on OHSUMED."""
    return _accuracies(8, OHSUMED, data, checkpoint)


def fig9(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 9: the same on TD2003."""
    return _accuracies(9, TD2003, data, checkpoint)


def fig10(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 10: the same on TD2004."""
    return _accuracies(10, TD2004, data, checkpoint)


def _without(name: str, title: str, letor: Letor) -> Exhibit:
    return Exhibit(name, title, {}, notes=(f"{letor.label} is not among the data: nothing was computed.",))


def fig11(*, data: Place = None) -> Exhibit:
    """Fig. 11: training MAP of AdaRank and PermuRank round by round on OHSUMED, with Theorem 4's bound."""
    title, home = "Fig. 11: training curves on OHSUMED, fold 1", OHSUMED.home(data)
    if home is None:
        return _without("fig11", title, OHSUMED)
    train, measure = OHSUMED.fold(home, 1).train, OHSUMED.measure("map")
    curves: dict[str, Floats] = {}
    for rule in ("improve", "paper"):
        ranker = AdaRank(measure, rounds=100, rule=rule).fit_queries(train)
        curves[f"AdaRank, rule {rule}"] = ranker.trace_["measure"]
        trace = ranker.trace_
        curves[f"bound of rule {rule}"] = adarank_bounds(trace["phi"], trace["delta"], ranker.alphas_)
    permu = PermuRank(measure, rounds=100, C=100.0).fit_queries(train)
    curves["PermuRank"] = permu.trace_["measure"]
    sizes = permu.trace_["perfect"][-1] + permu.trace_["imperfect"][-1]

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for label, values in curves.items():
            axis.plot(np.arange(1, len(values) + 1), values, ":" if "bound" in label else "-", label=label)
        axis.set_ylim(0, 0.6)
        axis.set_xlabel("round")
        axis.set_ylabel("training MAP")
        axis.legend(fontsize=8)

    rows = [(label, len(v), float(v[0]), float(v.max()), float(v[-1])) for label, v in curves.items()]
    notes = (
        f"PermuRank's working sets end with {sizes:.1f} rankings a query (the paper: 40 to 100). Its training MAP need "
        "not rise: each round minimises another bound, over more rankings.",
        "The bound of Theorem 4 falls below 0 as soon as some query loses from a round: it then says nothing.",
    )
    table = Table(("curve", "rounds", "first", "largest", "last"), rows)
    return Exhibit("fig11", title, {"curves": curves, "working_set": sizes}, table, notes, draw)


PAIRS = {"d-n": (2, 0), "d-p": (2, 1), "p-n": (1, 0)}
"""Pairs of grades: definitely, partially, not relevant."""


def fig14(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 14: share of test pairs that AdaRank and RankBoost put the wrong way round, by pair of grades."""
    title = "Fig. 14: error rates by pair of grades on OHSUMED"
    results = run(OHSUMED, METHODS, data, checkpoint)
    if results is None:
        return _without("fig14", title, OHSUMED)
    rates: dict[str, dict[str, float]] = {}
    for method in ("AdaRank", "RankBoost"):
        rates[method] = {}
        for label, (high, low) in PAIRS.items():
            wrong = total = 0.0
            for test, fit in zip(results.tests, results.runs[method], strict=True):
                scores, keep = np.array(fit["scores"]), np.isin(test.y, (high, low))
                ptr = np.concatenate(([0], np.cumsum(np.add.reduceat(keep, test.ptr[:-1])))).astype(np.int64)
                against, tied = misordered_pairs(scores[keep], test.y[keep], ptr)
                wrong += float(against.sum() + 0.5 * tied.sum())
                total += float(pair_counts(test.y[keep], ptr).sum())
            rates[method][label] = wrong / total

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for i, (method, values) in enumerate(rates.items()):
            axis.bar(np.arange(3) + 0.35 * (i - 0.5), list(values.values()), 0.35, label=method)
        axis.set_xticks(range(3), list(PAIRS))
        axis.set_ylabel("error rate")
        axis.legend()

    table = Table(("method", *PAIRS), [[method, *values.values()] for method, values in rates.items()])
    return Exhibit("fig14", title, rates, table, ("Tied pairs count one half.",), draw)


def _groups(results: Results) -> tuple[list[str], Any]:
    """Return group names (0-1k, 1k-2k, …) and the group of every test query, by its number of document pairs."""
    pairs = np.concatenate([pair_counts(test.y, test.ptr) for test in results.tests])
    group = np.minimum(pairs // 1000, 10).astype(int)
    return [f"{g}k-{g + 1}k" if g < 10 else "10k and more" for g in range(int(group.max()) + 1)], group


def fig15(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 15: how many queries have how many document pairs."""
    return _by_group("fig15", "Fig. 15: queries by number of document pairs on OHSUMED", data, checkpoint)


def fig16(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 16: MAP of AdaRank and RankBoost for queries with few and with many document pairs."""
    return _by_group("fig16", "Fig. 16: MAP by number of document pairs on OHSUMED", data, checkpoint)


def _by_group(name: str, title: str, data: Place, checkpoint: Place) -> Exhibit:
    results = run(OHSUMED, METHODS, data, checkpoint)
    if results is None:
        return _without(name, title, OHSUMED)
    names, group = _groups(results)
    counts = np.bincount(group, minlength=len(names))
    values = {method: results.values(method, "map") for method in ("AdaRank", "RankBoost")}
    means = {
        method: [float(v[group == g].mean()) if counts[g] else None for g in range(len(names))]
        for method, v in values.items()
    }

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        at = np.arange(len(names))
        if name == "fig15":
            axis.bar(at, counts)
            axis.set_ylabel("queries")
        else:
            for i, (method, row) in enumerate(means.items()):
                axis.bar(at + 0.35 * (i - 0.5), [v or 0.0 for v in row], 0.35, label=method)
            axis.set_ylabel("MAP")
            axis.legend()
        axis.set_xticks(at, names, rotation=45)

    rows = [(label, int(counts[g]), *(row[g] for row in means.values())) for g, label in enumerate(names)]
    table = Table(("document pairs", "queries", *means), rows)
    return Exhibit(name, title, {"groups": names, "queries": counts, "map": means}, table, draw=draw)


def ttests(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Paired t-tests between the five methods on OHSUMED, MAP and NDCG@1 (Sec. 6.1)."""
    title = "Paired t-tests on OHSUMED (test queries of all folds)"
    results = run(OHSUMED, METHODS, data, checkpoint)
    if results is None:
        return _without("ttests", title, OHSUMED)
    found = compare({method: results.pooled(method) for method in METHODS}, "t")
    kept = [d for d in found.differences if d.measure in ("map", "ndcg@1")]
    rows = [(d.measure, f"{d.a} − {d.b}", f"{d.difference:+.4f}", d.p, d.p_holm) for d in kept]
    table = Table(("measure", "compared", "difference", "p", "p (Holm)"), rows)
    small = sum(d.p < 0.05 for d in kept)
    notes = (
        f"{small} of {len(kept)} differences have p < 0.05, {sum(d.p_holm < 0.05 for d in kept)} after Holm's "
        f"correction over all {len(found.differences)} tests.",
    )
    values = [
        {"measure": d.measure, "a": d.a, "b": d.b, "difference": d.difference, "p": d.p, "p_holm": d.p_holm}
        for d in kept
    ]
    return Exhibit("ttests", title, {"tests": values}, table, notes)


def comparison(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Beyond the paper: five methods, ListNet, perceptrons and their fusion on OHSUMED 2.0, 3.0 and MQ2008."""
    sets, methods = (OHSUMED, OHSUMED_3, MQ2008), (*METHODS, *MORE, FUSION)
    found = _run_all(sets, methods, data, checkpoint)
    rows: list[list[Cell]] = []
    values: dict[str, Any] = {}
    notes = [f"Left out, not among the data: {s.label}." for s in sets if s not in [r.letor for r in found]]
    for results in found:
        tested = compare({method: results.pooled(method) for method in methods}, baseline="RankSVM")
        values[results.letor.name] = {}
        for method in methods:
            means, low_high = results.means(method), tested.interval(method, "map")
            published = LETOR[results.letor.name].get(method, (None,) * len(MEASURES))
            gaps = [None if theirs is None else float(m - theirs) for m, theirs in zip(means, published, strict=True)]
            values[results.letor.name][method] = {"means": means, "published": published, "difference": gaps}
            shown = [f"{m:.4f}" + ("" if gap is None else f" ({gap:+.4f})") for m, gap in zip(means, gaps, strict=True)]
            rows.append([results.letor.label, method, *shown, f"[{low_high[0]:.3f}, {low_high[1]:.3f}]"])
        real = [d for d in tested.differences if d.p_holm < 0.05]
        notes.append(
            f"{results.letor.label}: against RankSVM, {len(real)} of {len(tested.differences)} differences are real "
            "(permutation test, Holm)" + "".join(f"; {d.a} − {d.b} {d.measure} {d.difference:+.4f}" for d in real) + "."
        )
    notes += [
        "In brackets after a mean: the difference to the published figure. Interval: 95 % bootstrap of MAP.",
        f"Published figures quoted from memory: {'; '.join(FROM_MEMORY)}.",
        DEVELOPMENT,
    ]
    table = Table(("set", "method", *MEASURES, "MAP interval"), rows)
    return Exhibit("comparison", "All methods on three LETOR sets", values, table, tuple(notes))


def switch(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """The paper's closing idea: does PermuRank gain from starting at an AdaRank model?"""
    sets, methods = (OHSUMED, OHSUMED_3, MQ2008), ("AdaRank", "PermuRank", "PermuRank from AdaRank")
    found = _run_all(sets, methods, data, checkpoint)
    rows: list[list[Cell]] = []
    notes = [f"Left out, not among the data: {s.label}." for s in sets if s not in [r.letor for r in found]]
    for results in found:
        rows += [[results.letor.label, m, *map(float, results.means(m))] for m in methods]
        tested = compare({m: results.pooled(m) for m in methods[1:]}).difference("map", *methods[1:])
        notes.append(
            f"{results.letor.label}: PermuRank − PermuRank from AdaRank {tested.difference:+.4f}, p = {tested.p:.3f}."
        )
    values = {results.letor.name: {m: results.means(m) for m in methods} for results in found}
    table = Table(("set", "method", *MEASURES), rows)
    return Exhibit("switch", "Type one first, then type two", values, table, tuple(notes))


FIGURES: dict[str, Callable[..., Exhibit]] = {
    "fig1": fig1,
    "fig2": fig2,
    "fig3": fig3,
    "fig4": fig4,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "fig8": fig8,
    "fig9": fig9,
    "fig10": fig10,
    "fig11": fig11,
    "fig14": fig14,
    "fig15": fig15,
    "fig16": fig16,
    "ttests": ttests,
    "comparison": comparison,
    "switch": switch,
}
