"""The methods of the precision-at-the-top experiments, each as a curve of precision against training time.

A method is looked at after some amounts of work, each run from the start. Time is that of the processor, which other
work on the machine does not change, and compiling is not counted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..._typing import Floats
from ...measures.binary import PAtShare
from ...rankers import OnePassMiniBatch, PerceptronAtK, SGDAtK, SVMPerf
from .tasks import Split, split

Settings = dict[str, float]
Curve = dict[str, list[float]]

ALLOWANCE = 50
"""SVMPerf may take this many times as long as the slowest of the batch methods; the paper stopped it there."""


@dataclass(frozen=True)
class Trial:
    """What is asked of a method: the share of positives that counts, how much work, in which batches."""

    kappa: float = 0.25
    passes: tuple[int, ...] = (1, 3, 8, 25)
    """After how many passes the batch methods are looked at."""
    batch_size: int = 500
    seed: int = 0
    cuts: tuple[int, ...] = (5, 20, 50, 200)
    """After how many cutting planes SVMPerf is looked at."""
    limit: float = np.inf
    """CPU seconds after which SVMPerf is not run further."""

    def precision(self, scores: Floats, y: Floats) -> float:
        """Return prec@κ on the test part, ties in any order."""
        return PAtShare(share=self.kappa).mean(scores, y, np.array([0, len(y)]))


@dataclass(frozen=True)
class Method:
    """A learner: what it is after some amount of work, what it may choose its settings from, and how it is drawn."""

    make: Callable[[Trial, Settings, int], Any]
    grid: Sequence[Settings] = ({},)
    family: str = "other"
    planes: bool = False
    """Whether work is counted in cutting planes, and not in passes."""

    def run(self, parts: Split, trial: Trial, settings: Settings) -> Curve:
        """Return CPU seconds and precision after each amount of work."""
        curve: Curve = {"seconds": [], "precision": []}
        efforts = (0,) if self.family == "other" else trial.cuts if self.planes else trial.passes
        few = np.concatenate([np.flatnonzero(parts.y > 0)[:5], np.flatnonzero(parts.y <= 0)[:5]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a few planes are too few, batches of one class: part of the trial
            if self.family != "other":
                self.make(trial, settings, 1).fit(parts.X[few], parts.y[few])  # compiled before the clock starts
            for effort in efforts:
                model = self.make(trial, settings, effort)
                start = time.process_time()
                model.fit(parts.X, parts.y)
                curve["seconds"].append(time.process_time() - start)
                curve["precision"].append(trial.precision(_scores(model, parts.X_test), parts.y_test))
                solution = getattr(model, "solution_", None)
                if curve["seconds"][-1] > trial.limit or (solution is not None and solution.converged):
                    break
        return curve


def _scores(model: Any, X: Any) -> Floats:
    scores = model.decision_function(X) if hasattr(model, "decision_function") else model.predict_proba(X)[:, 1]
    return np.asarray(scores, dtype=np.float64)


def _batches(kind: Any, **given: Any) -> Callable[[Trial, Settings, int], Any]:
    def make(trial: Trial, settings: Settings, passes: int) -> Any:
        own = {**given, **settings}
        return kind(kappa=trial.kappa, batch_size=trial.batch_size, epochs=passes, random_state=trial.seed, **own)

    return make


def _svmperf(loss: Any) -> Callable[[Trial, Settings, int], Any]:
    return lambda trial, settings, cuts: SVMPerf(loss, kappa=trial.kappa, max_iter=cuts, C=settings["C"])


_ETAS = tuple({"eta": eta} for eta in (0.1, 1.0, 10.0, 100.0))
_BALLS = tuple({"radius": radius, "eta": radius} for radius in (1.0, 10.0, 100.0))
_CS = tuple({"C": C} for C in (0.01, 1.0, 100.0))

PERCEPTRON_AVG, PERCEPTRON_MAX = "Perceptron@k-avg (Algorithm 1)", "Perceptron@k-max (Algorithm 2)"
SGD_AVG, SGD_MAX = "SGD@k-avg (Algorithm 3)", "SGD@k-max"
METHODS = {
    PERCEPTRON_AVG: Method(_batches(PerceptronAtK, variant="avg", average=False), family="avg"),
    "Perceptron@k-avg, averaged": Method(_batches(PerceptronAtK, variant="avg"), family="avg"),
    SGD_AVG: Method(_batches(SGDAtK, variant="avg"), _ETAS, "avg"),
    PERCEPTRON_MAX: Method(_batches(PerceptronAtK, variant="max", average=False), family="max"),
    "Perceptron@k-max, averaged": Method(_batches(PerceptronAtK, variant="max"), family="max"),
    SGD_MAX: Method(_batches(SGDAtK, variant="max"), _ETAS, "max"),
    "1PMB": Method(_batches(OnePassMiniBatch), _BALLS, "struct"),
    "SVMPerf": Method(_svmperf("struct"), _CS, "struct", planes=True),
    "SVMPerf with avg": Method(_svmperf("avg"), _CS, "avg", planes=True),
}
"""The paper's six, as they return their weights, with averaged perceptrons and the exact minimiser of avg beside."""
PAPER = (PERCEPTRON_AVG, SGD_AVG, PERCEPTRON_MAX, SGD_MAX, "1PMB", "SVMPerf")
BATCHED = tuple(name for name in PAPER if name != "SVMPerf")
_COLOURS = {"avg": "C0", "max": "C3", "struct": "C7"}
STYLES = {
    name: f"{_COLOURS[method.family]}{mark}{'--' if 'averaged' in name or 'with' in name else '-'}"
    for (name, method), mark in zip(METHODS.items(), "osDv^<PX*", strict=True)
}
STYLES |= {"logistic regression": "C1h", "LinearSVC": "C2h", "SGDClassifier": "C4h", "LightGBM": "C5h"}
"""A colour for each surrogate; dashed is what the paper does not have."""


def baselines() -> dict[str, Method]:
    """Return what a user would otherwise take, as it comes, where its package is there."""
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.svm import LinearSVC

    found = {
        "logistic regression": Method(lambda *_: LogisticRegression(max_iter=1000)),
        "LinearSVC": Method(lambda *_: LinearSVC(dual=False)),
        "SGDClassifier": Method(lambda trial, *_: SGDClassifier(random_state=trial.seed)),
    }
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier

        found["LightGBM"] = Method(lambda trial, *_: LGBMClassifier(verbose=-1, n_jobs=1, random_state=trial.seed))
    return found


def choose(method: Method, parts: Split, trial: Trial) -> Settings:
    """Return the settings that are most precise on a fifth of the training rows, held out."""
    if len(method.grid) == 1:
        return method.grid[0]
    inner = split(parts.X, parts.y, trial.seed, share=0.8)
    short = replace(trial, passes=(min(trial.passes[-1], 8),), cuts=trial.cuts[-2:-1] or trial.cuts)
    return max(method.grid, key=lambda settings: method.run(inner, short, settings)["precision"][-1])
