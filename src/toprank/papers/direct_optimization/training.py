"""Fig. 11 and Table 4: how training goes round by round, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np

from ..._tables import Cell, Table
from ..._typing import Floats
from ...certificates.boosting import adarank_bounds
from ...data.dataset import QueryDataset
from ...data.synthetic import make_graded
from ...measures.base import Measure
from ...rankers import AdaRank, PermuRank, SVMMap
from ...rankers.base import Ranker
from ..exhibits import Exhibit, Panel, Said, judge, panels
from ..experiments import Methods, Place, homes
from .methods import ADARANK, OHSUMED, PERMURANK, ROUNDS

PATH = (1.0, 10.0, 100.0)  # values of C for those that have one: as many settings for each
CLOSE = 0.002  # a curve has converged where it stays this close to its last value


def _training_part(data: Place) -> tuple[QueryDataset, Measure]:
    ((letor, home),) = homes([OHSUMED], data).items()
    return letor.fold(home, 1).train, letor.measure("map")


def converged_after(curve: Floats) -> int:
    """Return the first round from which on a curve stays close to its end.

    >>> converged_after(np.array([0.1, 0.3, 0.4, 0.4]))
    3
    """
    away = np.flatnonzero(np.abs(curve - curve[-1]) > CLOSE)
    return 1 if not len(away) else int(away[-1]) + 2


def fig11(*, data: Place = None) -> Exhibit:
    """Fig. 11: training MAP of AdaRank and PermuRank round by round on OHSUMED, with Theorem 4's bound."""
    train, measure = _training_part(data)
    curves: dict[str, Floats] = {}
    for name, rule in ((ADARANK, "paper"), ("AdaRank, rule improve", "improve")):
        ranker = AdaRank(measure, rounds=ROUNDS["AdaRank"], rule=rule).fit_queries(train)  # type: ignore[arg-type]
        curves[name] = ranker.trace_["measure"]
        curves[f"bound of {name}"] = adarank_bounds(ranker.trace_["phi"], ranker.trace_["delta"], ranker.alphas_)
    permu = PermuRank(measure, rounds=ROUNDS["AdaRank"], C=100.0, pairs="all", average=False, tol=1e-3)
    curves[PERMURANK] = permu.fit_queries(train).trace_["measure"]
    sizes = float(permu.trace_["perfect"][-1] + permu.trace_["imperfect"][-1])
    styles = {label: ":" for label in curves if "bound" in label}
    shown = {label: (np.arange(1, len(v) + 1), v, None) for label, v in curves.items()}
    drawn = Panel(shown, (), "round", "training MAP", styles=styles, ylim=(0, 0.6))
    rows = [(label, len(v), float(v[0]), float(v.max()), float(v[-1])) for label, v in curves.items()]
    notes = (
        "All curves are of the same training queries. The bound of Theorem 4 falls below 0 as soon as some query loses "
        "from a round: it then says nothing.",
        f"PermuRank: {permu.solution_.message}.",
    )
    table = Table(("curve", "rounds", "first", "largest", "last"), rows)
    title, values = "Fig. 11: training curves on OHSUMED, fold 1", {"curves": curves, "working_set": sizes}
    return Exhibit("fig11", title, values, table, notes, panels(drawn), _trained(curves, sizes))


@judge
def _trained(curves: Mapping[str, Floats], sizes: float) -> Said:
    for name in (ADARANK, PERMURANK):
        after, rounds = converged_after(curves[name]), len(curves[name])
        text = f"The training MAP of {name} converges after 40 to 100 rounds."
        told = f"It stays within {CLOSE} of its last value from round {after} of {rounds} on."
        yield text, 40 <= after <= min(100, rounds - 10), told
    ada, bound = curves[ADARANK], curves[f"bound of {ADARANK}"]
    up, down = int((np.diff(ada) > 1e-12).sum()), int((np.diff(ada) < -1e-12).sum())
    told = f"{up} rounds up, {down} down; from {ada[0]:.4f} to {ada[-1]:.4f}."
    yield f"The training MAP of {ADARANK} steadily improves.", bool(down == 0 and ada[-1] > ada[0]), told
    kept = (ada >= bound - 1e-9)[bound > 0]
    text = "Theorem 4: the training MAP is at least 1 − Π e^(−δ)√(1 − φ²)."
    told = f"That is above 0 in {len(kept)} of {len(bound)} rounds, and kept in {kept.sum()} of these."
    yield text, bool(kept.all()) if len(kept) else None, told
    small = int(((1 - bound) <= np.append(1, 1 - bound[:-1])).sum())
    text = "The factor e^(−δ)√(1 − φ²) of a round is usually not larger than 1."
    yield (
        text,
        small > len(bound) / 2,
        f"It is at most 1 in {small} of {len(bound)} rounds; read as: in more than half.",
    )
    text = "PermuRank's working sets have 40 to 100 rankings a query at the end."
    yield text, 40 <= sizes <= 100, f"{sizes:.1f}."


