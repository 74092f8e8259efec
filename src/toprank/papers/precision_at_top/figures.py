"""Figs. 2 and 3: precision against time, against κ and against the batch length; and Covertype class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ..._progress import track
from ..._tables import Table
from ..exhibits import Exhibit, Panel, Said, interval, judge, panels
from .lab import Classes, Lab, Sweeps, in_lab
from .methods import ALLOWANCE, BATCHED, METHODS, PAPER, STYLES, Trial, baselines
from .tasks import KNOWN, rows_of

PERCEPTRON_AVG, SGD_AVG, PERCEPTRON_MAX, SGD_MAX = NEW = PAPER[:4]
Found = Mapping[str, Mapping[str, Any]]
"""Task ↦ method ↦ numbers."""


@in_lab(Lab)
def fig2(lab: Lab) -> Exhibit:
    """Fig. 2: precision@0.25 against training time, every method on every task."""
    methods = (*METHODS, *baselines())
    looks = (*(n for n in (1, 3, 8) if n < lab.passes), lab.passes)
    curves: dict[str, dict[str, list[Any]]] = {task: {name: [] for name in methods} for task in lab.there}
    for task, seed, name in track(list(product(lab.there, range(lab.seeds), methods)), "fig2"):
        curves[task][name].append(lab.run(task, name, Trial(passes=looks, seed=seed)))

    def means(what: str, at: int) -> dict[str, dict[str, float]]:
        return {
            task: {name: float(np.mean([run[what][at] for run in runs])) for name, runs in found.items()}
            for task, found in curves.items()
        }

    ends, cost, early = means("precision", -1), means("seconds", -1), means("precision", 0)
    rows: list[list[Any]] = [
        [KNOWN[task].title, name, *interval([run["precision"][-1] for run in runs]), cost[task][name]]
        for task, found in curves.items()
        for name, runs in found.items()
    ]
    drawn = [
        _panel(task, {name: _against_time(runs) for name, runs in found.items()}, "training time (CPU s)", "0.25", "x")
        for task, found in curves.items()
    ]
    splits = f"{lab.seeds} random 70/30 splits, at most {lab.passes} passes, b = 500"
    title = f"Fig. 2: prec@0.25 on the test part, {splits}"
    table = Table(("task", "method", "prec@0.25", "± (95%)", "CPU seconds"), rows)
    drawing, claims = panels(*drawn, legend="below"), _findings(ends, cost, early)
    return Exhibit("fig2", title, {"curves": curves}, table, lab.notes, drawing, claims)


def _panel(task: str, curves: Mapping[str, Any], xlabel: str, at: str, log: str) -> Panel:
    return Panel(curves, (), xlabel, f"prec@{at} on the test part", KNOWN[task].title, log, styles=STYLES)


def _against_time(runs: Sequence[Mapping[str, Sequence[float]]]) -> tuple[Any, Any, Any]:
    length = min(len(run["seconds"]) for run in runs)
    seconds, heights = (np.array([run[what][:length] for run in runs]) for what in ("seconds", "precision"))
    return seconds.mean(axis=0), heights.mean(axis=0), [*[0.0] * (length - 1), interval(heights[:, -1])[1]]


@judge
def _findings(means: Found, spent: Found, first: Found) -> Said:
    """The paper's findings, task by task, with its methods as they return their weights."""
    best = {task: max(found[name] for name in PAPER) for task, found in means.items()}

    def tell(pairs: Mapping[str, tuple[float, float]], digits: int = 3) -> str:
        said = (f"{KNOWN[t].title} {a:.{digits}f} against {b:.{digits}f}" for t, (a, b) in pairs.items())
        return "; ".join(said) + "."

    for lead, one, other in (
        ("A tighter surrogate is better: Perceptron@k-avg is above Perceptron@k-max", PERCEPTRON_AVG, PERCEPTRON_MAX),
        ("A tighter surrogate is better: SGD@k-avg is above SGD@k-max", SGD_AVG, SGD_MAX),
        ("A stochastic solver does not make up for struct: SGD@k-avg is above 1PMB", SGD_AVG, "1PMB"),
    ):
        pairs = {task: (found[one], found[other]) for task, found in means.items()}
        yield f"{lead} on every task.", all(a > b for a, b in pairs.values()), tell(pairs)
    pairs = {
        task: (
            best[task] - min(found[PERCEPTRON_AVG], found[SGD_AVG]),
            best[task] - min(found[PERCEPTRON_MAX], found[SGD_MAX]),
        )
        for task, found in means.items()
    }
    text = "The avg methods are the most consistent: the worse of the two is never further from the best of the six"
    yield f"{text} than the worse of the max methods.", all(a <= b for a, b in pairs.values()), tell(pairs)
    pairs = {task: (max(found["1PMB"], found["SVMPerf"]), best[task]) for task, found in means.items()}
    text = "1PMB and SVMPerf frequently converge to worse solutions: on more than half of the tasks both are more than"
    stuck = sum(a < b - 0.01 for a, b in pairs.values()) > len(pairs) / 2
    yield f"{text} .01 below the best of the six.", stuck, tell(pairs)
    pairs = {task: (found["SVMPerf"], max(found[n] for n in BATCHED)) for task, found in spent.items()}
    text = "SVMPerf costs the most of the six on every task (CPU s)."
    yield text, all(a > b for a, b in pairs.values()), tell(pairs, 2)
    pairs = {task: (found[SGD_AVG], means[task]["SVMPerf"]) for task, found in first.items()}
    text = "Mini-batches are fast: SGD@k-avg after one pass is within .02 of SVMPerf or above it on every task."
    yield text, all(a >= b - 0.02 for a, b in pairs.values()), tell(pairs)


