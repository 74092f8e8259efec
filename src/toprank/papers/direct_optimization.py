"""Direct optimisation of ranking measures: its bounds, tables and figures, recomputed.

`toprank reproduce direct-optimization table2 --out DIR` writes one exhibit; every fit is kept in DIR, so an interrupted
run goes on where it was, and exhibits share their fits. Hyper-parameters are chosen by MAP on the validation part, the
designs of the methods as `choices` tells. Collections that are absent are named in the notes and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._tables import Cell, Table
from .._typing import Floats
from ..certificates.boosting import adarank_bounds
from ..rankers.boosting import AdaRank
from ..rankers.direct import PermuRank
from ..surrogates.pairwise import misordered_pairs, pair_counts
from ._direct_bounds import fig1, fig2, fig3, fig4
from ._direct_choices import choices
from ._direct_comparison import comparison, switch, ttests
from ._direct_folds import (
    AP,
    CHOSEN_BY,
    MEASURES,
    METHODS,
    OHSUMED,
    TD2003,
    TD2004,
    WSJ,
    Letor,
    Place,
    Results,
    run,
    run_all,
    without,
)
from ._direct_published import TABLE_2, TABLE_3
from .base import Exhibit

SETS = (OHSUMED, WSJ, AP, TD2003, TD2004)
"""The collections of the paper, in the order of its tables."""


def _absent(found: Sequence[Results]) -> tuple[str, ...]:
    missing = [letor for letor in SETS if letor not in [results.letor for results in found]]
    elsewhere = [letor.label for letor in missing if letor in (WSJ, AP)]
    absent = [letor.label for letor in missing if letor not in (WSJ, AP)]
    notes = [f"Left out, not among the data: {', '.join(absent)}."] if absent else []
    return (*notes, *([f"Left out, never published as feature files: {', '.join(elsewhere)}."] if elsewhere else []))


def _table(
    name: str, number: int, what: str, published: dict[str, dict[str, float]], data: Place, checkpoint: Place
) -> Exhibit:
    found = run_all(SETS, METHODS, data, checkpoint)
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
        CHOSEN_BY,
        *_absent(found),
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
    found = run_all(SETS, METHODS, data, checkpoint)
    seconds = {m: float(np.mean([r["seconds"] for results in found for r in results.runs[m]])) for m in methods}
    reached = {m: float(np.mean([results.means(m)[0] for results in found])) for m in methods}
    rows: list[list[Cell]] = [
        ["measure", "any in [0, 1]", "MAP, NDCG, NDCG@k", "MAP (NDCG, NDCG@k of 0/1 gains)"],
        ["seconds per fold, all settings", *(f"{seconds[m]:.2f}" for m in methods)],
        ["MAP", *(f"{reached[m]:.4f}" for m in methods)],
    ]
    notes = ("Seconds depend on the machine.", *_absent(found))
    values = {"seconds": seconds, "map": reached}
    return Exhibit("table4", "Table 4: the direct methods compared", values, Table(("", *methods), rows), notes)


def _accuracies(number: int, letor: Letor, data: Place, checkpoint: Place) -> Exhibit:
    name, title = f"fig{number}", f"Fig. {number}: accuracies on {letor.label}"
    results = run(letor, METHODS, data, checkpoint)
    if results is None:
        return without(name, title, letor)
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


def fig12(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 12: the same on WSJ, which was never published as feature files."""
    return _accuracies(12, WSJ, data, checkpoint)


def fig13(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 13: the same on AP, which was never published as feature files."""
    return _accuracies(13, AP, data, checkpoint)


def fig11(*, data: Place = None) -> Exhibit:
    """Fig. 11: training MAP of AdaRank and PermuRank round by round on OHSUMED, with Theorem 4's bound."""
    title, home = "Fig. 11: training curves on OHSUMED, fold 1", OHSUMED.home(data)
    if home is None:
        return without("fig11", title, OHSUMED)
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
        return without("fig14", title, OHSUMED)
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
        return without(name, title, OHSUMED)
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
    "fig12": fig12,
    "fig13": fig13,
    "fig14": fig14,
    "fig15": fig15,
    "fig16": fig16,
    "ttests": ttests,
    "comparison": comparison,
    "switch": switch,
    "choices": choices,
}
