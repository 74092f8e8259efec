"""Fig. 11 and Table 4: how training goes round by round, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._tables import Cell, Table
from ..._typing import Floats
from ...certificates.boosting import adarank_bounds
from ...data.dataset import QueryDataset
from ...data.synthetic import make_graded
from ...measures.base import Measure
from ...rankers import AdaRank, PermuRank, SVMMap
from ...rankers.base import Ranker
from ..exhibits import Claim, Exhibit, claim
from ..experiments import Place
from .methods import OHSUMED, ROUNDS, without

PATH = (1.0, 10.0, 100.0)
"""Values of C for those that have one: as many settings for each."""
CLOSE = 0.002
"""A curve has converged where it stays this close to its last value."""


def converged_after(curve: Floats) -> int:
    """Return the first round from which on a curve stays close to its end.

    >>> converged_after(np.array([0.1, 0.3, 0.4, 0.4]))
    3
    """
    away = np.flatnonzero(np.abs(curve - curve[-1]) > CLOSE)
    return 1 if not len(away) else int(away[-1]) + 2


def fig11(*, data: Place = None) -> Exhibit:
    """Fig. 11: training MAP of AdaRank and PermuRank round by round on OHSUMED, with Theorem 4's bound."""
    title, home = "Fig. 11: training curves on OHSUMED, fold 1", OHSUMED.home(data)
    if home is None:
        return without("fig11", title, OHSUMED)
    train, measure = OHSUMED.fold(home, 1).train, OHSUMED.measure("map")
    curves: dict[str, Floats] = {}
    for name, rule in (("AdaRank (Fig. 6)", "paper"), ("AdaRank, rule improve", "improve")):
        ranker = AdaRank(measure, rounds=ROUNDS["AdaRank"], rule=rule).fit_queries(train)  # type: ignore[arg-type]
        curves[name] = ranker.trace_["measure"]
        curves[f"bound of {name}"] = adarank_bounds(ranker.trace_["phi"], ranker.trace_["delta"], ranker.alphas_)
    permu = PermuRank(measure, rounds=ROUNDS["AdaRank"], C=100.0, pairs="all", average=False, tol=1e-3)
    permu.fit_queries(train)
    curves["PermuRank (Fig. 7)"] = permu.trace_["measure"]
    sizes = float(permu.trace_["perfect"][-1] + permu.trace_["imperfect"][-1])

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for label, values in curves.items():
            axis.plot(np.arange(1, len(values) + 1), values, ":" if "bound" in label else "-", label=label)
        axis.set(ylim=(0, 0.6), xlabel="round", ylabel="training MAP")
        axis.legend(fontsize=8)

    rows = [(label, len(v), float(v[0]), float(v.max()), float(v[-1])) for label, v in curves.items()]
    learned = {name: values for name, values in curves.items() if "bound" not in name}
    notes = (
        "All curves are of the same training queries. The bound of Theorem 4 falls below 0 as soon as some query loses "
        "from a round: it then says nothing.",
        f"PermuRank: {permu.solution_.message}.",
    )
    table = Table(("curve", "rounds", "first", "largest", "last"), rows)
    claims = training_claims(learned, sizes)
    return Exhibit("fig11", title, {"curves": curves, "working_set": sizes}, table, notes, draw, claims)


def training_claims(curves: Mapping[str, Floats], sizes: float) -> tuple[Claim, ...]:
    """Convergence, steady gains, and the size of the working sets."""
    claims = []
    for name in ("AdaRank (Fig. 6)", "PermuRank (Fig. 7)"):
        after, rounds = converged_after(curves[name]), len(curves[name])
        claims.append(
            claim(
                f"The training MAP of {name} converges after 40 to 100 rounds.",
                40 <= after <= min(100, rounds - 10),
                f"It stays within {CLOSE} of its last value from round {after} of {rounds} on.",
            )
        )
    ada = curves["AdaRank (Fig. 6)"]
    steps = np.diff(ada)
    claims.append(
        claim(
            "The training MAP of AdaRank (Fig. 6) steadily improves.",
            bool((steps >= -1e-12).all() and ada[-1] > ada[0]),
            f"{int((steps > 1e-12).sum())} rounds up, {int((steps < -1e-12).sum())} down; from {ada[0]:.4f} to "
            f"{ada[-1]:.4f}.",
        )
    )
    claims.append(
        claim(
            "PermuRank's working sets have 40 to 100 rankings a query at the end.", 40 <= sizes <= 100, f"{sizes:.1f}."
        )
    )
    return tuple(claims)


