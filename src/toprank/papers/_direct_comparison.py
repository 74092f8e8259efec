"""Beyond the paper's tables: tests between the methods, more methods and sets, and the switch between the bounds."""

from __future__ import annotations

from typing import Any

from .._tables import Cell, Table
from ..comparison import compare
from ._direct_folds import (
    CHOSEN_BY,
    FUSION,
    MEASURES,
    METHODS,
    MORE,
    MQ2008,
    OHSUMED,
    OHSUMED_3,
    Place,
    run,
    run_all,
    without,
)
from ._direct_published import FROM_MEMORY, LETOR
from .base import Exhibit


def ttests(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Paired t-tests between the five methods on OHSUMED, MAP and NDCG@1 (Sec. 6.1)."""
    title = "Paired t-tests on OHSUMED (test queries of all folds)"
    results = run(OHSUMED, METHODS, data, checkpoint)
    if results is None:
        return without("ttests", title, OHSUMED)
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
    found = run_all(sets, methods, data, checkpoint)
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
        CHOSEN_BY,
    ]
    table = Table(("set", "method", *MEASURES, "MAP interval"), rows)
    return Exhibit("comparison", "All methods on three LETOR sets", values, table, tuple(notes))


def switch(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """The paper's closing idea: does PermuRank gain from starting at an AdaRank model?"""
    sets, methods = (OHSUMED, OHSUMED_3, MQ2008), ("AdaRank", "PermuRank", "PermuRank from AdaRank")
    found = run_all(sets, methods, data, checkpoint)
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
