"""Figs. 2 and 3 (precision against time, κ and the batch length), Covertype by class, and where they are run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial, wraps
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ..._progress import track
from ..._tables import Table
from ...errors import InputError
from ...statistics._intervals import every, interval, spreads, surely
from ..exhibits import Checkpoint, Exhibit, Panel, Said, judge, panels
from ..experiments import data_folder, piece
from .methods import ALLOWANCE, BATCHED, METHODS, PAPER, STYLES, Settings, Trial, baselines, choose
from .tasks import COVERTYPE, KNOWN, TASKS, Split, digest_of, rows_of, split_of

PERCEPTRON_AVG, SGD_AVG, PERCEPTRON_MAX, SGD_MAX = NEW = PAPER[:4]
Found = Mapping[str, Mapping[str, Any]]  # task ↦ method ↦ numbers, one for each split


@dataclass(frozen=True)
class Lab:
    """What an exhibit may be asked for: its fields are the options (kappas and lengths those of `fig3` alone)."""

    data: str | None = None
    checkpoint: Path | None = None
    tasks: Sequence[str] = tuple(TASKS)
    seeds: int = 5
    passes: int = 25
    max_rows: int | None = None
    kappas: Sequence[float] = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
    lengths: Sequence[int] = (100, 200, 500, 1000, 2000, 5000)
    _settings: dict[tuple[str, str, float], Settings] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def root(self) -> Path:
        """The folder of the collections."""
        return data_folder(self.data)

    @cached_property
    def there(self) -> list[str]:
        """Those of the tasks that are there; none at all, or an unknown one, is an error."""
        unknown = [name for name in self.tasks if name not in KNOWN]
        if unknown:
            raise InputError(f"unknown task {unknown[0]!r}: known are {', '.join(KNOWN)}")
        found = [name for name in self.tasks if KNOWN[name].paths(self.root)]
        if not found:
            raise InputError(f"{self.root} holds none of {', '.join(self.tasks)}")
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What is left out, and where it would stand."""
        gone = [KNOWN[name] for name in self.tasks if name not in self.there]
        return tuple(f"Left out: {task.title}, put {', '.join(task.files)} in {task.folder}/." for task in gone)

    def run(self, task: str, name: str, trial: Trial, timed: bool = False) -> Any:
        """Return the curve of one method on one split; settings are chosen once per task, on the first seed's rows."""
        cells, method = Checkpoint(self.checkpoint), {**METHODS, **baselines()}[name]
        which, first = (task, name, trial.kappa), Trial(trial.kappa, trial.passes)
        rows = digest_of(KNOWN[task], self.root) if self.checkpoint else None
        key: dict[str, Any] = {"method": name, "rows": self.max_rows, "data": rows}
        if which not in self._settings:
            self._settings[which] = piece(
                cells, lambda: choose(method, self._split(task, 0), first), chosen=asdict(first), **key
            )
        settings = self._settings[which]
        key |= {**asdict(trial), "settings": settings, "timed": timed}
        del key["limit"]  # it follows from other times
        return piece(cells, lambda: method.run(self._split(task, trial.seed), trial, settings), **key)

    def runs(self, methods: Sequence[str], passes: tuple[int, ...]) -> dict[str, dict[str, list[Any]]]:
        """Return the curves of each method on each split, task by task."""
        found: dict[str, dict[str, list[Any]]] = {task: {name: [] for name in methods} for task in self.there}
        for task, seed, name in track(list(product(self.there, range(self.seeds), methods)), "splits"):
            found[task][name].append(self.run(task, name, Trial(passes=passes, seed=seed)))
        return found

    def _split(self, task: str, seed: int) -> Split:
        return split_of(KNOWN[task], self.root, seed, self.max_rows)


def in_lab(**usual: Any) -> Callable[[Callable[[Any], Exhibit]], Callable[..., Exhibit]]:
    """Let a function of a lab take the lab's fields as its options, some with other usual values."""

    def decorate(make: Callable[[Any], Exhibit]) -> Callable[..., Exhibit]:
        lab = partial(Lab, **usual)

        @wraps(make)
        def made(*args: Any, **options: Any) -> Exhibit:
            return make(lab(*args, **options))

        made.__signature__ = inspect.signature(lab)  # type: ignore[attr-defined]
        return made

    return decorate


@in_lab()
def fig2(lab: Lab) -> Exhibit:
    """Fig. 2: precision@0.25 against training time, every method on every task."""
    names = (*METHODS, *baselines())
    curves = lab.runs(names, (*(n for n in (1, 3, 8) if n < lab.passes), lab.passes))

    def looked(what: str, at: int) -> Found:
        return {t: {m: np.array([run[what][at] for run in runs]) for m, runs in f.items()} for t, f in curves.items()}

    ends, cost, early = looked("precision", -1), looked("seconds", -1), looked("precision", 0)
    rows: list[list[Any]] = [
        [KNOWN[task].title, name, *interval(ends[task][name]), float(cost[task][name].mean())]
        for task, name in product(curves, names)
    ]
    drawn = [
        _panel(task, {name: _against_time(runs) for name, runs in found.items()}, "training time (CPU s)", "0.25", "x")
        for task, found in curves.items()
    ]
    title = f"Fig. 2: prec@0.25 on the test part, {lab.seeds} random 70/30 splits, at most {lab.passes} passes, b = 500"
    table = Table(("task", "method", "prec@0.25", "± (95%)", "CPU seconds"), rows)
    drawing, claims = panels(*drawn, legend="below"), _findings(ends, cost, early)
    return Exhibit("fig2", title, {"curves": curves}, table, lab.notes, drawing, claims)


