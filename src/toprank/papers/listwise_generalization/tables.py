"""Tables 1 to 3, the statements on the list length m, and the rate in n."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ..._tables import Cell, Table
from ..._typing import Floats
from ...certificates.generalization import ALGORITHMS, Algorithm, generalization_bound, log_c
from ...surrogates.transforms import Exponential, Linear, Sigmoid, Transform
from ..exhibits import Exhibit, Own, Panel, Said, judge, panels

SHORT = {"linear": "φL", "exponential": "φE", "sigmoid": "φS"}


def transforms(a: float, b: float) -> dict[str, Transform]:
    """Return the paper's three transforms."""
    return {"linear": Linear(a, b), "exponential": Exponential(a), "sigmoid": Sigmoid(a)}


def _printed(kind: str, a: float, b: float, bm: float, m: int) -> dict[str, float]:
    """N(φ) and C_A(φ) by the formulas that Table 1 prints."""
    if kind == "linear":
        n, low, width = a, b - a * bm, math.log((b + a * bm) / (b - a * bm))
    elif kind == "exponential":
        n, low, width = a * math.exp(a * bm), math.exp(-a * bm), 2 * a * bm
    else:
        n, low, width = a * math.exp(a * bm) / (1 + math.exp(-a * bm)) ** 2, 1 / (1 + math.exp(a * bm)), a * bm
    likelihood = 2 / (low * (math.log(m) + width))
    listnet, cosine = math.factorial(m) * likelihood, math.sqrt(m) / (2 * low)
    return {"N": n, "ListMLE": likelihood, "ListNet": listnet, "RankCosine": cosine}


def table_1() -> Exhibit:
    """Table 1: N(φ) and C_A(φ) for every algorithm and transform, printed form against definition."""
    rows: list[tuple[Cell, ...]] = []
    worst, off, checks = dict.fromkeys(SHORT, 0.0), 0.0, []
    for bm, (kind, phi) in product((0.5, 1.0, 2.0), transforms(1.0, 3.0).items()):
        printed, grid = _printed(kind, 1.0, 3.0, bm, 10), np.linspace(-bm, bm, 20001)
        numeric = float(np.max(np.diff(phi(grid)) / np.diff(grid)))
        values = {name: math.exp(log_c(name, phi, bm, 10)) for name in ALGORITHMS}
        off = max(off, *(abs(values[name] / printed[name] - 1) for name in ALGORITHMS))
        worst[kind] = max(worst[kind], abs(printed["N"] / numeric - 1))
        checks.append({"BM": bm, "transform": kind, "printed": printed, "numeric N": numeric, "C": values})
        rows.append((bm, SHORT[kind], printed["N"], numeric, *values.values()))
    table = Table(("BM", "φ", "N printed", "N = sup φ'", *(f"C {name}" for name in ALGORITHMS)), rows)
    title, data = "Table 1: N(φ) and C_A(φ), a = 1, b = 3, m = 10", {"checks": checks, "largest difference of C": off}
    return Exhibit("table-1", title, data, table, claims=_as_defined(off, worst))


@judge
def _as_defined(off: float, worst: Mapping[str, float]) -> Said:
    yield "The printed C_A(φ) are those of the definition.", off < 1e-9, f"They differ by a relative {off:.1e}."
    for kind, gap in worst.items():
        yield f"The printed N({SHORT[kind]}) is sup φ'.", gap < 1e-3, f"It is off by a relative {gap:.2g}."


def _products(algorithm: Algorithm, a: float, b: float, bm: float, m: int, exact: bool = False) -> dict[str, float]:
    """log C_A(φ) N(φ), with N as printed or as it is, for the three transforms."""
    found = transforms(a, b).items()
    return {SHORT[kind]: log_c(algorithm, phi, bm, m) + phi.steepest(bm, exact=exact) for kind, phi in found}


def _tighter(values: dict[str, float]) -> str:
    return " ≺ ".join(sorted(values, key=lambda name: values[name]))


@judge
def _right(number: int, tallies: Iterable[Any]) -> Said:
    total, printed, exact = np.sum(list(tallies), axis=0).tolist()
    for which, agree in (("printed", printed), ("exact", exact)):
        text = f"Table {number} is right with the {which} N(φ)."
        yield text, agree == total, f"It agrees at {agree} of {total} points."


