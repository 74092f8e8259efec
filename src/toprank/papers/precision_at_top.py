"""Precision at the top, recomputed: precision against time, the sweeps, and the counterexample to struct.

Every finished (task, method, seed) is kept as a small file, so that an interrupted run goes on where it was. Data sets
that are not in the data folder are named and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from .._progress import track
from .._tables import Table
from .._typing import Floats, Matrix
from ..errors import InputError
from ..surrogates.precision_at_k import PrecAvg, PrecisionSurrogate, PrecStruct
from ._top_drawing import draw_counterexample, draw_curves, draw_sweeps
from ._top_methods import METHODS, Method, Trial, choose, installed_baselines, interval
from ._top_tasks import TASKS, Split, data_folder, split
from .base import Checkpoint, Exhibit

_NEWEST = 1
"""Raised when the experiments change, so that stored pieces of an older run are not taken for theirs."""


def fig2(
    data: str | None = None,
    *,
    checkpoint: Path | None = None,
    tasks: Sequence[str] | None = None,
    seeds: int = 5,
    passes: int = 25,
    max_rows: int | None = None,
) -> Exhibit:
    """Precision@0.25 against training time, every method on every task (Figure 2)."""
    lab = _Lab(data, checkpoint, tasks, seeds, max_rows)
    methods = {**METHODS, **installed_baselines()}
    jobs = [(task, name, seed) for task in lab.tasks for seed in range(seeds) for name in methods]
    curves: dict[str, dict[str, list[Any]]] = {task: {name: [] for name in methods} for task in lab.tasks}
    for task, name, seed in track(jobs, "fig2"):
        curves[task][name].append(lab.run(task, name, methods[name], Trial(passes=passes, seed=seed)))
    rows: list[list[Any]] = []
    for task in lab.tasks:
        for name in methods:
            mean, half = interval([curve["precision"][-1] for curve in curves[task][name]])
            seconds = float(np.mean([curve["seconds"][-1] for curve in curves[task][name]]))
            rows.append([TASKS[task].title, name, mean, half, seconds])
    final = {task: {name: [c["precision"][-1] for c in runs] for name, runs in curves[task].items()} for task in curves}
    return Exhibit(
        name="fig2",
        title=f"Precision@0.25 on the test part, {seeds} random 70/30 splits, at most {passes} passes, b = 500",
        data={"curves": curves},
        table=Table(("task", "method", "prec@0.25", "± (95%)", "CPU seconds"), rows),
        notes=(*findings(final, curves), *lab.notes),
        draw=lambda figure: draw_curves(figure, curves),
    )


def fig3(
    data: str | None = None,
    *,
    checkpoint: Path | None = None,
    tasks: Sequence[str] | None = None,
    seeds: int = 5,
    passes: int = 25,
    max_rows: int | None = None,
    kappas: Sequence[float] = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0),
    lengths: Sequence[int] = (100, 200, 500, 1000, 2000, 5000),
) -> Exhibit:
    """Precision@κ for several κ, and precision@0.25 for several batch lengths (Figure 3)."""
    lab = _Lab(data, checkpoint, tasks, seeds, max_rows)
    swept = [name for name in METHODS if "averaged" in name or name.startswith(("SGD", "SVMPerf"))]
    online = [name for name in swept if not name.startswith("SVMPerf")]
    asked = [(name, Trial(kappa=kappa, passes=passes)) for kappa in kappas for name in swept]
    asked += [(name, Trial(batch_size=length, passes=passes)) for length in lengths for name in online]
    reached: dict[tuple[str, str, float, int], dict[int, float]] = {}
    jobs = [(task, seed, name, trial) for task in lab.tasks for seed in range(seeds) for name, trial in asked]
    for task, seed, name, trial in track(jobs, "fig3"):
        curve = lab.run(task, name, METHODS[name], replace(trial, seed=seed))
        reached.setdefault((task, name, trial.kappa, trial.batch_size), {})[seed] = curve["precision"][-1]
    usual = Trial()

    def sweep(names: Sequence[str], places: Sequence[tuple[float, int]]) -> dict[str, Any]:
        return {
            task: {n: [interval([*reached[task, n, kappa, b].values()]) for kappa, b in places] for n in names}
            for task in lab.tasks
        }

    by_kappa = sweep(swept, [(kappa, usual.batch_size) for kappa in kappas])
    by_length = sweep(online, [(usual.kappa, length) for length in lengths])
    rows = [
        [TASKS[task].title, name, f"κ = {k:g}", mean, half]
        for task in lab.tasks
        for name in swept
        for k, (mean, half) in zip(kappas, by_kappa[task][name], strict=True)
    ]
    rows += [
        [TASKS[task].title, name, f"b = {b}", mean, half]
        for task in lab.tasks
        for name in online
        for b, (mean, half) in zip(lengths, by_length[task][name], strict=True)
    ]
    return Exhibit(
        name="fig3",
        title=f"Precision@κ against κ (b = 500), and precision@0.25 against the batch length; {seeds} splits",
        data={"kappas": list(kappas), "lengths": list(lengths), "by_kappa": by_kappa, "by_length": by_length},
        table=Table(("task", "method", "at", "precision", "± (95%)"), rows),
        notes=(*_stability(by_length, lengths), *lab.notes),
        draw=lambda figure: draw_sweeps(figure, kappas, lengths, by_kappa, by_length),
    )


class _Lab:
    """The tasks that are there, their splits, and the results that are kept."""

    def __init__(
        self, data: str | None, checkpoint: Path | None, tasks: Sequence[str] | None, seeds: int, max_rows: int | None
    ) -> None:
        self.root, self.max_rows = data_folder(data), max_rows
        wanted = list(tasks or TASKS)
        unknown = [name for name in wanted if name not in TASKS]
        if unknown:
            raise InputError(f"unknown task {unknown[0]!r}: known are {', '.join(TASKS)}")
        self.tasks = [name for name in wanted if TASKS[name].paths(self.root) is not None]
        if not self.tasks:
            raise InputError(f"none of {', '.join(wanted)} is in {self.root}")
        absent = [TASKS[name].title for name in wanted if name not in self.tasks]
        self.notes = (f"Left out, not in the data folder: {', '.join(absent)}.",) if absent else ()
        self.cells = Checkpoint(checkpoint)
        self._settings: dict[tuple[str, str, float], Any] = {}

    def run(self, task: str, name: str, method: Method, trial: Trial) -> Any:
        """Return the curve of one method on one split; settings are chosen once per task, on the first seed's rows."""
        key = {"version": _NEWEST, "task": task, "method": name, "rows": self.max_rows, "passes": trial.passes}
        asked = {"kappa": trial.kappa, "batch_size": trial.batch_size}
        which = (task, name, trial.kappa)
        if which not in self._settings:
            first = Trial(trial.kappa, trial.passes)
            self._settings[which] = self.cells.get(
                {**key, "kappa": trial.kappa, "what": "settings"},
                lambda: dict(choose(method, self._split(task, 0), first)),
            )
        settings = self._settings[which]
        return self.cells.get(
            {**key, **asked, "seed": trial.seed, "what": "curve"},
            lambda: method.run(self._split(task, trial.seed), trial, settings),
        )

    def _split(self, task: str, seed: int) -> Split:
        return _parts(task, self.root, seed, self.max_rows)


