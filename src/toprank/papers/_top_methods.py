"""The methods of the precision-at-the-top experiments, each as a curve of precision against training time.

Time is that of the processor, which other work on the machine does not change, and compiling is not counted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..rankers.scoring import mean_of_rows
from ..rankers.svmperf import SVMPerf
from ..rankers.two_classes import TopPrecision
from ..solvers.sgd import Batches, State, Steps, sweep
from ..surrogates.precision_at_k import Rule
from ._top_tasks import Split, split

Settings = Mapping[str, float]
Curve = dict[str, list[float]]


@dataclass(frozen=True)
class Trial:
    """What is asked of a method: the share of positives that counts, how many passes, in which batches."""

    kappa: float = 0.25
    passes: int = 25
    batch_size: int = 500
    seed: int = 0
    cuts: tuple[int, ...] = (5, 20, 50, 200)
    """After how many cutting planes SVMperf is looked at."""


@dataclass(frozen=True)
class Method:
    """A learner: how it runs, what it may choose its settings from, and how it is drawn."""

    run: Callable[[Split, Trial, Settings], Curve]
    grid: Sequence[Settings] = ({},)
    family: str = "other"


def _precision(scores: Floats, y: Floats, trial: Trial) -> float:
    return mean_of_rows(TopPrecision(kappa=trial.kappa), scores, y, None)


def _online(rule: Rule, *, average: bool) -> Callable[[Split, Trial, Settings], Curve]:
    """Passes over shuffled batches; the clock runs while learning and stands still while testing."""

    def run(parts: Split, trial: Trial, settings: Settings) -> Curve:
        gradient = rule in (Rule.AVG, Rule.MAX, Rule.STRUCT)
        steps = Steps(
            rule,
            0,
            trial.kappa,
            eta=settings.get("eta", 1.0),
            decay=0.5 if gradient else 0.0,
            normalize=gradient,
            radius=settings.get("radius", np.inf),
        )
        batches = Batches.of(QueryDataset.from_arrays(parts.X, parts.y), trial.batch_size)
        rng = np.random.default_rng(trial.seed)
        state, spent, curve = State.zero(parts.X.shape[1]), 0.0, _empty()
        sweep(batches, np.zeros(1, dtype=np.int64), steps, state)  # compiled before the clock starts
        for part, order in batches.epochs(trial.passes, "batches", rng):
            start = time.process_time()
            state, _ = sweep(part, order, steps, state)
            spent += time.process_time() - start
            w = state.average if average else state.w
            _add(curve, spent, _precision(parts.X_test @ w, parts.y_test, trial))
        return curve

    return run


def _cutting_planes(variant: Any) -> Callable[[Split, Trial, Settings], Curve]:
    """The whole training part as one list; looked at after some numbers of planes, each run from the start."""

    def run(parts: Split, trial: Trial, settings: Settings) -> Curve:
        curve = _empty()
        pair = np.array([np.argmin(parts.y), np.argmax(parts.y)])
        _cut_short(SVMPerf(variant, max_iter=1), parts.X[pair], parts.y[pair])  # compiled before the clock starts
        for cuts in trial.cuts:
            ranker = SVMPerf(variant, kappa=trial.kappa, C=settings["C"], max_iter=cuts)
            start = time.process_time()
            _cut_short(ranker, parts.X, parts.y)
            _add(curve, time.process_time() - start, _precision(ranker.predict(parts.X_test), parts.y_test, trial))
            if ranker.solution_.converged:
                break
        return curve

    return run


def _cut_short(ranker: SVMPerf, X: Any, y: Any) -> None:
    """Fit without a word about a few planes being too few."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranker.fit(X, y)


def _classifier(make: Callable[[int], Any]) -> Callable[[Split, Trial, Settings], Curve]:
    """What a user would otherwise take, as it comes; one point."""

    def run(parts: Split, trial: Trial, settings: Settings) -> Curve:
        model, curve = make(trial.seed), _empty()
        start = time.process_time()
        model.fit(parts.X, parts.y)
        spent = time.process_time() - start
        if hasattr(model, "decision_function"):
            scores = model.decision_function(parts.X_test)
        else:
            scores = model.predict_proba(parts.X_test)[:, 1]
        _add(curve, spent, _precision(scores, parts.y_test, trial))
        return curve

    return run


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def _linear_svc(seed: int) -> Any:
    from sklearn.svm import LinearSVC

    return LinearSVC(dual=False)


def _sgd_classifier(seed: int) -> Any:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(random_state=seed)


def _lightgbm(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, verbose=-1, n_jobs=1)


_ETAS = tuple({"eta": eta} for eta in (0.1, 1.0, 10.0, 100.0))
_BALLS = tuple({"radius": radius, "eta": radius} for radius in (1.0, 10.0, 100.0))
_CS = tuple({"C": C} for C in (0.01, 1.0, 100.0))

METHODS = {
    "Perceptron@k-avg": Method(_online(Rule.PERCEPTRON_AVG, average=False), family="avg"),
    "Perceptron@k-avg, averaged": Method(_online(Rule.PERCEPTRON_AVG, average=True), family="avg"),
    "SGD@k-avg": Method(_online(Rule.AVG, average=True), _ETAS, "avg"),
    "Perceptron@k-max": Method(_online(Rule.PERCEPTRON_MAX, average=False), family="max"),
    "Perceptron@k-max, averaged": Method(_online(Rule.PERCEPTRON_MAX, average=True), family="max"),
    "SGD@k-max": Method(_online(Rule.MAX, average=True), _ETAS, "max"),
    "1PMB": Method(_online(Rule.STRUCT, average=True), _BALLS, "struct"),
    "SVMPerf": Method(_cutting_planes("struct"), _CS, "struct"),
    "SVMPerf with avg": Method(_cutting_planes("avg"), _CS, "avg"),
}
BASELINES = {
    "logistic regression": Method(_classifier(_logistic)),
    "LinearSVC": Method(_classifier(_linear_svc)),
    "SGDClassifier": Method(_classifier(_sgd_classifier)),
    "LightGBM": Method(_classifier(_lightgbm)),
}


def installed_baselines() -> dict[str, Method]:
    """Return the baselines whose packages are there."""
    from importlib.util import find_spec

    return {name: m for name, m in BASELINES.items() if name != "LightGBM" or find_spec("lightgbm") is not None}


def choose(method: Method, parts: Split, trial: Trial) -> Settings:
    """Return the settings that are most precise on a fifth of the training rows, held out."""
    if len(method.grid) == 1:
        return method.grid[0]
    inner = split(parts.X, parts.y, trial.seed, share=0.8)
    short = replace(trial, passes=min(trial.passes, 10), cuts=trial.cuts[-2:-1] or trial.cuts)
    return max(method.grid, key=lambda settings: method.run(inner, short, settings)["precision"][-1])


def _empty() -> Curve:
    return {"seconds": [], "precision": []}


def _add(curve: Curve, seconds: float, precision: float) -> None:
    curve["seconds"].append(seconds)
    curve["precision"].append(precision)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean over seeds and half the width of its 95% interval (Student's t).

    >>> [round(v, 4) for v in interval([0.5, 0.6, 0.7])]
    [0.6, 0.2484]
    """
    from scipy.special import stdtrit

    array = np.asarray(values, dtype=np.float64)
    if len(array) < 2:
        return float(array.mean()), float("nan")
    spread = float(stdtrit(len(array) - 1, 0.975) * array.std(ddof=1) / np.sqrt(len(array)))
    return float(array.mean()), spread
