"""The search on one fold: every contestant's settings in a fixed order, chosen by the validation queries alone."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from .._checkpoint import Checkpoint
from .._progress import OnProgress
from .._typing import Floats
from .._version import __version__
from ..certificates.base import Certificate
from ..clicks.evaluation import CLICK_VALUE, choice_value
from ..data import linear
from ..data.dataset import PER_ROW, QueryDataset
from ..data.remote import RemoteMatrix
from ..data.sketch import row_marks
from ..errors import InputError, MissingExtraError
from ..interop.trees import BoostedTrees
from ..measures.base import Measure
from ..rankers.base import Ranker
from ..rankers.kernel import KernelSlamPerceptron
from ..rankers.online import OnlineRanker
from ..rankers.persistence import encode
from ..solvers.deadline import deadline, out_of_time
from ..statistics.evaluation import Report
from .base import Entrant
from .estimators import Guest
from .settings import Candidate, settings_of

MOST_POINTS = 300
"""Points of a learning curve; a longer one is thinned out evenly."""


@dataclass(frozen=True)
class Winner:
    """The setting of one contestant that did best on the validation queries of a fold, fitted."""

    ranker: Any
    """A ranker of ours, or a `Guest`."""
    valid: float
    """Mean measure on the validation queries, or the value of their clicks; NaN where none of them counts."""
    seconds: float
    """Time that this setting took to learn."""
    searched: float
    """Time that all its settings took."""
    processor: float
    """Processor seconds that all its settings took."""
    tried: int
    planned: int
    repeats: bool = True
    """Whether a fit that was done again (for a resumed run) reached the same value."""
    capped: bool = False
    """Whether the number of rounds ended boosting while the measure was still rising."""
    cut: int = 0
    """How many of its settings were stopped before they were done, because their time ran out."""


@dataclass(frozen=True)
class Failure:
    """Why a contestant could not take part."""

    reason: str


@dataclass(frozen=True)
class Trial:
    """One setting on one fold."""

    place: int
    valid: float
    seconds: float
    processor: float
    """Processor seconds."""
    error: str | None
    ranker: Any
    """None where the result comes from an earlier run."""
    cut: bool = False
    """Whether its time ran out."""


@dataclass(frozen=True)
class Search:
    """Settings level by level: first everybody's defaults, then everybody's second setting, and so on.

    A level is tried for everybody: nobody gets more tries for standing earlier in the list. `levels` are tried at most,
    so that the same seed chooses among the same settings on any machine, and no fit is stopped before it is done.

    Only where an allotment of processor seconds is given do choices depend on time. A level then starts only while the
    levels before it took less; the defaults are always tried. Each setting of a level may take an equal share of what
    is left; then batch solvers and boosting end with what they have (online learners make the passes they were given).
    Time is counted as it was stored, so a resumed run decides as it did before; a setting that was stopped is not
    stored.
    """

    measure: Measure
    candidates: Sequence[Candidate]
    state: Checkpoint
    on_progress: OnProgress
    levels: int | None = None

    def run(self, train: QueryDataset, valid: QueryDataset, allotment: float = inf, where: str = "") -> dict[str, Any]:
        """Return a `Winner` or a `Failure` for each contestant."""
        data = "" if self.state.folder is None else f"{fingerprint(train)}-{fingerprint(valid)}"
        trials: dict[str, list[Trial]] = {c.name: [] for c in self.candidates}
        given_up: set[str] = set()
        spent = 0.0
        levels = max(len(c.rankers) for c in self.candidates) if allotment > 0 else 1
        for level in range(levels if self.levels is None else min(levels, self.levels)):
            closed = level > 0 and spent >= allotment
            taking_part = sum(level < len(c.rankers) and c.name not in given_up for c in self.candidates)
            limit = (allotment - spent) / max(taking_part, 1) if allotment > 0 else inf
            for c in self.candidates:
                if level >= len(c.rankers):
                    continue
                if c.name in given_up or closed:
                    self.on_progress(f"{where}{c.name}", c.name)
                    continue
                self.on_progress(f"{where}{c.name}")
                try:
                    trial = self._stored_or_fitted(c, level, train, valid, data, limit)
                except MissingExtraError as error:
                    trial = Trial(level, -inf, 0.0, 0.0, str(error), None)
                    given_up.add(c.name)
                best = _best([*trials[c.name], trial])
                # One fitted ranker per contestant is held in memory.
                trials[c.name] = [t if t is best else replace(t, ranker=None) for t in (*trials[c.name], trial)]
                spent += trial.processor
                self.on_progress(f"{where}{c.name}", c.name, trial.seconds)
        return {c.name: self._winner(c, trials[c.name], train, valid) for c in self.candidates}

    def _stored_or_fitted(
        self, c: Candidate, place: int, train: QueryDataset, valid: QueryDataset, data: str, limit: float
    ) -> Trial:
        rule = str(self.measure) if valid.doc_weight is None else f"{CLICK_VALUE} for {self.measure}"
        key = None if self.state.folder is None else self._key(c.rankers[place], data, rule)
        found = None if key is None else self.state.find(key)
        if found is not None:
            value = np.nan if found["valid"] is None else float(found["valid"])
            took = float(found["seconds"]), float(found.get("processor", found["seconds"]))
            return Trial(place, value, *took, found["error"], None)
        trial = self._fitted(c, place, train, valid, limit)
        if key is not None and not trial.cut:
            kept = ("valid", "seconds", "processor", "error")
            self.state.get(key, lambda: {name: getattr(trial, name) for name in kept})
        return trial

    def _fitted(self, c: Candidate, place: int, train: QueryDataset, valid: QueryDataset, limit: float) -> Trial:
        _warm_up(c.rankers[place], train, valid)
        began = time.perf_counter(), time.process_time()
        ranker: Ranker | Guest | None = None
        value, cut, problem = np.nan, False, None
        try:
            with deadline(limit):
                ranker = fit(c.rankers[place], train, valid)
                cut = out_of_time()
            value = self.value(ranker, valid)
        except (InputError, ArithmeticError) as error:
            ranker, cut, problem = None, False, str(error)
        took = time.perf_counter() - began[0], time.process_time() - began[1]
        return Trial(place, value, *took, problem, ranker, cut)

    def _key(self, ranker: Ranker | Guest, data: str, rule: str) -> dict[str, Any] | None:
        """Return all that a result depends on; None where its parameters, or its code, are not plain data."""
        if isinstance(ranker, Guest):
            return None
        try:
            return {"toprank": __version__, **described(ranker), "measure": rule, "data": data}
        except InputError:
            return None

    def _winner(self, c: Candidate, trials: list[Trial], train: QueryDataset, valid: QueryDataset) -> Winner | Failure:
        best = _best(trials)
        if best is None:
            return Failure(trials[0].error or "it could not be fitted")
        ranker, repeats = best.ranker, True
        if ranker is None:
            self.on_progress(f"{c.name}, once more")
            ranker = fit(c.rankers[best.place], train, valid)
            repeats = bool(np.array_equal(self.value(ranker, valid), best.valid, equal_nan=True))
        return Winner(
            ranker=ranker,
            valid=best.valid,
            seconds=best.seconds,
            searched=sum(trial.seconds for trial in trials),
            processor=sum(trial.processor for trial in trials),
            tried=sum(c.sizes[: len(trials)]),
            planned=sum(c.sizes),
            repeats=repeats,
            capped=isinstance(ranker, BoostedTrees) and ranker.capped_,
            cut=sum(trial.cut for trial in trials),
        )

    def value(self, ranker: Ranker | Guest, valid: QueryDataset) -> float:
        """Return the mean measure on the validation queries, or the value of their clicks."""
        scores = ranker.predict_grouped(valid)
        if not np.isfinite(scores).all():
            raise InputError("its scores are not finite numbers")
        return choice_value(self.measure, scores, valid)


def described(ranker: Ranker) -> dict[str, Any]:
    """Return what a fit depends on besides the data, as plain data."""
    params = {name: encode(value, name) for name, value in ranker.get_params(deep=False).items()}
    return {"ranker": f"{type(ranker).__module__}.{type(ranker).__qualname__}", "params": params}


def fit(template: Ranker | Guest, train: QueryDataset, valid: QueryDataset) -> Ranker | Guest:
    """Fit a ranker with the same parameters; the validation queries also choose its epoch, round or C."""
    if isinstance(template, Guest):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # another library's: whether it converged is not ours to say
            return template.fit_queries(train, valid)
    ranker = type(template)(**template.get_params(deep=False))
    watches = not isinstance(ranker, KernelSlamPerceptron)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # A step size that overflows and weights that stay 0 are settings that lose, not news.
        warnings.simplefilter("ignore", (RuntimeWarning, UserWarning))
        return ranker.fit_queries(train, valid if watches else None)


def refitted(won: Winner, data: QueryDataset) -> Winner:
    """Fit a winner's setting again, to more queries: C and the number of rounds are those that were chosen."""
    return replace(won, ranker=learned_again(won.ranker, data))