@lru_cache(maxsize=1)
def _parts(task: str, root: Path, seed: int, max_rows: int | None) -> Split:
    parts = split(*_rows(task, root), seed, max_rows=max_rows)
    return parts.scaled() if TASKS[task].scale else parts


@lru_cache(maxsize=1)
def _rows(task: str, root: Path) -> tuple[Matrix, Floats]:
    return TASKS[task].read(root)


def findings(final: Mapping[str, Mapping[str, Sequence[float]]], curves: Mapping[str, Any]) -> list[str]:
    """Hold the paper's three findings against what came out, task by task."""
    wins, stuck, fast = [], [], []
    for task, by_name in final.items():
        best = {
            family: max(
                (float(np.mean(by_name[n])), n) for n in by_name if n in METHODS and METHODS[n].family == family
            )
            for family in ("avg", "max", "struct")
        }
        title = TASKS[task].title
        order = " > ".join(f"{best[f][1]} {best[f][0]:.3f}" for f in sorted(best, key=lambda f: -best[f][0]))
        wins.append(f"{title}: {order}")
        stochastic, tight = float(np.mean(by_name["1PMB"])), best["avg"][0]
        stuck.append(f"{title} {stochastic:.3f} against {tight:.3f}")
        early, late = (_point(curves[task]["SGD@k-avg"], at) for at in (0, -1))
        fast.append(f"{title} {early}, then {late}, against {_point(curves[task]['SVMPerf'], -1)}")
    said = [
        "1. A tighter surrogate is better – best of each family, best first. " + "; ".join(wins) + ".",
        "2. A stochastic solver does not make up for struct – 1PMB against the best avg-based method: "
        + "; ".join(stuck)
        + ".",
        "3. Mini-batches are fast – SGD@k-avg after one pass and after all, against SVMPerf: " + "; ".join(fast) + ".",
    ]
    blank = [task for task in final if np.mean(final[task]["SVMPerf with avg"]) < np.mean(final[task]["SVMPerf"])]
    if blank:
        said.append(
            f"The exact minimiser of avg (SVMPerf with avg) is worse than struct's on {_titles(blank)}: where the "
            "classes overlap, no direction has an avg loss below that of w = 0, and the minimiser says nothing. The "
            "batch methods minimise the same loss and rank well because they stop long before."
        )
    return said


