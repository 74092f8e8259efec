"""The diagonal second derivatives that boosted trees ask for, of any surrogate."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data import validation
from ..data.dataset import informative_queries
from ..errors import InputError
from ..surrogates.base import Surrogate
from ..surrogates.direct import TypeOne
from ..surrogates.listwise import ListMLE, Listwise


def check_slope(surrogate: Surrogate) -> None:
    """Refuse a surrogate that has no gradient to follow."""
    if isinstance(surrogate, TypeOne):
        raise InputError(
            "TypeOne is a step function of the scores, with gradient 0: take TypeTwo, or the ranker AdaRank"
        )


@dataclass
class BoostingLoss:
    """Gradient and diagonal curvature of a surrogate, weighted by query, as boosted trees take them.

    A listwise loss has a diagonal in closed form: P(1 − P) for ListNet, and so on. For any other surrogate it is
    estimated from differences of gradients: h = E z ⊙ (g(s + εz) − g(s − εz))/2ε over `probes` random signs z, whose
    expectation is the diagonal of the Hessian, averaged over ±ε. As ε (`step`, in units of the score) is not small,
    the kinks of a hinge count as the bends they are on that scale. No h falls below |g|/`trust`: a leaf then moves by
    at most `trust` before the learning rate, also where a loss is straight and Newton's step has no end.

    Each call is one round of boosting, with fresh probes, and with fresh orders of documents of one grade where
    ListMLE draws them: the same draw in every round would be learned too.
    A query whose grades are all equal is not informative: its gradient is 0, and its curvature a tiny constant.
    """

    surrogate: Surrogate
    probes: int = 8
    step: float = 0.5
    trust: float = 2.0
    random_state: int = 0
    calls: int = field(default=0, init=False, compare=False)

    def __post_init__(self) -> None:
        check_slope(self.surrogate)
        validation.check_count(probes=self.probes)
        validation.check_positive(step=self.step, trust=self.trust)

    def __call__(self, scores: AnyArray, y: AnyArray, ptr: Ints, weight: Floats | None = None) -> tuple[Floats, Floats]:
        """Return Σ-loss gradient and curvature per document."""
        s = validation.as_scores(scores)
        labels = validation.as_labels(y, len(s))
        validation.check_grades(labels)
        bounds = validation.as_ptr(ptr, len(s))
        loss = self.surrogate
        if isinstance(loss, ListMLE) and loss.ties == "sampled":
            loss = replace(loss, seed=loss.seed + self.calls)
        _, grad = loss.per_query(s, labels, bounds)
        bend = self.diagonal(s, labels, bounds, loss)
        self.calls += 1
        bend = np.maximum(bend, np.abs(grad) / self.trust)
        each = informative_queries(labels, bounds).astype(np.float64)
        if weight is not None:
            each = each * weight
        by_row = np.repeat(each, np.diff(bounds))
        return grad * by_row, np.maximum(bend * by_row, 1e-16)

    def diagonal(self, scores: Floats, y: Floats, ptr: Ints, loss: Surrogate | None = None) -> Floats:
        """Return the diagonal, in closed form or estimated; an estimate below 0 is 0."""
        loss = loss or self.surrogate
        if isinstance(loss, Listwise):
            return loss.diagonal(scores, y, ptr)
        rng = np.random.default_rng([self.random_state, self.calls])
        total = np.zeros(len(scores))
        for _ in range(self.probes):
            signs = rng.choice(np.array([-1.0, 1.0]), size=len(scores))
            _, up = loss.per_query(scores + self.step * signs, y, ptr)
            _, down = loss.per_query(scores - self.step * signs, y, ptr)
            total += signs * (up - down)
        return np.maximum(total / (2 * self.step * self.probes), 0.0)


def per_query_weight(weight: AnyArray | None, ptr: Ints) -> Floats | None:
    """Return one weight per query from one per query or one per row (the same within a query)."""
    if weight is None or len(weight) == 0:
        return None
    values = np.asarray(weight, dtype=np.float64)
    return values if len(values) == len(ptr) - 1 else values[ptr[:-1]]