_KINDS: Methods = {
    "AdaRank": lambda m: [AdaRank(m, rounds=ROUNDS["AdaRank"], rule="paper") for _ in PATH],
    "PermuRank": lambda m: [PermuRank(m, rounds=ROUNDS["PermuRank"], C=C, pairs="all", average=False) for C in PATH],
    "SVMmap": lambda m: [SVMMap(m, C=C, tol=1e-3) for C in PATH],
}
_CLOCKS = ("CPU seconds", "seconds")


def table4(*, data: Place = None, turns: int = 5) -> Exhibit:
    """Table 4: the direct methods compared: what three settings cost, and AdaRank's own order of cost."""
    train, measure = _training_part(data)
    for make in _KINDS.values():
        make(measure)[0].fit_queries(train[:4])  # compiled before the clock starts
    spent = [{name: _cost(make(measure), train) for name, make in _KINDS.items()} for _ in range(turns)]
    cost = {name: {what: [turn[name][what] for turn in spent] for what in _CLOCKS} for name in _KINDS}
    growth = {what: _exponent(name, first) for what, (name, first, _) in _GROWTH.items()}
    rows: list[list[Cell]] = [["measure", "any in [0, 1]", "any in [0, 1]", "MAP (NDCG of 0/1 gains)"]]
    rows += [[f"{what}, three fits on fold 1", *(_span(cost[m][what]) for m in _KINDS)] for what in _CLOCKS]
    notes = (
        "Kernels are compiled before the clock starts. AdaRank has no C: it is fitted three times, as often as the "
        f"others. Seconds are from {turns} runs, the methods taking turns, and depend on the machine.",
    )
    values, table = {"cost": cost, "growth": growth}, Table(("", *_KINDS), rows)
    title, claims = "Table 4: the direct methods compared", _cheap(cost, growth)
    return Exhibit("table4", title, values, table, notes, claims=claims)


def _span(seconds: Sequence[float]) -> str:
    return f"{min(seconds):.2f} to {max(seconds):.2f}"


@judge
def _cheap(cost: Mapping[str, Mapping[str, Sequence[float]]], growth: Mapping[str, float]) -> Said:
    cheap, *others = (cost[m]["CPU seconds"] for m in ("AdaRank", "PermuRank", "SVMmap"))
    told = f"{_span(cheap)} CPU s against PermuRank {_span(others[0])}, SVMmap {_span(others[1])}"
    apart = all(max(cheap) < min(other) for other in others), any(min(cheap) > max(other) for other in others)
    text, sure = "AdaRank learns more cheaply than PermuRank and SVMmap.", apart[0] if any(apart) else None
    yield text, sure, f"{told}{'.' if any(apart) else ': these overlap.'}"
    told = ", ".join(f"{power:.2f} of the {what}" for what, power in growth.items())
    over = [power - _GROWTH[what][2] for what, power in growth.items()]
    text, sure = "AdaRank costs O((k + T)·m·n log n).", max(over) <= 0.15
    # Where the cost grows far less, what does not grow at all is still most of it.
    yield text, sure if min(over) >= -0.35 or not sure else None, f"Doubling sizes, it grows with the power {told}."


def _cost(rankers: Sequence[Ranker], train: QueryDataset) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    for ranker in rankers:
        ranker.fit_queries(train)
    return dict(zip(_CLOCKS, (time.process_time() - cpu, time.perf_counter() - wall), strict=True))


_USUAL = {"n_queries": 800, "n_docs": 50, "n_features": 40}
_GROWTH = {"queries": ("n_queries", 800, 1.0), "documents": ("n_docs", 50, 1.2)}
_GROWTH |= {"features and rounds": ("n_features", 40, 1.0)}
"""What is doubled three times, from where, and how the cost may grow: n log n from 50 to 400 is like n^1.2."""


def _exponent(what: str, first: int) -> float:
    """Return the slope of log CPU seconds in log size."""
    sizes, found = [first * 2**i for i in range(4)], []
    for size in sizes:
        queries, docs, features = {**_USUAL, what: size}.values()
        data = make_graded(queries, n_docs=(docs, docs), n_features=features, random_state=0)
        ranker = AdaRank("map", rounds=features, rule="paper")
        ranker.fit_queries(data[:2])
        found.append(min(_cost([ranker], data)["CPU seconds"] for _ in range(3)))
    return float(np.polyfit(np.log(sizes), np.log(found), 1)[0])
