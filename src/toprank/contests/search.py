"""The search on one fold: every contestant's settings in a fixed order, chosen by the validation queries alone."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from .._checkpoint import Checkpoint
from .._typing import Floats
from .._version import __version__
from ..data.dataset import QueryDataset
from ..errors import InputError, MissingExtraError
from ..measures.base import Measure
from ..rankers.base import Ranker
from ..rankers.kernel import KernelSlamPerceptron
from ..rankers.online import OnlineRanker
from ..rankers.persistence import encode
from .peers import Trees
from .spaces import Candidate

Told = Callable[[str, int], None]
"""Called with what comes next and how many settings are done or given up since the last call."""

MOST_POINTS = 300
"""Points of a learning curve; a longer one is thinned out evenly."""


@dataclass(frozen=True)
class Winner:
    """The setting of one contestant that did best on the validation queries of a fold, fitted."""

    ranker: Ranker
    valid: float
    """Mean measure on the validation queries; NaN where none of them counts."""
    seconds: float
    """Time that this setting took to learn."""
    searched: float
    """Time that all its settings took."""
    tried: int
    planned: int
    repeats: bool = True
    """Whether a fit that was done again (for a resumed run) reached the same value."""
    capped: bool = False
    """Whether the number of rounds ended boosting while the measure was still rising."""


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
    error: str | None
    ranker: Ranker | None
    """None where the result comes from an earlier run."""


@dataclass(frozen=True)
class Search:
    """Settings level by level: first everybody's defaults, then everybody's second setting, and so on.

    A level starts only while the time that the levels before it took to learn is below the allotment, and is then tried
    for everybody: nobody gets more tries for standing earlier in the list. The defaults always are. Time is counted as
    it was stored, so a resumed run decides as it did before.
    """

    measure: Measure
    candidates: Sequence[Candidate]
    state: Checkpoint
    tell: Told

    def run(self, train: QueryDataset, valid: QueryDataset, allotment: float, where: str = "") -> dict[str, Any]:
        """Return a `Winner` or a `Failure` for each contestant."""
        data = "" if self.state.folder is None else f"{fingerprint(train)}-{fingerprint(valid)}"
        trials: dict[str, list[Trial]] = {c.name: [] for c in self.candidates}
        given_up: set[str] = set()
        spent = 0.0
        for level in range(max(len(c.rankers) for c in self.candidates)):
            closed = level > 0 and spent >= allotment
            for c in self.candidates:
                if level >= len(c.rankers):
                    continue
                if c.name in given_up or closed:
                    self.tell(f"{where}{c.name}", 1)
                    continue
                self.tell(f"{where}{c.name}", 0)
                try:
                    trial = self._try(c, level, train, valid, data)
                except MissingExtraError as error:
                    trial = Trial(level, -inf, 0.0, str(error), None)
                    given_up.add(c.name)
                best = _best(trials[c.name])
                if best is not None and not _better(trial, best):
                    trial = _without_ranker(trial)
                elif best is not None:  # one fitted ranker per contestant is held in memory
                    trials[c.name][trials[c.name].index(best)] = _without_ranker(best)
                trials[c.name].append(trial)
                spent += trial.seconds
                self.tell(f"{where}{c.name}", 1)
        return {c.name: self._winner(c, trials[c.name], train, valid) for c in self.candidates}

    def _try(self, c: Candidate, place: int, train: QueryDataset, valid: QueryDataset, data: str) -> Trial:
        fitted: list[Ranker] = []

        def compute() -> dict[str, Any]:
            _warm_up(c.rankers[place], train, valid)
            began = time.perf_counter()
            try:
                ranker = fit(c.rankers[place], train, valid)
                value = self.value(ranker, valid)
            except (InputError, ArithmeticError) as error:
                return {"valid": None, "seconds": time.perf_counter() - began, "error": str(error)}
            fitted.append(ranker)
            return {"valid": value, "seconds": time.perf_counter() - began, "error": None}

        key = None if self.state.folder is None else self._key(c.rankers[place], data)
        found = (self.state if key is not None else Checkpoint(None)).get(key or {}, compute)
        value = np.nan if found["valid"] is None else float(found["valid"])
        return Trial(place, value, float(found["seconds"]), found["error"], fitted[0] if fitted else None)

    def _key(self, ranker: Ranker, data: str) -> dict[str, Any] | None:
        """Return all that a result depends on; None for a ranker with parameters that are not plain data."""
        try:
            params = {name: encode(value, name) for name, value in ranker.get_params(deep=False).items()}
        except InputError:
            return None
        kind = f"{type(ranker).__module__}.{type(ranker).__qualname__}"
        return {"toprank": __version__, "ranker": kind, "params": params, "measure": str(self.measure), "data": data}

    def _winner(self, c: Candidate, trials: list[Trial], train: QueryDataset, valid: QueryDataset) -> Winner | Failure:
        best = _best(trials)
        if best is None:
            return Failure(trials[0].error or "it could not be fitted")
        ranker, repeats = best.ranker, True
        if ranker is None:
            self.tell(f"{c.name}, once more", 0)
            ranker = fit(c.rankers[best.place], train, valid)
            repeats = bool(np.array_equal(self.value(ranker, valid), best.valid, equal_nan=True))
        return Winner(
            ranker=ranker,
            valid=best.valid,
            seconds=best.seconds,
            searched=sum(trial.seconds for trial in trials),
            tried=sum(c.sizes[: len(trials)]),
            planned=sum(c.sizes),
            repeats=repeats,
            capped=isinstance(ranker, Trees) and ranker.capped_,
        )

    def value(self, ranker: Ranker, valid: QueryDataset) -> float:
        """Return the mean measure on the validation queries."""
        scores = ranker.predict_grouped(valid)
        if not np.isfinite(scores).all():
            raise InputError("its scores are not finite numbers")
        return self.measure.mean(scores, valid.y, valid.ptr, valid.query_weight, doc_ids=valid.doc_ids)


def fit(template: Ranker, train: QueryDataset, valid: QueryDataset) -> Ranker:
    """Fit a ranker with the same parameters; the validation queries also choose its epoch, round or C."""
    ranker = type(template)(**template.get_params(deep=False))
    watches = not isinstance(ranker, KernelSlamPerceptron)
    with np.errstate(all="ignore"):  # a step size that overflows is a setting that fails, not news
        return ranker.fit_queries(train, valid if watches else None)


def refitted(won: Winner, data: QueryDataset) -> Winner:
    """Fit a winner's setting again, to more queries and unwatched: C and the number of rounds are those chosen."""
    params = won.ranker.get_params(deep=False)
    found = vars(won.ranker)
    if "C_" in found:
        params["C"] = found["C_"]
    if "rounds" in params:
        params["rounds"] = max(1, won.ranker.n_iter_)
    with np.errstate(all="ignore"):
        return replace(won, ranker=type(won.ranker)(**params).fit_queries(data))