ORDERS = {
    "b − aBM > K²(1 + K)": "φL ≺ φS ≺ φE",
    "K² < b − aBM < K²(1 + K)": "φS ≺ φL ≺ φE",
    "0 < b − aBM < K²": "φS ≺ φE ≺ φL",
}
"""Table 2."""


def table_2(*, points: int = 3000) -> Exhibit:
    """Table 2: which transform gives RankCosine the tighter bound, on random aBM and b − aBM; also with the exact N."""
    rng = np.random.default_rng(0)
    counts = {case: np.zeros(3, int) for case in ORDERS}
    seen: dict[str, list[tuple[float, float]]] = {}
    for _ in range(points):
        bm, a = rng.uniform(0.05, 3), rng.uniform(0.2, 2)
        K = math.exp(-a * bm)
        slack = K * K * math.exp(rng.uniform(-1.5, 1.5))
        case = tuple(ORDERS)[(slack <= K**2 * (1 + K)) + (slack <= K**2)]
        found, exact = (_tighter(_products("RankCosine", a, a * bm + slack, bm, 10, e)) for e in (False, True))
        counts[case] += (1, found == ORDERS[case], exact == ORDERS[case])
        seen.setdefault(found, []).append((a * bm, slack))
    rows: list[tuple[Cell, ...]] = [(case, ORDERS[case], *tally.tolist()) for case, tally in counts.items()]
    products = {u: _products("RankCosine", 1.0, u + 1, u, 10) for u in (0.5, 1.0, 2.0)}
    ratio = {u: math.exp(v["φE"] - v["φS"]) for u, v in products.items()}
    u = np.linspace(0.02, 6, 200)
    curves: dict[str, Any] = {order: (*np.array(here).T, None) for order, here in sorted(seen.items())}
    curves |= {"K²(1 + K)": (u, np.exp(-2 * u) * (1 + np.exp(-u)), None), "K²": (u, np.exp(-2 * u), None)}
    styles = {**dict.fromkeys(seen, "."), "K²(1 + K)": "k-", "K²": "k--"}
    drawn = Panel(curves, (), "aBM", "b − aBM", "RankCosine: the tighter transform (Table 2)", "y", styles=styles)
    title, data = "Table 2: results of different φ for RankCosine (K = e^(−aBM))", {"rows": rows, "ratio φE/φS": ratio}
    table = Table(("condition", "result", "points", "agree", "agree, exact N"), rows)
    claims = (*_right(2, counts.values()), *_factor(ratio))
    return Exhibit("table-2", title, data, table, draw=panels(drawn), claims=claims)


@judge
def _factor(ratio: Mapping[float, float]) -> Said:
    told = ", ".join(f"{v:.4f} at aBM = {u:g}" for u, v in ratio.items())
    same = all(abs(v / (1 + math.exp(u)) - 1) < 1e-6 for u, v in ratio.items())
    text = "RankCosine: exponential and sigmoid differ by the factor 1 + e^(aBM)."
    yield text, same, f"By Table 1 it is 1 + e^(−aBM): {told}."
    text, least = "RankCosine: sigmoid is always better than exponential.", min(ratio.values())
    yield text, least > 1, f"The smallest of these factors is {least:.4f}."


