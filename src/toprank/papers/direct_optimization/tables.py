"""Tables 2 and 3, Figs. 8 to 13, the tests between methods, and the comparison beyond the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..._tables import Cell, Table
from ...fusion import fuse_scores
from ..exhibits import Claim, Exhibit, bars, claim
from ..experiments import MEASURES, Letor, Place, Results, run, run_all
from .methods import (
    AP,
    BASELINES,
    CHOSEN,
    DIRECT,
    LITERAL,
    MORE,
    OHSUMED,
    OUR_BASELINES,
    OUR_DIRECT,
    OURS,
    PAPER,
    SETS,
    SWITCH,
    TD2003,
    TD2004,
    WIDER,
    WSJ,
    absent,
    without,
)
from .published import FROM_MEMORY, LETOR, TABLE_2, TABLE_3

ALL = {**LITERAL, **OURS}
FUSION = "fusion"
"""Reciprocal-rank fusion of the library's methods."""


def ranks(values: Sequence[float]) -> list[int]:
    """Return the place of each value, the highest first.

    >>> ranks([0.3, 0.5, 0.4])
    [3, 1, 2]
    """
    return [1 + sum(other > value for other in values) for value in values]


def _table(number: int, what: str, published: dict[str, dict[str, float]], data: Place, checkpoint: Place) -> Exhibit:
    found = run_all(SETS, ALL, data, checkpoint)
    columns = ["method"]
    cells: dict[str, list[Cell]] = {method: [method] for method in ALL}
    for results in found:
        columns += [results.letor.label, "published", "difference"]
        reached = {method: results.mean(method, what) for method in ALL}
        place = dict(zip(LITERAL, ranks([reached[method] for method in LITERAL]), strict=True))
        theirs = {method: published[name][results.letor.label] for method, name in PAPER.items()}
        printed = dict(zip(theirs, ranks(list(theirs.values())), strict=True))
        for method in ALL:
            if method in theirs:
                ours, gap = f"{reached[method]:.4f} ({place[method]})", reached[method] - theirs[method]
                cells[method] += [ours, f"{theirs[method]:.4f} ({printed[method]})", f"{gap:+.4f}"]
            else:
                cells[method] += [f"{reached[method]:.4f}", None, None]
    values = {results.letor.label: {m: results.mean(m, what) for m in ALL} for results in found}
    best = max(published, key=lambda name: published[name]["OHSUMED"])
    notes = (
        "Mean over the queries of a fold, then over folds. In brackets: rank among the paper's five methods.",
        CHOSEN,
        *absent(found),
    )
    claims = [
        *(ahead(results, what) for results in found),
        *(first(values[results.letor.label], best, what) for results in found if results.letor == OHSUMED),
        *_undecided(found, f"The direct methods are ahead by {what.upper()}"),
    ]
    title = f"Table {number}: {what.upper()} on the test parts"
    return Exhibit(f"table{number}", title, values, Table(columns, list(cells.values())), notes, claims=tuple(claims))


def ahead(results: Results, what: str) -> Claim:
    """The headline: every direct method is above both baselines."""
    worst, best = _gap(results, DIRECT, BASELINES, what)
    mine, other = _gap(results, OUR_DIRECT, OUR_BASELINES, what)
    return claim(
        f"On {results.letor.label} SVMmap, AdaRank and PermuRank have a higher {what.upper()} than Ranking SVM and "
        "RankBoost.",
        worst > best,
        f"The lowest of the three has {worst:.4f}, the higher baseline {best:.4f}; with the library's own designs "
        f"{mine:.4f} and {other:.4f}.",
    )


def _gap(results: Results, direct: Iterable[str], baselines: Iterable[str], what: str) -> tuple[float, float]:
    return min(results.mean(m, what) for m in direct), max(results.mean(m, what) for m in baselines)


def first(reached: dict[str, float], best: str, what: str) -> Claim:
    """The method that the paper's table has first."""
    top = max(LITERAL, key=lambda method: reached[method])
    return claim(
        f"{best} has the highest {what.upper()} of the five on OHSUMED.",
        PAPER[top] == best,
        f"Here it is {top} with {reached[top]:.4f}.",
    )


