"""Figs. 14 to 16: why a direct method wins, or whether it does: errors by pair of grades, and by pairs of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...surrogates.pairwise import misordered_pairs, pair_counts
from ..exhibits import Exhibit, Panel, Said, judge, panels
from ..experiments import Place, Results, run
from .methods import ALL, OHSUMED, without

ADARANK, RANKBOOST = "AdaRank (Fig. 6)", "RankBoost (pairs equal)"
SHOWN = (ADARANK, RANKBOOST, "AdaRank, rule improve", "RankBoost (queries equal)")
_METHODS = {name: ALL[name] for name in SHOWN}
PAIRS = {"d-n": (2, 0), "d-p": (2, 1), "p-n": (1, 0)}
"""Pairs of grades: definitely, partially, not relevant."""
SMALL = 6
"""Groups of up to 6,000 pairs are those that the paper calls small."""


def fig14(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 14: share of test pairs that AdaRank and RankBoost put the wrong way round, by pair of grades."""
    title = "Fig. 14: error rates by pair of grades on OHSUMED"
    results = run(OHSUMED, _METHODS, data, checkpoint)
    if results is None:
        return without("fig14", title, OHSUMED)
    rates = {m: {label: _rate(results, m, *grades) for label, grades in PAIRS.items()} for m in SHOWN}
    table = Table(("method", *PAIRS), [[method, *values.values()] for method, values in rates.items()])
    drawn = Panel({m: list(v.values()) for m, v in rates.items()}, list(PAIRS), "", "error", bars=True)
    return Exhibit("fig14", title, rates, table, ("Tied pairs count one half.",), panels(drawn), _fewer(rates))


@judge
def _fewer(rates: Mapping[str, Mapping[str, float]]) -> Said:
    for label in ("d-n", "d-p"):
        ada, boost, ours, theirs = (rates[name][label] for name in SHOWN)
        told = f"{ada:.4f} against {boost:.4f}; the library's own designs {ours:.4f} and {theirs:.4f}."
        yield f"AdaRank makes fewer errors than RankBoost on {label} pairs.", ada < boost, told


def _rate(results: Results, method: str, high: int, low: int) -> float:
    wrong = total = 0.0
    for test, fit in zip(results.tests, results.runs[method], strict=True):
        scores, keep = np.array(fit["scores"]), np.isin(test.y, (high, low))
        ptr = np.concatenate(([0], np.cumsum(np.add.reduceat(keep, test.ptr[:-1])))).astype(np.int64)
        against, tied = misordered_pairs(scores[keep], test.y[keep], ptr)
        wrong += float(against.sum() + 0.5 * tied.sum())
        total += float(pair_counts(test.y[keep], ptr).sum())
    return wrong / total


def fig15(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 15: how many queries have how many document pairs."""
    return _by_group("fig15", "Fig. 15: queries by number of document pairs on OHSUMED", data, checkpoint)


def fig16(*, data: Place = None, checkpoint: Place = None) -> Exhibit:
    """Fig. 16: MAP of AdaRank and RankBoost for queries with few and with many document pairs."""
    return _by_group("fig16", "Fig. 16: MAP by number of document pairs on OHSUMED", data, checkpoint)


def _by_group(name: str, title: str, data: Place, checkpoint: Place) -> Exhibit:
    results = run(OHSUMED, _METHODS, data, checkpoint)
    if results is None:
        return without(name, title, OHSUMED)
    pairs = np.concatenate([pair_counts(test.y, test.ptr) for test in results.tests])
    group = np.minimum(pairs // 1000, 10).astype(int)
    names = [f"{g}k-{g + 1}k" if g < 10 else "10k and more" for g in range(int(group.max()) + 1)]
    counts = np.bincount(group, minlength=len(names))
    values = {method: np.asarray(results.pooled(method).per_query["map"]) for method in SHOWN}
    means = {
        m: [float(v[group == g].mean()) if counts[g] else None for g in range(len(names))] for m, v in values.items()
    }
    rows = [(label, int(counts[g]), *(row[g] for row in means.values())) for g, label in enumerate(names)]
    table = Table(("document pairs", "queries", *means), rows)
    first = name == "fig15"
    shown, label = ({"queries": counts.tolist()}, "queries") if first else (means, "MAP")
    drawn = panels(Panel(shown, names, "", label, bars=True))
    claims = _vary(pairs) if first else _grouped(means, values, group)
    stored = {"groups": names, "queries": counts, "map": means}
    return Exhibit(name, title, stored, table, draw=drawn, claims=claims)


@judge
def _vary(pairs: Floats) -> Said:
    told = f"From {np.min(pairs):,.0f} to {np.max(pairs):,.0f}, median {np.median(pairs):,.0f}; read as: tenfold."
    yield "The numbers of document pairs vary much from query to query.", bool(max(pairs) > 10 * min(pairs)), told


@judge
def _grouped(means: Mapping[str, Sequence[float | None]], values: Mapping[str, Floats], group: Any) -> Said:
    ada, boost = (float(np.mean([v for v in means[m] if v is not None])) for m in (ADARANK, RANKBOOST))
    text = "The mean MAP of AdaRank over the groups is higher than RankBoost's."
    yield text, ada > boost, f"{ada:.4f} against {boost:.4f}."
    gain, small = values[ADARANK] - values[RANKBOOST], group < SMALL
    few, many = float(gain[small].mean()), 0.0 if small.all() else float(gain[~small].mean())
    text = "AdaRank gains most over RankBoost on queries with few document pairs (up to 6,000)."
    yield text, few > max(many, 0.0), f"{few:+.4f} there, {many:+.4f} on the others."