def _point(runs: Sequence[Mapping[str, Sequence[float]]], at: int) -> str:
    precision, seconds = (float(np.mean([run[name][at] for run in runs])) for name in ("precision", "seconds"))
    return f"{precision:.3f} in {seconds:.3f} s"


def _titles(tasks: Sequence[str]) -> str:
    return ", ".join(TASKS[task].title for task in tasks)


def _stability(by_length: Mapping[str, Any], lengths: Sequence[int]) -> list[str]:
    """The paper: less than 5% relative variation across batch lengths."""
    spans = {
        f"{name} on {TASKS[task].title}": (max(m for m, _ in runs) - min(m for m, _ in runs)) / max(m for m, _ in runs)
        for task, methods in by_length.items()
        for name, runs in methods.items()
    }
    worst = max(spans, key=lambda name: spans[name])
    steady = sum(span < 0.05 for span in spans.values())
    return [
        f"Batch lengths {lengths[0]} to {lengths[-1]}: the relative variation is below 5% in {steady} of {len(spans)} "
        f"cases; the largest is {spans[worst]:.1%} ({worst})."
    ]


def counterexample() -> Exhibit:
    """Struct is no upper bound and its minimiser is wrong, where avg and a margin are right (Section 3.1).

    Three positives at (1, 0), a negative at (2, −½), k = 1. Along (0, 1) every positive lies above the negative. But
    with three positives and one place, struct = max(s⁺, s⁻ + 1) − 3 s⁺ pays for pushing all of them up the first axis,
    and the negative goes up twice as fast: its minimiser in every ball ranks the negative first.
    """
    from ..rankers.svmperf import SVMPerf

    X, y, k, C = np.array([[1.0, 0.0]] * 3 + [[2.0, -0.5]]), np.array([1.0, 1.0, 1.0, 0.0]), 1, 5.0
    found = {name: SVMPerf(name, k=k, C=C).fit(X, y).coef_ for name in ("struct", "avg")}
    right = np.array([0.0, 5.0])
    losses: dict[str, PrecisionSurrogate] = {"struct": PrecStruct(k=k), "avg": PrecAvg(k=k)}
    rows: list[list[Any]] = []
    for who, w in (("(0, 5), which separates", right), *((f"minimiser of {n}", w) for n, w in found.items())):
        s = X @ w
        values = [loss.value_and_grad(s, y, [0, 4])[0] for loss in losses.values()]
        rows.append([who, f"({w[0]:.2f}, {w[1]:.2f})", float(s[3] > s[0]), *values])
    return Exhibit(
        name="counterexample",
        title="Where struct goes wrong: positives (1, 0) three times, negative (2, −½), k = 1",
        data={"X": X.tolist(), "y": y.tolist(), "k": k, "C": C, "right": right, **found},
        table=Table(("w", "weights", "negatives in the top 1", "struct", "avg"), rows, digits=3),
        notes=("Struct falls below the loss it should bound, and its minimiser ranks the negative first.",),
        draw=lambda figure: draw_counterexample(figure, X, y, losses, found, right, C),
    )


FIGURES: dict[str, Callable[..., Exhibit]] = {"fig2": fig2, "fig3": fig3, "counterexample": counterexample}
