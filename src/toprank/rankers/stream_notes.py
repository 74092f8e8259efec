"""What a stream notes of its rounds, so that it certifies without the lists."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from .._typing import Floats, Ints
from ..certificates.base import Assumption, Certificate
from ..certificates.mistakes import Algorithm, Comparator, Run
from ..certificates.performance import stream_performance
from ..errors import InputError
from ..measures import AP, NDCG
from ..solvers.steps import Note, Rule, Scaling, Total
from ..solvers.stream import OnlineDescent, list_sizes, longest_list, round_lists
from ..surrogates import Minimax, Slam, Surrogate

if TYPE_CHECKING:
    from .online import OnlineRanker

_NO_WEIGHTS, _FIRST = np.empty(0), np.zeros(1, dtype=np.int64)


def note(
    noted: Floats | None, learner: OnlineDescent, X: Any, y: Floats, ptr: Ints, weight: Floats | None, rows: Floats,
    before: Floats,
) -> Floats:  # fmt: skip
    """Return what is noted after these rounds; `before` are the totals before them."""
    kernels, found = compiled(), np.zeros(len(Note)) if noted is None else noted.copy()
    v, which, scaled = _NO_WEIGHTS, _FIRST, learner.scaling == Scaling.QUERY
    if isinstance(learner.surrogate, Slam):
        v = np.empty(len(y))
        kernels.weights_of_lists(y, y, ptr, learner.rules(longest_list(ptr))[1], v)
    if len(ptr) != 2:
        counted = learner.rounds(y, ptr) & (True if weight is None else weight > 0)
        if scaled:
            counted &= list_sizes(X, ptr) > 0
        which = np.flatnonzero(counted)
    lists, n_features = round_lists(X, y, ptr, weight), 0 if scaled else X.shape[1]
    kernels.note_rounds(lists, which, rows, v, learner.always, n_features, float(before[Total.MEASURE]), found)
    return found


@cache
def compiled() -> Any:
    """Kernels of lists, loaded once: a stream comes here with every list, and microseconds count."""
    from ..solvers import _list_kernels

    return _list_kernels


def constant_of(
    loss: Surrogate, radius2: float, heaviest: float, longest: float, vmax: float
) -> tuple[Algorithm, float]:
    """Return which algorithm steps on this loss, and A of Lemma 5: 4 m R_X² vmax, 4 k R_X² vmax or 4 R_X²."""
    A = 4 * radius2 * heaviest  # c²‖z‖² ≤ c A · c f for a query of weight c
    if not isinstance(loss, Slam):
        return ("minimax" if isinstance(loss, Minimax) else "listnet"), A
    cut = loss.target.k if isinstance(loss.target, NDCG) else None
    return "slam" if cut is None else "slam@k", A * min(cut or longest, longest) * vmax


def certify_stream(ranker: OnlineRanker, margin: float | None, confidence: float) -> list[Certificate]:
    """Return what is known of a stream from its totals alone: what its rounds were expected to reach, and Lemma 5.

    With a `margin` that is taken on trust, also the bound of the corollaries for it; where that is violated, no vector
    has such a margin.
    """
    learner, noted, totals = ranker._learner(), ranker._noted, ranker._state.totals
    rounds = int(totals[Total.ROUNDS])
    if noted is None or int(noted[Note.ROUNDS]) != rounds:
        raise InputError(
            "without the lists only a stream that partial_fit alone has learned can be certified: give the data too"
        )
    first = Assumption("every list was ranked before it was learned from", True)
    name, total, spread = str(learner.measure), float(totals[Total.MEASURE]), float(noted[Note.SPREAD])
    found: list[Certificate] = [stream_performance(rounds, total, spread, name, confidence, first)]
    loss, measure = learner.surrogate, learner.measure
    if not isinstance(loss, (Slam, Minimax)) or not isinstance(measure, (AP, NDCG)) or not noted[Note.LONGEST] > 0:
        return found
    sizes = (float(noted[at]) for at in (Note.RADIUS2, Note.HEAVIEST, Note.LONGEST, Note.VMAX))
    algorithm, A = constant_of(loss, *sizes)
    run = Run(
        algorithm=algorithm,
        A=A,
        eta=learner.steps.eta,
        loss=rounds - total,
        mistakes=int(totals[Total.MISTAKES]),
        surrogate=float(totals[Total.SURROGATE]),
        znorm2=float(totals[Total.ZNORM2]),
        largest_ratio=float(noted[Note.RATIO]),
        margin=loss.margin,
        assumptions=(Assumption("every round since the start at 0 is in the totals", True),),
        tight=float(noted[Note.TIGHT]),
        rounds=float(rounds),
        radius=sqrt(float(noted[Note.RADIUS2])),
        constant=learner.steps.rule == Rule.CONSTANT,
    )
    if learner.scaling == Scaling.RUNNING:
        return found
    found.append(run.self_bounding())
    if margin is not None:
        u = Comparator(1.0, 0.0, margin)
        promised = [run.separable(u), *([run.number_of_mistakes(u)] if algorithm == "minimax" else [])]
        trust = Assumption(f"some unit vector ranks every list with margin γ = {margin:.4g}")
        found += [
            replace(c, assumptions=tuple(trust if "ranks every list" in a.text else a for a in c.assumptions))
            for c in promised
        ]
    return found