_warm: set[type[Ranker]] = set()


def _warm_up(template: Ranker, train: QueryDataset, valid: QueryDataset) -> None:
    """Fit to a few queries once, so that compiling kernels is in nobody's seconds."""
    if type(template) in _warm:
        return
    _warm.add(type(template))
    with suppress(InputError, ArithmeticError):
        fit(template, train[np.flatnonzero(train.informative)[:3]], valid[:1]).predict_grouped(valid[:1])


def _best(trials: list[Trial]) -> Trial | None:
    """Return the first of the best, None where every setting failed."""
    best: Trial | None = None
    for trial in trials:
        if trial.error is None and (best is None or _better(trial, best)):
            best = trial
    return best


def _better(one: Trial, other: Trial) -> bool:
    return one.error is None and (one.valid > other.valid or (np.isnan(other.valid) and not np.isnan(one.valid)))


def _without_ranker(trial: Trial) -> Trial:
    return Trial(trial.place, trial.valid, trial.seconds, trial.error, None)


def fingerprint(data: QueryDataset) -> str:
    """Return a hash of everything in a data set that a ranker can learn from.

    >>> one, other = (QueryDataset.from_arrays([[1.0], [0.0]], [grade, 0]) for grade in (1, 2))
    >>> fingerprint(one) == fingerprint(one), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    X: Any = data.X
    parts: list[Any] = [X.data, X.indices, X.indptr] if data.is_sparse else [X]
    parts += [data.y, data.ptr, data.query_weight, data.doc_ids]
    digest = hashlib.blake2b(f"{X.shape} {data.is_sparse} {data.feature_names}".encode(), digest_size=16)
    for part in parts:
        if part is None or part.dtype == object:
            digest.update(repr(None if part is None else part.tolist()).encode())
        else:
            digest.update(f"{part.dtype} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def curves(ranker: Ranker) -> dict[str, list[float]]:
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
