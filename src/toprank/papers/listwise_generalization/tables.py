"""Tables 1 to 3, the statements on the list length m, and the rate in n."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from ..._tables import Cell, Table
from ...certificates.generalization import ALGORITHMS, Algorithm, generalization_bound, log_c
from ...surrogates.transforms import Exponential, Linear, Sigmoid, Transform
from ..exhibits import Exhibit, claim, lines

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
    return {
        "N": n,
        "ListMLE": likelihood,
        "ListNet": math.factorial(m) * likelihood,
        "RankCosine": math.sqrt(m) / (2 * low),
    }


def table_1() -> Exhibit:
    """Table 1: N(φ) and C_A(φ) for every algorithm and transform, printed form against definition."""
    m = 10
    rows: list[tuple[Cell, ...]] = []
    worst = dict.fromkeys(SHORT, 0.0)
    off, checks = 0.0, []
    for bm, (kind, phi) in product((0.5, 1.0, 2.0), transforms(1.0, 3.0).items()):
        printed = _printed(kind, 1.0, 3.0, bm, m)
        grid = np.linspace(-bm, bm, 20001)
        numeric = float(np.max(np.diff(phi(grid)) / np.diff(grid)))
        values = {name: math.exp(log_c(name, phi, bm, m)) for name in ALGORITHMS}
        off = max(off, *(abs(values[name] / printed[name] - 1) for name in ALGORITHMS))
        worst[kind] = max(worst[kind], abs(printed["N"] / numeric - 1))
        checks.append({"BM": bm, "transform": kind, "printed": printed, "numeric N": numeric, "C": values})
        rows.append((bm, SHORT[kind], printed["N"], numeric, *(values[name] for name in ALGORITHMS)))
    columns = ("BM", "φ", "N printed", "N = sup φ'", *(f"C {name}" for name in ALGORITHMS))
    claims = (
        claim("The printed C_A(φ) are those of the definition.", off < 1e-9, f"They differ by a relative {off:.1e}."),
        *(
            claim(f"The printed N({SHORT[kind]}) is sup φ'.", gap < 1e-3, f"It is off by a relative {gap:.2g}.")
            for kind, gap in worst.items()
        ),
    )
    title = "Table 1: N(φ) and C_A(φ), a = 1, b = 3, m = 10"
    data = {"checks": checks, "largest relative difference of C": off}
    return Exhibit("table-1", title, data, Table(columns, rows), claims=claims)


def _products(algorithm: Algorithm, a: float, b: float, bm: float, m: int, exact: bool = False) -> dict[str, float]:
    """log C_A(φ) N(φ), with N as printed or as it is, for the three transforms."""
    found = transforms(a, b).items()
    return {SHORT[kind]: log_c(algorithm, phi, bm, m) + phi.steepest(bm, exact=exact) for kind, phi in found}


def _tighter(values: dict[str, float]) -> str:
    return " ≺ ".join(sorted(values, key=lambda name: values[name]))


def table_2(*, points: int = 3000) -> Exhibit:
    """Table 2: which transform gives RankCosine the tighter bound, on random aBM and b − aBM; also with the exact N."""
    rng = np.random.default_rng(0)
    counts: dict[tuple[str, str], list[int]] = {}
    seen = []
    for _ in range(points):
        bm, a = rng.uniform(0.05, 3), rng.uniform(0.2, 2)
        K = math.exp(-a * bm)
        slack = K * K * math.exp(rng.uniform(-1.5, 1.5))
        if slack > K**2 * (1 + K):
            row = ("b − aBM > K²(1 + K)", "φL ≺ φS ≺ φE")
        elif slack > K**2:
            row = ("K² < b − aBM < K²(1 + K)", "φS ≺ φL ≺ φE")
        else:
            row = ("0 < b − aBM < K²", "φS ≺ φE ≺ φL")
        found, exact = (_tighter(_products("RankCosine", a, a * bm + slack, bm, 10, e)) for e in (False, True))
        tally = counts.setdefault(row, [0, 0, 0])
        for place, agrees in enumerate((True, found == row[1], exact == row[1])):
            tally[place] += agrees
        seen.append((a * bm, slack, found))
    rows: list[tuple[Cell, ...]] = [(*key, *tally) for key, tally in sorted(counts.items())]
    ratio = {
        u: math.exp(v["φE"] - v["φS"]) for u in (0.5, 1.0, 2.0) if (v := _products("RankCosine", 1.0, u + 1, u, 10))
    }
    said = {u: 1 + math.exp(u) for u in ratio}

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for name, colour in (("φL ≺ φS ≺ φE", "C0"), ("φS ≺ φL ≺ φE", "C1"), ("φS ≺ φE ≺ φL", "C2")):
            here = [(u, s) for u, s, found in seen if found == name]
            axes.scatter(*zip(*here, strict=True), s=5, color=colour, label=name)
        u = np.linspace(0.02, 6, 200)
        axes.plot(u, np.exp(-2 * u) * (1 + np.exp(-u)), color="black", lw=1, label="K²(1 + K)")
        axes.plot(u, np.exp(-2 * u), color="black", lw=1, ls="--", label="K²")
        axes.set(yscale="log", xlabel="aBM", ylabel="b − aBM", title="RankCosine: the tighter transform (Table 2)")
        axes.legend(markerscale=3)

    total, good, exactly = (sum(tally[place] for tally in counts.values()) for place in range(3))
    claims = (
        claim("Table 2 is right with the printed N(φ).", good == total, f"It agrees at {good} of {total} points."),
        claim("Table 2 is right with the exact N(φ).", exactly == total, f"It agrees at {exactly} of {total} points."),
        claim(
            "RankCosine: exponential and sigmoid differ by the factor 1 + e^(aBM).",
            all(abs(ratio[u] / said[u] - 1) < 1e-6 for u in ratio),
            "By Table 1 it is 1 + e^(−aBM): " + ", ".join(f"{v:.4f} at aBM = {u:g}" for u, v in ratio.items()) + ".",
        ),
        claim(
            "RankCosine: sigmoid is always better than exponential.",
            min(ratio.values()) > 1,
            f"The smallest of these factors is {min(ratio.values()):.4f}.",
        ),
    )
    return Exhibit(
        "table-2",
        "Table 2: results of different φ for RankCosine (K = e^(−aBM))",
        {"rows": rows, "ratio φE/φS": ratio},
        Table(("condition", "result", "points", "agree", "agree, exact N"), rows),
        draw=draw,
        claims=claims,
    )


def table_3(*, points: int = 5000) -> Exhibit:
    """Table 3: which transform gives ListMLE and ListNet the tighter bound, where b > K²(1 + K) + aBM; and exact N."""
    rng = np.random.default_rng(1)
    pairs = ("φL and φE", "φL and φS", "φS and φE")
    counts = {(pair, above): [0, 0, 0] for pair in pairs for above in (True, False)}
    for _ in range(points):
        a, bm = rng.uniform(0.2, 2), rng.uniform(0.05, 2)
        u, m = a * bm, int(math.exp(rng.uniform(math.log(3), math.log(1000))))
        K = math.exp(-u)
        slack = K**2 * (1 + K) * math.exp(rng.uniform(0.01, 2))
        wide = math.log((2 * u + slack) / slack)
        limits = {
            "φL and φE": (2 * u * K**2 - slack * wide) / (slack - K**2),
            "φL and φS": (u * K**2 * (1 + K) - slack * wide) / (slack - K**2 * (1 + K)),
            "φS and φE": u * (math.exp(u) - 1),
        }
        for algorithm in ("ListMLE", "ListNet"):
            printed, exact = (_products(algorithm, a, u + slack, bm, m, e) for e in (False, True))
            for pair, limit in limits.items():
                first, second = pair.split(" and ")
                above = math.log(m) > limit
                tally = counts[pair, above]
                tally[0] += 1
                tally[1] += (printed[first] < printed[second]) == above
                tally[2] += (exact[first] < exact[second]) == above
    rows: list[tuple[Cell, ...]] = [
        (pair.replace(" and ", " ≺ " if above else " ≻ "), f"log m {'>' if above else '<'} its limit", *tally)
        for (pair, above), tally in counts.items()
    ]
    empty = [row[0] for row in rows if row[2] == 0]
    lengths = np.unique(np.geomspace(3, 1000, 30).astype(int))
    curves = {
        u: {n: [math.exp(_products("ListMLE", 1.0, u + 1, u, int(m))[n]) for m in lengths] for n in ("φL", "φS", "φE")}
        for u in (0.5, 1.0, 2.0)
    }
    example = {e: _tighter(_products("ListMLE", 1.0, 11.0, 10.0, 1000, e)) for e in (False, True)}

    def draw(figure: Any) -> None:
        for axes, (u, values) in zip(figure.subplots(1, 3, sharex=True, sharey=True), curves.items(), strict=True):
            lines(axes, lengths, values, xscale="log", yscale="log", xlabel="list length m", title=f"aBM = {u:g}")
            axes.axvline(math.exp(min(u * (math.exp(u) - 1), 7)), color="grey", lw=1, ls=":")
        figure.axes[0].set_ylabel("C_ListMLE(φ) N(φ)")

    total, good, exactly = (sum(tally[place] for tally in counts.values()) for place in range(3))
    claims = (
        claim("Table 3 is right with the printed N(φ).", good == total, f"It agrees at {good} of {total} points."),
        claim("Table 3 is right with the exact N(φ).", exactly == total, f"It agrees at {exactly} of {total} points."),
        claim(
            "Every row of Table 3 has a case under its own condition.",
            not empty,
            f"No point was found for {', '.join(map(str, empty))}." if empty else "All rows have points.",
        ),
        claim(
            "The example (a = 1, M = 1, B = 10, b = 11) has φL ≺ φS ≺ φE, with the printed N(φ).",
            example[False] == "φL ≺ φS ≺ φE",
            f"At m = 1000 it is {example[False]}; by its own Table 3, φS ≺ φE needs "
            f"log m > {10 * (math.exp(10) - 1):.0f}.",
        ),
        claim(
            "The example has that order with the exact N(φ).",
            example[True] == "φL ≺ φS ≺ φE",
            f"It is {example[True]}.",
        ),
    )
    return Exhibit(
        "table-3",
        "Table 3: results of different φ for ListMLE and ListNet",
        {
            "rows": rows,
            "lengths": lengths,
            "curves": {str(u): values for u, values in curves.items()},
            "example": example,
        },
        Table(("result", "condition", "points", "agree", "agree, exact N"), rows),
        ("In the figure the dotted line is where φS and φE change places, b = aBM + 1.",),
        draw,
        claims,
    )


def list_length() -> Exhibit:
    """The statements on m: ListMLE's bound falls with it, the others rise, from 6 on it is below RankCosine's."""
    lengths = list(range(3, 61))
    kinds = {f"{name} (BM = {bm:g})": (phi, bm) for bm in (0.25, 1.0) for name, phi in transforms(1.0, bm + 1).items()}
    curves = {
        label: {name: [log_c(name, phi, bm, m) for m in lengths] for name in ALGORITHMS}
        for label, (phi, bm) in kinds.items()
    }
    rows = []
    for label, values in curves.items():
        below = [m for m, x, y in zip(lengths, values["ListMLE"], values["RankCosine"], strict=True) if x < y]
        falls = bool((np.diff(values["ListMLE"]) < 0).all())
        rise = bool((np.diff(values["ListNet"]) > 0).all() and (np.diff(values["RankCosine"]) > 0).all())
        rows.append((label, "yes" if falls else "no", "yes" if rise else "no", below[0]))
    conditions = _below_six()
    claims = (
        claim(
            "ListMLE's bound falls with m, those of ListNet and RankCosine rise.",
            all(r[1] == r[2] == "yes" for r in rows),
            f"In {sum(r[1] == r[2] == 'yes' for r in rows)} of {len(rows)} settings.",
        ),
        claim(
            "For m ≥ 6 ListMLE's bound is below RankCosine's.",
            max(row[3] for row in rows) <= 6,
            f"In these settings from m = {max(row[3] for row in rows)} on; in general 4/√m < log m from 6 on: "
            f"{4 / math.sqrt(5):.3f} > {math.log(5):.3f} and {4 / math.sqrt(6):.3f} < {math.log(6):.3f}.",
        ),
        claim(
            "For m of 3 to 5 the text's conditions decide.",
            conditions["agree"] == conditions["points"],
            f"{conditions['agree']} of {conditions['points']} random settings agree.",
        ),
        claim(
            "Footnote 7's simpler conditions are enough.",
            conditions["footnote"] == conditions["footnote agrees"],
            f"ListMLE's bound is below in {conditions['footnote agrees']} of {conditions['footnote']} settings that "
            "meet them.",
        ),
    )

    def draw(figure: Any) -> None:
        for axes, label in zip(figure.subplots(1, 2), ("exponential (BM = 0.25)", "exponential (BM = 1)"), strict=True):
            shown = {str(name): np.array(values) / math.log(10) for name, values in curves[label].items()}
            lines(axes, lengths, shown, xlabel="list length m", title=label, ylim=(-1, 6))
            axes.axvline(6, color="grey", lw=1, ls=":")
        figure.axes[0].set_ylabel("log10 C_A(φ)")

    return Exhibit(
        "list-length",
        "The bounds and the list length m (Section 3.3.1)",
        {"lengths": lengths, "log C": curves, "below six": conditions, "rows": rows},
        Table(("transform", "ListMLE falls with m", "others rise with m", "ListMLE < RankCosine from m ="), rows),
        draw=draw,
        claims=claims,
    )


def _below_six() -> dict[str, int]:
    """Check the conditions for 3 ≤ m < 6, and those of footnote 7, on random parameters."""
    rng = np.random.default_rng(2)
    counts = {"points": 0, "agree": 0, "footnote": 0, "footnote agrees": 0}
    for _ in range(400):
        m, u = int(rng.integers(3, 6)), float(rng.uniform(0.01, 3))
        b = u * (1 + float(rng.exponential(1)))
        edge = 4 / math.sqrt(m)
        predicted = {
            "linear": b / u < (math.exp(edge) + m) / (math.exp(edge) - m),
            "exponential": u > (edge - math.log(m)) / 2,
            "sigmoid": u > edge - math.log(m),
        }
        simpler = {"linear": 1 < b / u < 1.5, "exponential": u > 0.75, "sigmoid": u > 1.5}
        for kind, phi in transforms(1.0, b).items():
            below = log_c("ListMLE", phi, u, m) < log_c("RankCosine", phi, u, m)
            counts["points"] += 1
            counts["agree"] += below == predicted[kind]
            counts["footnote"] += simpler[kind]
            counts["footnote agrees"] += simpler[kind] and below
    return counts


def rate() -> Exhibit:
    """The O(1/√n) rate of the bounds, and how many queries it takes until they say anything."""
    sizes = np.geomspace(10, 1e9, 33)
    settings: list[tuple[Algorithm, Transform]] = [
        ("ListMLE", Linear(1.0, 2.0)),
        ("RankCosine", Linear(1.0, 2.0)),
        ("ListMLE", Exponential(1.0)),
        ("ListMLE", Sigmoid(1.0)),
        ("ListNet", Linear(1.0, 2.0)),
    ]
    curves, rows = {}, []
    for algorithm, phi in settings:
        logs = [generalization_bound(algorithm, phi, radius=1, norm=1, m=10, n=int(n)).log_value for n in sizes]
        slope = float(np.polyfit(np.log(sizes), logs, 1)[0])
        one = generalization_bound(algorithm, phi, radius=1, norm=1, m=10, n=1)
        needed = math.ceil(math.exp(2 * (one.log_value + (math.log(2) if algorithm == "RankCosine" else 0))))
        curves[f"{algorithm}, {phi}"] = np.exp(logs)
        rows.append((algorithm, str(phi), slope, f"{needed:.3g}"))

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        lines(
            axes,
            sizes,
            curves,
            xscale="log",
            yscale="log",
            xlabel="queries n",
            ylabel="bound on the gap",
            ylim=(1e-4, 1e9),
        )
        axes.axhline(1, color="grey", lw=1, ls=":")

    slopes = [row[2] for row in rows]
    claims = (
        claim(
            "All three bounds vanish at the rate O(1/√n).",
            all(abs(slope + 0.5) < 1e-3 for slope in slopes),
            f"The powers of n are {min(slopes):.4f} to {max(slopes):.4f}.",
        ),
    )
    return Exhibit(
        "rate",
        "The rate O(1/√n): B = M = a = 1, b = 2, m = 10, δ = 0.05",
        {"sizes": sizes, "bound": curves},
        Table(("algorithm", "transform", "slope of log bound in log n", "queries until it says something"), rows),
        ("A bound says something below 1, RankCosine's below ½, the most that its loss can be.",),
        draw,
        claims,
    )