def _panel(task: str, curves: Mapping[str, Any], xlabel: str, at: str, log: str) -> Panel:
    return Panel(curves, (), xlabel, f"prec@{at} on the test part", KNOWN[task].title, log, (-0.02, 1.02), STYLES)


def _against_time(runs: Sequence[Mapping[str, Sequence[float]]]) -> tuple[Any, Any, Any]:
    length = min(len(run["seconds"]) for run in runs)
    seconds, heights = (np.array([run[what][:length] for run in runs]) for what in ("seconds", "precision"))
    return seconds.mean(axis=0), heights.mean(axis=0), [*[0.0] * (length - 1), interval(heights[:, -1])[1]]


@judge
def _findings(reached: Found, spent: Found, first: Found) -> Said:
    """The paper's findings with its methods as they return their weights, by 95% intervals over the splits."""
    reached, spent, first = ({KNOWN[t].title: each for t, each in found.items()} for found in (reached, spent, first))
    means = {task: {name: float(np.mean(found[name])) for name in PAPER} for task, found in reached.items()}
    best = {task: max(found, key=lambda name: found[name]) for task, found in means.items()}
    tell = partial(spreads, digits=3)
    for lead, one, other in (
        ("A tighter surrogate is better: Perceptron@k-avg is above Perceptron@k-max", PERCEPTRON_AVG, PERCEPTRON_MAX),
        ("A tighter surrogate is better: SGD@k-avg is above SGD@k-max", SGD_AVG, SGD_MAX),
        ("A stochastic solver does not make up for struct: SGD@k-avg is above 1PMB", SGD_AVG, "1PMB"),
    ):
        gaps = {task: found[one] - found[other] for task, found in reached.items()}
        yield f"{lead} on every task.", every(map(surely, gaps.values())), tell(gaps)
    gaps = {task: found[PERCEPTRON_MAX] - found[PERCEPTRON_AVG] for task, found in reached.items()}
    sure, text = {*map(surely, gaps.values())}, "At times, on some task, Perceptron@k-max outperforms Perceptron@k-avg."
    yield text, True if True in sure else None if None in sure else False, tell(gaps)
    behind = {task: {name: found[best[task]] - mean for name, mean in found.items()} for task, found in means.items()}
    pairs = {t: [max(f[a], f[b]) for a, b in (NEW[:2], NEW[2:])] for t, f in behind.items()}
    told = "; ".join(f"{task} {a:.3f} against {b:.3f}" for task, (a, b) in pairs.items())
    text = "The avg methods are the most consistent: the worse of the two is never further from the best of the six"
    yield f"{text} than the worse of the max methods.", all(a <= b for a, b in pairs.values()), f"{told} (means)."
    gaps = {t: found[best[t]] - np.maximum(found["1PMB"], found["SVMPerf"]) for t, found in reached.items()}
    text = "1PMB and SVMPerf frequently converge to worse solutions: on more than half of the tasks both are more than"
    stuck = [surely(gap, 0.01) for gap in gaps.values()]
    worse = stuck.count(True) > len(stuck) / 2 or (None if stuck.count(False) < len(stuck) / 2 else False)
    yield f"{text} .01 below the best of the six.", worse, tell(gaps)
    gaps = {t: found["SVMPerf"] - np.max([found[n] for n in BATCHED], axis=0) for t, found in spent.items()}
    text = "SVMPerf costs the most of the six on every task (CPU s)."
    yield text, every(map(surely, gaps.values())), f"More than the dearest of the others by: {spreads(gaps, 2)}"
    for text, whom in (
        ("After one pass SGD@k-avg is at most .02 behind SVMPerf at its end", dict.fromkeys(best, "SVMPerf")),
        ("Mini-batches converge rapidly: after one pass SGD@k-avg is at most .02 behind the best of the six", best),
    ):
        gaps = {task: found[SGD_AVG] - reached[task][whom[task]] for task, found in first.items()}
        yield f"{text}, on every task.", every(surely(gap, -0.02) for gap in gaps.values()), tell(gaps)