def learned_again(ranker: Ranker | Guest, data: QueryDataset, seed: int | None = None) -> Ranker | Guest:
    """Return what was chosen, learned anew from other queries, and from another seed where one is given."""
    if isinstance(ranker, Guest):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ranker.refitted(data, seed)
    params = chosen_params(ranker)
    if seed is not None:
        params["random_state"] = seed
    with np.errstate(all="ignore"):
        return type(ranker)(**params).fit_queries(data)


def draws(ranker: Ranker | Guest) -> bool:
    """Say whether a seed is among the parameters of a contestant."""
    if isinstance(ranker, Guest):
        return ranker.random_state_name is not None
    return "random_state" in ranker.get_params(deep=False)


def chosen_params(ranker: Ranker) -> dict[str, Any]:
    """Return the parameters with which a fit needs no validation queries: C and the number of rounds as chosen."""
    params: dict[str, Any] = ranker.get_params(deep=False)
    if "C_" in vars(ranker):
        params["C"] = vars(ranker)["C_"]
    if "rounds" in params:
        params["rounds"] = max(1, ranker.n_iter_)
    return params


_warm: set[type[Ranker]] = set()


def _warm_up(template: Ranker | Guest, train: QueryDataset, valid: QueryDataset) -> None:
    """Fit to a few queries once, so that compiling kernels is in nobody's seconds."""
    if isinstance(template, Guest) or type(template) in _warm:
        return
    _warm.add(type(template))
    with suppress(InputError, ArithmeticError):
        fit(template, train[np.flatnonzero(train.informative)[:3]], valid[:1]).predict_grouped(valid[:1])