def table_3(*, points: int = 5000) -> Exhibit:
    """Table 3: which transform gives ListMLE and ListNet the tighter bound, where b > K²(1 + K) + aBM; and exact N."""
    rng = np.random.default_rng(1)
    pairs = (("φL", "φE"), ("φL", "φS"), ("φS", "φE"))
    counts = {(*pair, above): np.zeros(3, int) for pair in pairs for above in (True, False)}
    for _ in range(points):
        a, bm = rng.uniform(0.2, 2), rng.uniform(0.05, 2)
        u, m = a * bm, int(math.exp(rng.uniform(math.log(3), math.log(1000))))
        K = math.exp(-u)
        low, high = K**2, K**2 * (1 + K)
        slack = high * math.exp(rng.uniform(0.01, 2))
        wide = slack * math.log((2 * u + slack) / slack)
        limits = (2 * u * low - wide) / (slack - low), (u * high - wide) / (slack - high), u * (math.exp(u) - 1)
        for algorithm in ("ListMLE", "ListNet"):
            printed, exact = (_products(algorithm, a, u + slack, bm, m, e) for e in (False, True))
            for (one, two), limit in zip(pairs, limits, strict=True):
                above = math.log(m) > limit
                counts[one, two, above] += (1, *((found[one] < found[two]) == above for found in (printed, exact)))
    rows: list[tuple[Cell, ...]] = [
        (f"{one} {'≺' if above else '≻'} {two}", f"log m {'>' if above else '<'} its limit", *tally.tolist())
        for (one, two, above), tally in counts.items()
    ]
    lengths = np.unique(np.geomspace(3, 1000, 30).astype(int))
    curves, drawn = {}, []
    for u in (0.5, 1.0, 2.0):
        found = [_products("ListMLE", 1.0, u + 1, u, int(m)) for m in lengths]
        curves[u] = {name: [math.exp(values[name]) for values in found] for name in ("φL", "φS", "φE")}
        change, label = {"x": math.exp(min(u * (math.exp(u) - 1), 7))}, f"aBM = {u:g}"
        drawn.append(Panel(curves[u], lengths, "list length m", "C_ListMLE(φ) N(φ)", label, "xy", at=change))
    example = [_tighter(_products("ListMLE", 1.0, 11.0, 10.0, 1000, e)) for e in (False, True)]
    data = {"rows": rows, "lengths": lengths, "curves": curves, "example": example}
    table = Table(("result", "condition", "points", "agree", "agree, exact N"), rows)
    notes = ("In the figure the dotted line is where φS and φE change places, b = aBM + 1.",)
    claims = (*_right(3, counts.values()), *_cases([str(row[0]) for row in rows if row[2] == 0], *example))
    title = "Table 3: results of different φ for ListMLE and ListNet"
    return Exhibit("table-3", title, data, table, notes, panels(*drawn, columns=3), claims)


@judge
def _cases(empty: Sequence[str], printed: str, exact: str) -> Said:
    told = f"No point was found for {', '.join(empty)}." if empty else "All rows have points."
    yield Own("Every row of Table 3 has a case under its own condition."), not empty, told
    needs, order = f"by its own Table 3, φS ≺ φE needs log m > {10 * (math.exp(10) - 1):.0f}", "φL ≺ φS ≺ φE"
    text = f"The example (a = 1, M = 1, B = 10, b = 11) has {order}, with the printed N(φ)."
    yield text, printed == order, f"At m = 1000 it is {printed}; {needs}."
    yield "The example has that order with the exact N(φ).", exact == order, f"It is {exact}."


def list_length() -> Exhibit:
    """The statements on m: ListMLE's bound falls with it, the others rise, from 6 on it is below RankCosine's."""
    lengths = list(range(3, 61))
    kinds = {f"{name} (BM = {bm:g})": (phi, bm) for bm in (0.25, 1.0) for name, phi in transforms(1.0, bm + 1).items()}
    curves: dict[str, dict[str, Floats]] = {
        label: {name: np.array([log_c(name, phi, bm, m) for m in lengths]) for name in ALGORITHMS}
        for label, (phi, bm) in kinds.items()
    }
    rows = []
    for label, values in curves.items():
        rises = {name: np.diff(logs) > 0 for name, logs in values.items()}
        rise = bool((rises["ListNet"] & rises["RankCosine"]).all())
        below = int(np.argmax(values["ListMLE"] < values["RankCosine"]))
        rows.append((label, "no" if rises["ListMLE"].any() else "yes", "yes" if rise else "no", lengths[below]))
    conditions = _below_six()
    shown = ("exponential (BM = 0.25)", "exponential (BM = 1)")
    decimal = {label: {name: logs / math.log(10) for name, logs in curves[label].items()} for label in shown}
    panel = partial(Panel, x=lengths, xlabel="list length m", ylabel="log10 C_A(φ)", ylim=(-1, 6), at={"x": 6})
    drawn = [panel(values, title=label) for label, values in decimal.items()]
    data = {"lengths": lengths, "log C": curves, "below six": conditions, "rows": rows}
    table = Table(("transform", "ListMLE falls with m", "others rise with m", "ListMLE < RankCosine from m ="), rows)
    title, claims = "The bounds and the list length m (Section 3.3.1)", _by_length(rows, conditions)
    return Exhibit("list-length", title, data, table, draw=panels(*drawn), claims=claims)