@in_lab()
def fig3(lab: Lab) -> Exhibit:
    """Fig. 3: precision@κ for several κ (SVMPerf with fifty times the time), and prec@0.25 by batch length."""
    usual = Trial(passes=(lab.passes,), cuts=(5, 20, 50, 200, 1000))
    kappas = [(kappa, usual.batch_size) for kappa in lab.kappas]
    lengths = [(usual.kappa, length) for length in lab.lengths]
    reached: dict[tuple[str, str, float, int], list[float]] = {}
    cells = dict.fromkeys([*kappas, *lengths])
    for task, seed, (kappa, length) in track(list(product(lab.there, range(lab.seeds), cells)), "fig3"):
        slowest = 0.0
        for name in BATCHED if length != usual.batch_size else PAPER:
            # SVMPerf comes last: it gets fifty times what the slowest of the others took.
            last = name == "SVMPerf"
            limit = ALLOWANCE * slowest if last else np.inf
            trial = replace(usual, kappa=kappa, batch_size=length, seed=seed, limit=limit)
            curve = lab.run(task, name, trial, timed=last)
            slowest = max(slowest, curve["seconds"][-1])
            reached.setdefault((task, name, kappa, length), []).append(curve["precision"][-1])

    def swept(task: str, names: Sequence[str], places: Sequence[tuple[float, int]]) -> dict[str, Any]:
        return {name: [interval(reached[task, name, *place]) for place in places] for name in names}

    by_kappa = {task: swept(task, PAPER, kappas) for task in lab.there}
    by_length = {task: swept(task, BATCHED, lengths) for task in lab.there}
    sides = (lab.kappas, by_kappa, ("κ", "κ", "")), (lab.lengths, by_length, ("batch length b", "0.25", "x"))
    drawn = [
        _panel(task, {name: (axis, *np.array(runs).T) for name, runs in methods.items()}, *labels)
        for axis, found, labels in sides
        for task, methods in found.items()
    ]
    none = [(None, None)] * len(lengths)
    rows = [
        [KNOWN[task].title, name, *(mean for mean, _ in (*by_kappa[task][name], *by_length[task].get(name, none)))]
        for task, name in product(lab.there, PAPER)
    ]
    places = (*(f"κ = {kappa:g}" for kappa in lab.kappas), *(f"b = {length}" for length in lab.lengths))
    title = f"Fig. 3: prec@κ against κ (b = 500), and prec@0.25 against the batch length; {lab.seeds} splits"
    data = {"kappas": lab.kappas, "lengths": lab.lengths, "by_kappa": by_kappa, "by_length": by_length}
    table, drawing = Table(("task", "method", *places), rows, digits=2), panels(*drawn, legend="below")
    told = f"SVMPerf has no batches, and may take {ALLOWANCE} times as long as the slowest of the others."
    notes = (f"{told} 95% intervals are in the figure.", *lab.notes)
    above = [
        surely(np.subtract(reached[task, name, *place], reached[task, "SVMPerf", *place]))
        for task, name, place in product(lab.there, NEW, kappas)
    ]
    return Exhibit("fig3", title, data, table, notes, drawing, _swept(above, by_length, lab.lengths))


@judge
def _swept(above: Sequence[bool | None], by_length: Found, lengths: Sequence[int]) -> Said:
    text = "The methods with the new surrogates consistently outperform SVMPerf over κ."
    told = (
        f"They are above it in {above.count(True)} and below it in {above.count(False)} of {len(above)} cells (task ×"
    )
    yield text, every(above), f"{told} κ × four methods), by the 95% interval over the splits."
    spans = {}
    for task, methods in by_length.items():
        for name, runs in ((name, np.array(runs)[:, 0]) for name, runs in methods.items() if name != "1PMB"):
            spans[f"{name} on {KNOWN[task].title}"] = 1 - runs.min() / max(runs.max(), 1e-300)
    worst, steady = max(spans, key=lambda name: spans[name]), sum(span < 0.05 for span in spans.values())
    told = f"Lengths {lengths[0]} to {lengths[-1]}: below 5% in {steady} of {len(spans)} cases; the largest is"
    text = "Perceptrons and SGD vary by less than 5% in precision across batch lengths."
    yield text, steady == len(spans), f"{told} {spans[worst]:.1%} ({worst})."


@in_lab(tasks=tuple(COVERTYPE), seeds=3, max_rows=100_000)
def covertype(lab: Lab) -> Exhibit:
    """Covertype class by class, as the paper does not say which one is positive: prec@0.25 of its methods."""
    found = lab.runs(PAPER, (lab.passes,))
    values = {t: {m: [run["precision"][-1] for run in runs] for m, runs in f.items()} for t, f in found.items()}
    rows: list[list[Any]] = []
    for task, reached in values.items():
        share = float(rows_of(KNOWN[task], lab.root)[1].mean())
        rows.append([task[-1], share, *(float(np.mean(each)) for each in reached.values())])
    title = f"Covertype: each class against the rest, prec@0.25, {lab.seeds} splits of {lab.max_rows or 581_012:,} rows"
    notes = ("The paper speaks of rare classes and names neither the class nor its share.",)
    return Exhibit("covertype", title, values, Table(("class", "share of positives", *PAPER), rows), notes)