_KINDS: dict[str, Callable[[Measure], Sequence[Ranker]]] = {
    "AdaRank": lambda m: [AdaRank(m, rounds=ROUNDS["AdaRank"], rule="paper") for _ in PATH],
    "PermuRank": lambda m: [PermuRank(m, rounds=ROUNDS["PermuRank"], C=C, pairs="all", average=False) for C in PATH],
    "SVMmap": lambda m: [SVMMap(m, C=C, tol=1e-3) for C in PATH],
}


def table4(*, data: Place = None) -> Exhibit:
    """Table 4: the direct methods compared: what three settings cost, and AdaRank's own order of cost."""
    home = OHSUMED.home(data)
    if home is None:
        return without("table4", "Table 4: the direct methods compared", OHSUMED)
    train, measure = OHSUMED.fold(home, 1).train, OHSUMED.measure("map")
    cost: dict[str, dict[str, float]] = {}
    for name, make in _KINDS.items():
        for ranker in make(measure)[:1]:
            ranker.fit_queries(train[:4])  # compiled before the clock starts
        cost[name] = _cost(make(measure), train)
    growth = {what: _exponent(sizes) for what, sizes in _GROWTH.items()}
    rows: list[list[Cell]] = [["measure", "any in [0, 1]", "any in [0, 1]", "MAP (NDCG of 0/1 gains)"]]
    rows += [[f"{what}, three fits on fold 1", *(f"{cost[m][what]:.2f}" for m in _KINDS)] for what in _CLOCKS]
    notes = (
        "Kernels are compiled before the clock starts. AdaRank has no C: it is fitted three times, as often as the "
        "others. Seconds depend on the machine.",
    )
    values = {"cost": cost, "growth": growth}
    title = "Table 4: the direct methods compared"
    return Exhibit("table4", title, values, Table(("", *_KINDS), rows), notes, claims=cost_claims(cost, growth))


def cost_claims(cost: Mapping[str, Mapping[str, float]], growth: Mapping[str, float]) -> tuple[Claim, ...]:
    """Who is cheapest, and whether the cost grows as it should."""
    cheap = cost["AdaRank"]["CPU seconds"]
    others = {m: cost[m]["CPU seconds"] for m in ("PermuRank", "SVMmap")}
    return (
        claim(
            "AdaRank learns more cheaply than PermuRank and SVMmap.",
            cheap < min(others.values()),
            f"{cheap:.2f} CPU s against " + ", ".join(f"{m} {s:.2f}" for m, s in others.items()) + ".",
        ),
        claim(
            "AdaRank costs O((k + T)·m·n log n).",
            all(power <= _ORDER[what] + 0.15 for what, power in growth.items()),
            "Doubling sizes, the cost grows with the power "
            + ", ".join(f"{power:.2f} of the {what}" for what, power in growth.items())
            + ".",
        ),
    )


def _cost(rankers: Sequence[Ranker], train: QueryDataset) -> dict[str, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    for ranker in rankers:
        ranker.fit_queries(train)
    return dict(zip(_CLOCKS, (time.process_time() - cpu, time.perf_counter() - wall), strict=True))


_CLOCKS = ("CPU seconds", "seconds")
_GROWTH: dict[str, list[dict[str, int]]] = {
    "queries": [{"n_queries": 200 * 2**i} for i in range(4)],
    "documents": [{"n_docs": 25 * 2**i} for i in range(4)],
    "features and rounds": [{"n_features": 20 * 2**i} for i in range(4)],
}
_ORDER = {"queries": 1.0, "documents": 1.25, "features and rounds": 1.0}
"""n log n from 25 to 200 documents grows like n^1.25."""


def _exponent(sizes: Sequence[Mapping[str, int]]) -> float:
    """Return the slope of log CPU seconds in log size."""
    found = []
    for size in sizes:
        made = {"n_queries": 400, "n_docs": 50, "n_features": 40, **size}
        data = make_graded(
            made["n_queries"], n_docs=(made["n_docs"],) * 2, n_features=made["n_features"], random_state=0
        )
        ranker = AdaRank("map", rounds=made["n_features"], rule="paper")
        ranker.fit_queries(data[:2])
        found.append(min(_cost([ranker], data)["CPU seconds"] for _ in range(3)))
    at = [float(next(iter(size.values()))) for size in sizes]
    return float(np.polyfit(np.log(at), np.log(found), 1)[0])