@in_lab(Sweeps)
def fig3(lab: Sweeps) -> Exhibit:
    """Fig. 3: precision@κ for several κ (SVMPerf with fifty times the time), and prec@0.25 by batch length."""
    usual = Trial(passes=(lab.passes,), cuts=(5, 20, 50, 200, 1000))
    by_kappa, by_length = (
        [(kappa, usual.batch_size) for kappa in lab.kappas],
        [(usual.kappa, length) for length in lab.lengths],
    )
    reached: dict[tuple[str, str, float, int], list[float]] = {}
    places = dict.fromkeys([*by_kappa, *by_length])
    for task, seed, (kappa, length) in track(list(product(lab.there, range(lab.seeds), places)), "fig3"):
        slowest = 0.0
        for name in BATCHED if length != usual.batch_size else PAPER:
            # SVMPerf comes last: it gets fifty times what the slowest of the others took.
            last = name == "SVMPerf"
            limit = ALLOWANCE * slowest if last else np.inf
            trial = replace(usual, kappa=kappa, batch_size=length, seed=seed, limit=limit)
            curve = lab.run(task, name, trial, timed=last)
            slowest = max(slowest, curve["seconds"][-1])
            reached.setdefault((task, name, kappa, length), []).append(curve["precision"][-1])
    swept = {
        sign: {
            task: {n: [interval(reached[task, n, kappa, b]) for kappa, b in found] for n in names} for task in lab.there
        }
        for sign, names, found in (("κ", PAPER, by_kappa), ("b", BATCHED, by_length))
    }
    axes: dict[str, Sequence[float]] = {"κ": lab.kappas, "b": lab.lengths}
    labels = {"κ": ("κ", "κ", ""), "b": ("batch length b", "0.25", "x")}
    rows: list[list[Any]] = [
        [KNOWN[task].title, name, f"{sign} = {place:g}", mean, half]
        for sign, found in swept.items()
        for task, methods in found.items()
        for name, runs in methods.items()
        for place, (mean, half) in zip(axes[sign], runs, strict=True)
    ]
    drawn = [
        _panel(task, {name: (axes[sign], *np.array(runs).T) for name, runs in methods.items()}, *labels[sign])
        for sign, found in swept.items()
        for task, methods in found.items()
    ]
    title = f"Fig. 3: prec@κ against κ (b = 500), and prec@0.25 against the batch length; {lab.seeds} splits"
    data = {"kappas": lab.kappas, "lengths": lab.lengths, "by_kappa": swept["κ"], "by_length": swept["b"]}
    table = Table(("task", "method", "at", "precision", "± (95%)"), rows)
    notes = (f"SVMPerf may take {ALLOWANCE} times as long as the slowest of the others.", *lab.notes)
    drawing = panels(*drawn, columns=len(lab.there), legend="below")
    return Exhibit("fig3", title, data, table, notes, drawing, _swept(swept["κ"], swept["b"], lab.lengths))


@judge
def _swept(by_kappa: Found, by_length: Found, lengths: Sequence[int]) -> Said:
    wins = [
        mean > base
        for found, name in product(by_kappa.values(), NEW)
        for (mean, _), (base, _) in zip(found[name], found["SVMPerf"], strict=True)
    ]
    text = "The methods with the new surrogates consistently outperform SVMPerf over κ."
    yield text, all(wins), f"They are above it in {sum(wins)} of {len(wins)} cells (task × κ × four methods)."
    spans = {}
    for task, methods in by_length.items():
        for name, runs in ((name, np.array(runs)[:, 0]) for name, runs in methods.items() if name != "1PMB"):
            spans[f"{name} on {KNOWN[task].title}"] = 1 - runs.min() / max(runs.max(), 1e-300)
    worst, steady = max(spans, key=lambda name: spans[name]), sum(span < 0.05 for span in spans.values())
    told = f"Lengths {lengths[0]} to {lengths[-1]}: below 5% in {steady} of {len(spans)} cases; the largest is"
    text = "Perceptrons and SGD vary by less than 5% in precision across batch lengths."
    yield text, steady == len(spans), f"{told} {spans[worst]:.1%} ({worst})."


@in_lab(Classes)
def covertype(lab: Classes) -> Exhibit:
    """Covertype class by class, as the paper does not say which one is positive: prec@0.25 of its methods."""
    values: dict[str, dict[str, list[float]]] = {task: {name: [] for name in PAPER} for task in lab.there}
    for task, name, seed in track(list(product(lab.there, PAPER, range(lab.seeds))), "covertype"):
        run = lab.run(task, name, Trial(passes=(lab.passes,), seed=seed))
        values[task][name].append(run["precision"][-1])
    rows: list[list[Any]] = [
        [task[-1], float(rows_of(KNOWN[task], lab.root)[1].mean()), *(float(np.mean(found[name])) for name in PAPER)]
        for task, found in values.items()
    ]
    splits = f"{lab.seeds} splits of {lab.max_rows or 581_012:,} rows"
    title = f"Covertype: each class against the rest, prec@0.25, {splits}"
    notes = ("The paper speaks of rare classes and names neither the class nor its share.",)
    return Exhibit("covertype", title, values, Table(("class", "share of positives", *PAPER), rows), notes)