def _best(trials: list[Trial]) -> Trial | None:
    """Return the first of the best, None where every setting failed."""
    return max((trial for trial in trials if trial.error is None), key=_worth, default=None)


def _worth(trial: Trial) -> float:
    """What a trial reached; one on whose validation queries nothing counts is worth least."""
    return -inf if np.isnan(trial.valid) else trial.valid


def entrant(
    name: str,
    scores: Floats,
    report: Report,
    winners: Sequence[Winner],
    curves: Mapping[str, Sequence[float]],
    certificates: Sequence[Certificate],
) -> Entrant:
    """Return a contestant with what its winners, one per fold, learned."""
    return Entrant(
        name=name,
        scores=scores,
        report=report,
        rankers=tuple(w.ranker.learned if isinstance(w.ranker, Guest) else w.ranker for w in winners),
        params=tuple(settings_of(winner.ranker) for winner in winners),
        curves=curves,
        certificates=tuple(certificates),
        valid=tuple(winner.valid for winner in winners),
        seconds=sum(winner.seconds for winner in winners),
        tried=sum(winner.tried for winner in winners),
        planned=sum(winner.planned for winner in winners),
        searched=sum(winner.searched for winner in winners),
        cut=sum(winner.cut for winner in winners),
        processor=sum(winner.processor for winner in winners),
    )


def fingerprint(data: QueryDataset) -> str:
    """Return a hash of everything in a data set that a ranker can learn from.

    >>> one, other = (QueryDataset.from_arrays([[1.0], [0.0]], [grade, 0]) for grade in (1, 2))
    >>> fingerprint(one) == fingerprint(one), fingerprint(one) == fingerprint(other)
    (True, False)
    >>> fingerprint(replace(one, doc_weight=np.array([1.0, 2.0]))) == fingerprint(one)
    False
    """
    X = data.X
    parts = [row_marks(X, data.ptr)] if isinstance(X, RemoteMatrix) else list(linear.parts(X))
    parts += [vars(data)[name] for name in ("ptr", "query_weight", *PER_ROW)]
    digest = hashlib.blake2b(f"{X.shape} {data.is_sparse} {data.feature_names}".encode(), digest_size=16)
    for part in parts:
        if part is None or part.dtype == object:
            digest.update(repr(None if part is None else part.tolist()).encode())
        else:
            digest.update(f"{part.dtype} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def curves(ranker: Ranker | Guest) -> dict[str, list[float]]:
    """Return how learning went, step by step, as far as the ranker noted it: "train", "valid", "objective"."""
    trace = ranker.trace_
    found: dict[str, Any] = {}
    if isinstance(ranker, OnlineRanker) and len(trace["measure"]):
        epochs = np.array_split(trace["measure"], ranker.n_epochs_)
        found["train"] = np.array([epoch.mean() for epoch in epochs if len(epoch)])
    elif "measure" in trace:
        found["train"] = trace["measure"]
    if "valid_rounds" in trace:
        found["valid"] = trace["valid_rounds"]
    elif "valid" in trace and "C" not in trace:  # along a path of C it is no learning curve
        found["valid"] = trace["valid"]
    objective = trace.get("value", trace.get("loss"))
    if objective is not None:
        found["objective"] = objective
    return {name: _thinned(values).tolist() for name, values in found.items() if len(values) > 1}


def _thinned(values: Floats) -> Floats:
    if len(values) <= MOST_POINTS:
        return np.asarray(values, dtype=np.float64)
    return np.asarray(values[np.linspace(0, len(values) - 1, MOST_POINTS).round().astype(int)], dtype=np.float64)
