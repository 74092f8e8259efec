"""What is proved of learned weights on any judged queries: surrogate ≥ loss, and how far from the optimum."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from .._typing import AnyArray, Floats
from ..data import linear
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..measures import AP
from ..measures.base import Measure
from ..objective import Objective
from ..solvers.base import gradient_gap
from ..solvers.bundle import Bundle
from ..surrogates.direct import (
    StructuralHinge,
    TypeTwo,
    in_training,
    parse_ap_or_ndcg,
    smallest_gap,
    worst_case,
)
from ..surrogates.pairwise import Loss, PairwiseHinge, misordered_pairs, pair_counts
from ..surrogates.precision_at_k import MistakesAvg, PrecAvg, PrecisionSurrogate, PrecMax, PrecRamp
from .base import Assumption, Certificate
from .margins import both_classes
from .worst import most_mistakes, worst_values

_SHORT = 8
"""Lists up to so many documents are small enough for the worst case over all their rankings."""


def ranking_bounds(
    measure: str | Measure,
    threshold: float | None,
    w: Floats,
    data: QueryDataset,
    *,
    minimised: bool = True,
    graded: bool = True,
) -> list[Certificate]:
    """mean (1 − E) ≤ mean max_π (E(π*) − E(π)) − (F(π*) − F(π)) (Theorem 2 for the bound of Eq. 10).

    E is read as the loss reads it, relevant or not. On short lists come, by enumeration, the worst case of Eq. 6, which
    lies between the two, and Theorem 3. `minimised` says that Eq. 10 is what the learner minimises; where it is not,
    short lists are held against Eq. 7, with F over the pairs of different grade (`graded`) or over all.
    """
    try:
        loss = StructuralHinge(measure, threshold)
    except InputError as error:
        return [_nothing("mean (1 − E) ≤ the type-two bound", "Theorem 2", f"{error}")]
    relevant = loss.relevant(data.y)
    counted = both_classes(relevant, data.ptr)
    target = in_training(parse_ap_or_ndcg(measure))
    what = f"mean 1 − {target.name} (relevant or not)"
    if not counted.any():
        return [_nothing(f"{what} ≤ Eq. 10", "Theorem 2", "some query has relevant and irrelevant documents")]
    scores, y = linear.scores(data.X, w), relevant.astype(np.float64)
    judge = replace(target, above=0.0) if isinstance(target, AP) else target
    E = judge.per_query(scores, y, data.ptr)
    weight, worst = _weights(data, counted), worst_values(judge, y, data.ptr)
    at_w = partial(
        _at_w,
        w=w,
        over=named_queries(counted, "relevant and irrelevant documents"),
        worst=_mean(1 - worst, weight),
    )
    observed, bound = _mean(1 - E, weight), _mean(loss.per_query(scores, data.y, data.ptr)[0], weight)
    by = "the structural hinge of Eq. 10" + (", which the learner minimises" if minimised else "")
    hinge = f"{what} ≤ mean of max_π (E(π*) − E(π)) − (F(π*) − F(π))"
    found = [at_w(hinge, bound, observed, "Theorem 2, Eq. 10", by=by)]
    if int(data.lengths[counted].max()) > _SHORT:
        return found
    between = _mean(worst_case(judge, scores, y, data.ptr, graded=True), weight)
    liked = f"{what} ≤ its worst case over rankings that w likes as well"
    found.append(at_w(liked, between, observed, "Eq. 6", by="the worst case of Eq. 6"))
    found.append(at_w("the worst case of Eq. 6 ≤ the bound of Eq. 10", bound, between, "Eq. 6 and Eq. 10", by=by))
    if not minimised:
        total = TypeTwo(judge, "hinge", "sum", "graded" if graded else "all").per_query(scores, y, data.ptr)[0]
        said = f"{what} ≤ mean of Σ (E(π*) − E(π)) [1 − (F(π*) − F(π))]₊"
        own = f"the sum of Eq. 7 over all rankings, F over {'pairs of different grade' if graded else 'all pairs'}"
        found.append(at_w(said, _mean(total, weight), observed, "Theorem 2, Eq. 7", by=own))
    gaps = smallest_gap(judge, scores, y, data.ptr, graded=graded)
    two = TypeTwo(judge, pairs="graded" if graded else "all").per_query(scores, y, data.ptr)[0]
    return [*found, type_two_and_one(E, two, gaps, worst, weight)]


def type_two_and_one(E: Floats, two: Floats, gaps: Floats, worst: Floats, weight: Floats) -> Certificate:
    """mean max (1 − E(π)) e^(−(F(π*) − F(π))) ≤ mean e^(−E) where condition (9) holds (Theorem 3).

    Condition (9): min (F(π*) − F(π)) ≥ E(σ), for every query, over perfect π* and other π; σ is the ranking by w.
    """
    close, counted = gaps >= E - 1e-12, weight > 0
    n, total = int((close & counted).sum()), int(counted.sum())
    condition = Assumption(
        "condition (9): on every query min (F(π*) − F(π)) ≥ E", n == total, f"so on {n:,} of {total:,} queries"
    )
    one, two_mean = _mean(np.exp(-E), weight), _mean(two, weight)
    return Certificate(
        statement="type two ≤ type one: mean of max (1 − E(π)) e^(−(F(π*) − F(π))) ≤ mean of e^(−E)",
        value=one,
        observed=two_mean,
        reference="Theorem 3",
        assumptions=(condition,),
        vacuous_from=_mean(np.exp(-worst), weight),
        meaning=f"w is so close to the best that the type-two bound, {two_mean:.4g}, is the tighter one: type one has "
        f"{one:.4g}",
        terms={"condition (9)": n, "queries": total},
    )


def pair_bound(loss: Loss, w: Floats, data: QueryDataset) -> Certificate:
    """Mean share of misordered or tied pairs ≤ mean of (1 − (s_i − s_j))₊, or of its square, over pairs of a query."""
    pairs = pair_counts(data.y, data.ptr)
    counted = pairs > 0
    if not counted.any():
        return _nothing("misordered pairs ≤ their hinge", "hinge ≥ step", "some query has two grades")
    scores, weight = linear.scores(data.X, w), _weights(data, counted)
    wrong, tied = misordered_pairs(scores, data.y, data.ptr)
    losses, _ = PairwiseHinge(loss, normalize=True).per_query(scores, data.y, data.ptr)
    return _at_w(
        f"mean share of a query's pairs that are misordered or tied ≤ mean {loss.replace('_', ' ')} of its pairs",
        _mean(losses, weight),
        _mean((wrong + tied) / np.maximum(pairs, 1), weight),
        "hinge ≥ step",
        by=f"the {loss.replace('_', ' ')} of its pairs",
        w=w,
        over=named_queries(counted, "two grades"),
        worst=1.0,
    )


def top_bounds(k: int | None, kappa: float | None, w: Floats, data: QueryDataset) -> list[Certificate]:
    """Δ/k ≤ ramp/k ≤ avg/k ≤ max/k, each averaged over the lists with both classes (Section 3's hierarchy)."""
    counted = both_classes(data.y > 0, data.ptr)
    if not counted.any():
        return [_nothing("Δ ≤ ramp ≤ avg ≤ max", "Section 3", "some list holds both classes")]
    scores, weight, found = linear.scores(data.X, w), _weights(data, counted), []
    kinds: tuple[type[PrecisionSurrogate], ...] = (MistakesAvg, PrecRamp, PrecAvg, PrecMax)
    losses = [kind(k=k, kappa=kappa, normalize=True).per_query(scores, data.y, data.ptr)[0] for kind in kinds]
    wrong, *bounds = [_mean(values, weight) for values in losses]
    most = _mean(most_mistakes(k, kappa, data.y, data.ptr, share=True), weight)
    over = named_queries(counted, "both classes").replace("queries", "lists")
    for name, bound in zip(("ramp", "avg", "max"), bounds, strict=True):
        said = f"wrong rows among the top k, as a share ≤ {name} surrogate / k"
        found.append(_at_w(said, bound, wrong, f"Δ ≤ {name}", by=f"the {name} surrogate", w=w, over=over, worst=most))
    return found


def optimality(objective: Objective, w: Floats, here: Assumption, tol: float, max_iter: int) -> Certificate:
    """f(w) − min f ≤ gap: ‖∇f‖²/(2 alpha) for a smooth f, f(w) minus what cutting planes prove of min f otherwise.

    The cutting planes are drawn anew on `objective`, so the certificate needs no memory of how w was found. `here` says
    whether w was learned from these queries: of others it is no minimiser, and nothing is certified.
    """
    if here.verified is False:
        return Certificate("f(w) − min f ≤ gap", math.inf, math.nan, "duality gap", (here,))
    value, grad = objective.value_and_grad(w)
    zero = objective.value_and_grad(np.zeros_like(w))[0]
    if objective.surrogate.smooth:
        gap, best, how = gradient_gap(float(np.linalg.norm(grad)), objective), value, "‖∇f(w)‖²/(2 alpha)"
    else:
        again = Bundle(tol=tol, max_iter=max_iter).minimize(objective)
        gap, best, how = value - (again.value - again.gap), min(value, again.value), "f(w) − the cutting planes' bound"
    return Certificate(
        statement=f"f(w) − min f ≤ {how}, f(w) = {value:.6g}",
        value=gap,
        observed=value - best,
        reference="duality gap",
        assumptions=(here,),
        vacuous_from=zero - value + gap,
        meaning=f"no other weights bring what was minimised down by more than {gap:.3g} (it is {value:.4g})",
        terms={"f(w)": value, "f(0)": zero, "alpha": objective.penalty.alpha, "‖∇f(w)‖": float(np.linalg.norm(grad))},
        arithmetic=f"{gap:.6g}, and {zero - value + gap:.6g} for w = 0",
    )


def _at_w(
    statement: str, bound: float, observed: float, reference: str, *, by: str, w: Floats, over: str, worst: float
) -> Certificate:
    """Compare two means over the queries that are named in `over`; `worst` is what the worst order of them has."""
    return Certificate(
        statement=statement,
        value=bound,
        observed=observed,
        reference=reference,
        vacuous_from=worst,
        meaning=f"in the mean over {over}: {observed:.4g}, and at most {bound:.4g} by {by}",
        terms={"‖w‖": float(np.linalg.norm(w))},
    )


def _nothing(statement: str, reference: str, missing: str) -> Certificate:
    return Certificate(statement, math.inf, math.nan, reference, (Assumption(missing, False),))


def named_queries(counted: AnyArray, having: str) -> str:
    """Name the queries that a mean is taken over: a query whose documents are all alike has no better order."""
    n, total = int(counted.sum()), len(counted)
    return f"the {n:,} queries, all with {having}" if n == total else f"the {n:,} of {total:,} queries with {having}"


def _weights(data: QueryDataset, counted: AnyArray) -> Floats:
    weight = counted.astype(np.float64)
    return weight if data.query_weight is None else weight * data.query_weight


def _mean(values: Floats, weight: Floats) -> float:
    return float(np.where(weight > 0, values, 0.0) @ weight / weight.sum())