def _undecided(found: Sequence[Results], text: str) -> list[Claim]:
    there = [results.letor for results in found]
    return [claim(f"{text} on {s.label}.", None, f"{s.label}: {s.where}.") for s in SETS if s not in there]


def table2(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Table 2: MAP of the five methods to the letter and of ours, beside the paper's."""
    return _table(2, "map", TABLE_2, data, checkpoint)


def table3(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Table 3: NDCG@3 of the five methods to the letter and of ours, beside the paper's."""
    return _table(3, "ndcg@3", TABLE_3, data, checkpoint)


def _accuracies(number: int, letor: Letor, data: Place, checkpoint: Place) -> Exhibit:
    name, title = f"fig{number}", f"Fig. {number}: accuracies on {letor.label}"
    results = run(letor, ALL, data, checkpoint)
    if results is None:
        return without(name, title, letor)
    means = {method: results.means(method) for method in ALL}
    claims = (almost_always(results),) if letor in (OHSUMED, WSJ, AP) else ()

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        bars(axis, MEASURES, {m: means[m].tolist() for m in LITERAL}, "")
        axis.set_ylim(bottom=0.8 * min(values.min() for values in means.values()))

    table = Table(("method", *MEASURES), [[m, *map(float, values)] for m, values in means.items()])
    notes = (f"Convention {letor.convention}; {len(results.tests)} folds. The picture has the paper's five methods.",)
    return Exhibit(name, title, {"measures": MEASURES, "means": means}, table, notes, draw, claims)


def almost_always(results: Results) -> Claim:
    """ "Almost always" is read as nine of ten comparisons of a direct method with a baseline by a measure."""

    def won(direct: Iterable[str], baselines: Iterable[str]) -> tuple[int, int]:
        gaps = [results.means(a) - results.means(b) for a, b in product(direct, baselines)]
        return int(np.sum(np.array(gaps) > 0)), np.size(gaps)

    direct = DIRECT if results.letor == OHSUMED else tuple(m for m in DIRECT if "AdaRank" not in m)
    (good, of), (mine, own) = won(direct, BASELINES), won(OUR_DIRECT, OUR_BASELINES)
    return claim(
        f"On {results.letor.label} the direct methods almost always outperform the baselines.",
        good >= 0.9 * of,
        f"A direct method is above a baseline in {good} of {of} comparisons (five measures); with the library's own "
        f"designs in {mine} of {own}. Read as: in nine of ten.",
    )


def fig8(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 8: MAP and NDCG@1, 3, 5, 10 of all methods on OHSUMED."""
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


def ttests(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Paired t-tests between the paper's five methods, MAP and NDCG@1, on every collection (Sec. 6.1)."""
    found = run_all(SETS, LITERAL, data, checkpoint)
    rows: list[list[Cell]] = []
    claims: list[Claim] = []
    values: list[dict[str, Any]] = []
    for results in found:
        compared = results.compared(LITERAL, "t")
        label = results.letor.label
        kept = [d for d in compared.differences if d.measure in ("map", "ndcg@1")]
        rows += [[label, d.measure, f"{d.a} − {d.b}", f"{d.difference:+.4f}", d.p, d.p_holm] for d in kept]
        values += [
            {"set": label, **{n: getattr(d, n) for n in ("measure", "a", "b", "difference", "p", "p_holm")}}
            for d in kept
        ]
        claims += significance(label, [v for v in values if v["set"] == label])
    table = Table(("collection", "measure", "compared", "difference", "p", "p (Holm)"), rows)
    notes = ("Over the test queries of all folds; p without a correction is the paper's.", *absent(found))
    claims += _undecided(found, "The t-tests agree with the paper's")
    return Exhibit("ttests", "Paired t-tests", {"tests": values}, table, notes, claims=tuple(claims))


def significance(label: str, tests: Sequence[dict[str, Any]]) -> list[Claim]:
    """The two sentences on significance: against the baselines, and among the direct methods."""
    top = [t for t in tests if t["measure"] == "ndcg@1"]
    between = [t for t in top if (t["a"] in DIRECT) != (t["b"] in DIRECT)]
    among = [t for t in top if t["a"] in DIRECT and t["b"] in DIRECT]
    better = [t for t in between if t["p"] < 0.05 and (t["difference"] > 0) == (t["a"] in DIRECT)]
    apart = [t for t in among if t["p"] < 0.05]
    return [
        claim(
            f"On {label} the gains of the direct methods over the baselines in NDCG@1 are significant (p < 0.05).",
            len(better) == len(between),
            f"{len(better)} of {len(between)} are, the smallest p is {min(t['p'] for t in between):.3f}.",
        ),
        claim(
            f"On {label} no significant difference in NDCG@1 exists among the direct methods.",
            not apart,
            f"{len(apart)} of {len(among)} have p < 0.05, the smallest p is {min(t['p'] for t in among):.3f}.",
        ),
    ]


def comparison(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Beyond the paper: all methods, ListNet, perceptrons and a fusion on OHSUMED 2.0, 3.0 and MQ2008."""
    fitted = {**ALL, **MORE}
    found = run_all(WIDER, fitted, data, checkpoint)
    rows: list[list[Cell]] = []
    values: dict[str, Any] = {}
    notes = list(absent(found, WIDER))
    for results in found:
        fused = ("SVMmap", *OURS, "ListNet")
        results.runs[FUSION] = [
            {"scores": fuse_scores([np.array(results.runs[m][f]["scores"]) for m in fused], test.ptr)}
            for f, test in enumerate(results.tests)
        ]
        ours = tuple(OURS)[2]
        tested = results.compared((*fitted, FUSION), baseline=ours)
        values[results.letor.name] = {}
        for method in (*fitted, FUSION):
            means, low_high = results.means(method), tested.interval(method, "map")
            published = LETOR[results.letor.name].get(PAPER.get(method, method), (None,) * len(MEASURES))
            gaps = [None if theirs is None else float(m - theirs) for m, theirs in zip(means, published, strict=True)]
            values[results.letor.name][method] = {"means": means, "published": published, "difference": gaps}
            shown = [f"{m:.4f}" + ("" if gap is None else f" ({gap:+.4f})") for m, gap in zip(means, gaps, strict=True)]
            rows.append([results.letor.label, method, *shown, f"[{low_high[0]:.3f}, {low_high[1]:.3f}]"])
        shown_ones = [d for d in tested.differences if d.p_holm < 0.05]
        notes.append(
            f"{results.letor.label}: against {ours}, {len(shown_ones)} of {len(tested.differences)} differences are "
            "shown at 5% (permutation test, Holm)"
            + "".join(f"; {d.a} − {d.b} {d.measure} {d.difference:+.4f}" for d in shown_ones)
            + "."
        )
    notes += [
        "In brackets after a mean: the difference to the published figure. Interval: 95% of MAP.",
        f"Published figures quoted from memory: {'; '.join(FROM_MEMORY)}.",
        CHOSEN,
    ]
    table = Table(("set", "method", *MEASURES, "MAP interval"), rows)
    return Exhibit("comparison", "All methods on three LETOR sets", values, table, tuple(notes))


def switch(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """The paper's closing idea: does PermuRank gain from starting at an AdaRank model?"""
    ada, permu = tuple(OURS)[:2]
    methods = {ada: OURS[ada], permu: OURS[permu], **SWITCH}
    found = run_all(WIDER, methods, data, checkpoint)
    rows: list[list[Cell]] = []
    notes = list(absent(found, WIDER))
    (late,) = SWITCH
    for results in found:
        rows += [[results.letor.label, m, *map(float, results.means(m))] for m in methods]
        tested = results.compared((permu, late)).difference("map", permu, late)
        notes.append(f"{results.letor.label}: PermuRank − {late} {tested.difference:+.4f}, p = {tested.p:.3f}.")
    values = {results.letor.name: {m: results.means(m) for m in methods} for results in found}
    table = Table(("set", "method", *MEASURES), rows)
    return Exhibit("switch", "Type one first, then type two", values, table, tuple(notes))