@judge
def _by_length(rows: Sequence[Sequence[Any]], conditions: Mapping[str, int]) -> Said:
    good, first = sum(r[1] == r[2] == "yes" for r in rows), max(row[3] for row in rows)
    text = "ListMLE's bound falls with m, those of ListNet and RankCosine rise."
    yield text, good == len(rows), f"In {good} of {len(rows)} settings."
    told = f"In these settings from m = {first} on; in general 4/√m < log m from 6 on"
    sides = f"{4 / math.sqrt(5):.3f} > {math.log(5):.3f} and {4 / math.sqrt(6):.3f} < {math.log(6):.3f}"
    yield "For m ≥ 6 ListMLE's bound is below RankCosine's.", first <= 6, f"{told}: {sides}."
    agree, points, met, below = (conditions[key] for key in ("agree", "points", "footnote", "footnote agrees"))
    text = "For m of 3 to 5 the text's conditions decide."
    yield text, agree == points, f"{agree} of {points} random settings agree."
    text = "Footnote 7's simpler conditions are enough."
    yield text, below == met, f"ListMLE's bound is below in {below} of {met} settings that meet them."


def _below_six() -> dict[str, int]:
    """Check the conditions for 3 ≤ m < 6, and those of footnote 7, on random parameters."""
    rng = np.random.default_rng(2)
    seen = []
    for _ in range(400):
        m, u = int(rng.integers(3, 6)), float(rng.uniform(0.01, 3))
        b, edge = u * (1 + float(rng.exponential(1))), 4 / math.sqrt(m)
        far, over = math.exp(edge), edge - math.log(m)
        predicted = {"linear": b / u < (far + m) / (far - m), "exponential": u > over / 2, "sigmoid": u > over}
        simpler = {"linear": 1 < b / u < 1.5, "exponential": u > 0.75, "sigmoid": u > 1.5}
        for kind, phi in transforms(1.0, b).items():
            below = log_c("ListMLE", phi, u, m) < log_c("RankCosine", phi, u, m)
            seen.append((True, below == predicted[kind], simpler[kind], simpler[kind] and below))
    counts: list[int] = np.sum(seen, axis=0).tolist()
    return dict(zip(("points", "agree", "footnote", "footnote agrees"), counts, strict=True))


def rate() -> Exhibit:
    """The O(1/√n) rate of the bounds, and how many queries it takes until they say anything."""
    sizes = np.geomspace(10, 1e9, 33)
    names: tuple[Algorithm, ...] = ("ListMLE", "RankCosine", "ListMLE", "ListMLE", "ListNet")
    settings = zip(names, (Linear(1, 2), Linear(1, 2), Exponential(1.0), Sigmoid(1.0), Linear(1, 2)), strict=True)
    curves, rows = {}, []
    for algorithm, phi in settings:
        one, *logs = (
            generalization_bound(algorithm, phi, radius=1, norm=1, m=10, n=int(n)).log_value for n in (1, *sizes)
        )
        needed = math.ceil(math.exp(2 * (one + (math.log(2) if algorithm == "RankCosine" else 0))))
        curves[f"{algorithm}, {phi}"] = np.exp(logs)
        rows.append((algorithm, str(phi), float(np.polyfit(np.log(sizes), logs, 1)[0]), f"{needed:.3g}"))
    drawn = Panel(curves, sizes, "queries n", "bound on the gap", log="xy", ylim=(1e-4, 1e9), at={"y": 1})
    table = Table(("algorithm", "transform", "slope of log bound in log n", "queries until it says something"), rows)
    notes = ("A bound says something below 1, RankCosine's below ½, the most that its loss can be.",)
    title, data = "The rate O(1/√n): B = M = a = 1, b = 2, m = 10, δ = 0.05", {"sizes": sizes, "bound": curves}
    return Exhibit("rate", title, data, table, notes, panels(drawn), _vanish([row[2] for row in rows]))


@judge
def _vanish(slopes: Sequence[float]) -> Said:
    told = f"The powers of n are {min(slopes):.4f} to {max(slopes):.4f}."
    yield "All three bounds vanish at the rate O(1/√n).", all(abs(slope + 0.5) < 1e-3 for slope in slopes), told
