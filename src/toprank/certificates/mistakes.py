"""Bounds on what the online perceptrons lose: theorems applied to the numbers of a run.

Notation of the paper: R_X the largest row norm, m the longest list, vmax the largest ratio of positive weights inside a
round, F = Σ_t f_t(w_t) ≥ Σ_t RML_t the cumulative surrogate and loss, L(u) = Σ_t f_t(u) that of a comparator u. With a
margin Δ other than 1 a mistake costs at least Δ, so F/Δ bounds the loss and A is divided by Δ.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, inf, isclose, log2, sqrt
from typing import Literal

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import check_not_negative, check_positive
from .base import Assumption, Certificate

Algorithm = Literal["slam", "slam@k", "minimax"]

_THEOREM = {"slam": "Theorem 6", "slam@k": "Theorem 8", "minimax": "Theorem 10"}
_COROLLARY = {"slam": "Corollary 7", "slam@k": "Corollary 7 with Theorem 8", "minimax": "Corollary 11"}
_CONSTANT = {"slam": "4 m R_X² vmax", "slam@k": "4 k R_X² vmax", "minimax": "4 R_X²"}


@dataclass(frozen=True)
class Run:
    """What a run of Algorithm 2 or 3 showed, and the constant A of Lemma 5 for its data.

    >>> run = Run("minimax", A=4.0, eta=0.25, loss=2.5, mistakes=3, surrogate=4.0, znorm2=9.0, largest_ratio=3.0)
    >>> rival = Comparator(norm2=4.0, loss=0.0, margin=0.5)
    >>> [certificate.reference for certificate in run.certificates(rival)][:3]
    ['Lemma 5', 'Eq. 17', 'Eq. 17 and Lemma 5']
    """

    algorithm: Algorithm
    A: float
    """4 m R_X² vmax, 4 k R_X² vmax or 4 R_X²."""
    eta: float
    loss: float
    """Σ_t RML_t."""
    mistakes: int
    surrogate: float
    """F = Σ_t f_t(w_t)."""
    znorm2: float
    """Σ_t ‖z_t‖²."""
    largest_ratio: float
    """max_t ‖z_t‖² / f_t(w_t) over mistake rounds."""
    margin: float = 1.0
    """Δ of the surrogate."""
    assumptions: tuple[Assumption, ...] = ()
    """What holds for the run as a whole (constant step, weights that start at 0, …)."""

    def __post_init__(self) -> None:
        check_positive(eta=self.eta, margin=self.margin)
        check_not_negative(A=self.A, loss=self.loss, surrogate=self.surrogate, znorm2=self.znorm2)

    def certificates(self, u: Comparator) -> list[Certificate]:
        """Return every theorem of the paper that speaks of this run."""
        return [
            self.self_bounding(),
            self.regret(u),
            self.any_step(u),
            self.optimised_step(u),
            self.after_the_fact(u),
            self.separable(u),
        ]

    @property
    def _a(self) -> float:
        return self.A / self.margin

    def self_bounding(self) -> Certificate:
        """‖z_t‖² ≤ A f_t(w_t) in every round (Lemma 5; Theorem 10's proof for Algorithm 3)."""
        return Certificate(
            statement=f"max_t ‖z_t‖²/f_t(w_t) ≤ A = {_CONSTANT[self.algorithm]}",
            value=self._a,
            observed=self.largest_ratio,
            reference="Lemma 5",
        )

    def regret(self, u: Comparator) -> Certificate:
        """F ≤ L(u) + ‖u‖²/(2η) + (η/2) Σ‖z_t‖², after the fact, for the step that was used (Eq. 17)."""
        return Certificate(
            statement="Σ f_t(w_t) ≤ L(u) + ‖u‖²/(2η) + (η/2) Σ‖z_t‖²",
            value=u.loss + u.norm2 / (2 * self.eta) + self.eta / 2 * self.znorm2,
            observed=self.surrogate,
            reference="Eq. 17",
            assumptions=self.assumptions,
        )

    def any_step(self, u: Comparator) -> Certificate:
        """F ≤ (L(u) + ‖u‖²/(2η)) / (1 − ηA/2) for every η < 2/A."""
        room = 1 - self.eta * self._a / 2
        return Certificate(
            statement="Σ f_t(w_t) ≤ (L(u) + ‖u‖²/(2η)) / (1 − ηA/2)",
            value=(u.loss + u.norm2 / (2 * self.eta)) / room if room > 0 else inf,
            observed=self.surrogate,
            reference="Eq. 17 and Lemma 5",
            assumptions=(*self.assumptions, Assumption(f"η = {self.eta:.4g} < 2/A = {2 / self._a:.4g}", room > 0))
            if self._a > 0
            else self.assumptions,
        )

    def optimised_step(self, u: Comparator) -> Certificate:
        """Σ RML_t ≤ L(u) + √(A‖u‖²) √L(u) + A‖u‖² at the best η (Theorems 6, 8, 10).

        For Algorithm 3 neither rankings nor z_t depend on η, so the bound at the best η is a bound at every η.
        """
        q = self._a * u.norm2
        best = best_step(self._a, u)
        assumptions = self.assumptions
        if self.algorithm != "minimax":
            near = isclose(self.eta, best, rel_tol=1e-6)
            assumptions = (*assumptions, Assumption(f"η = {self.eta:.4g} is the optimised {best:.4g}", near))
        return Certificate(
            statement="Σ RML_t ≤ L(u) + √(A‖u‖²)·√L(u) + A‖u‖²",
            value=(u.loss + sqrt(q * u.loss) + q) / self.margin,
            observed=self.loss,
            reference=_THEOREM[self.algorithm],
            assumptions=assumptions,
        )

    def after_the_fact(self, u: Comparator) -> Certificate:
        """Σ RML_t ≤ (L(u) + ‖u‖ √Σ‖z_t‖²) / Δ: Eq. 17 at the η that is best for the observed subgradients."""
        spread = sqrt(self.znorm2)
        best = sqrt(u.norm2) / spread if spread > 0 else inf
        assumptions = self.assumptions
        if self.algorithm != "minimax":
            near = isclose(self.eta, best, rel_tol=1e-6) or spread == 0
            assumptions = (*assumptions, Assumption(f"η = {self.eta:.4g} is ‖u‖/√Σ‖z_t‖² = {best:.4g}", near))
        return Certificate(
            statement="Σ RML_t ≤ L(u) + ‖u‖·√Σ‖z_t‖²",
            value=(u.loss + sqrt(u.norm2) * spread) / self.margin,
            observed=self.loss,
            reference="Eq. 17 at its best step",
            assumptions=assumptions,
        )

    def separable(self, u: Comparator) -> Certificate:
        """Σ RML_t ≤ A/γ² where a unit vector ranks every list with margin γ (Corollaries 7, 11), whatever T.

        Algorithm 2 needs η = 1/A for it; at another η < 2/A the bound grows by 1/(ηA(2 − ηA)).
        """
        separates = Assumption(f"u/‖u‖ ranks every list with margin γ = {u.margin:.4g}", u.margin > 0)
        assumptions = (*self.assumptions, separates)
        value, statement = inf, "Σ RML_t ≤ A/γ²"
        scaled = self.eta * self._a
        if u.margin > 0:
            value = self.A / u.margin**2
            if self.algorithm != "minimax" and not isclose(scaled, 1.0, rel_tol=1e-6):
                statement = "Σ RML_t ≤ A/γ² · 1/(ηA(2 − ηA))"
                value = value / (scaled * (2 - scaled)) if scaled < 2 else inf
                assumptions = (*assumptions, Assumption(f"η = {self.eta:.4g} < 2/A = {2 / self._a:.4g}", scaled < 2))
        return Certificate(statement, value, self.loss, _COROLLARY[self.algorithm], assumptions)


@dataclass(frozen=True)
class Comparator:
    """What the bounds need to know of a weight vector u."""

    norm2: float
    """‖u‖²."""
    loss: float
    """L(u) = Σ_t f_t(u)."""
    margin: float = 0.0
    """Margin of u/‖u‖ on the data (Eq. 21); not above 0 where u misranks a pair."""

    def __post_init__(self) -> None:
        check_not_negative(norm2=self.norm2, loss=self.loss)


def best_step(A: float, u: Comparator) -> float:
    """Return argmin_η (L + ‖u‖²/(2η)) / (1 − ηA/2), which is 1/A where L = 0.

    >>> best_step(4.0, Comparator(norm2=9.0, loss=0.0))
    0.25
    """
    if A == 0:
        return inf
    if u.loss == 0 or u.norm2 == 0:
        return 1 / A
    b, c = u.norm2 / 2, A / 2
    return 1 / (c + sqrt(c * c + c * u.loss / b))


def best_bound(A: float, u: Comparator) -> float:
    """Return min_η (L + ‖u‖²/(2η)) / (1 − ηA/2) = L + q/2 + √(q²/4 + qL), q = A‖u‖²; the theorems round it up.

    >>> best_bound(4.0, Comparator(norm2=9.0, loss=0.0))
    36.0
    """
    q = A * u.norm2
    return u.loss + q / 2 + sqrt(q * q / 4 + q * u.loss)


def ranking_margin(scores: Floats, y: Floats, ptr: Ints) -> float:
    """γ = min over lists of min_{R_i>R_j} s_i − s_j (Eq. 21); infinite where no list has two grades.

    >>> ranking_margin(np.array([3.0, 1.0, 0.5]), np.array([1.0, 0.0, 0.0]), np.array([0, 3]))
    2.0
    """
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    order = np.lexsort((scores, y, query))
    query, grades, s = query[order], y[order], scores[order]
    new = np.append(True, (query[1:] != query[:-1]) | (grades[1:] != grades[:-1]))
    starts = np.flatnonzero(new)
    if len(starts) < 2:
        return inf
    lowest = s[starts]
    highest = s[np.append(starts[1:], len(s)) - 1]
    # Best of all lower grades of the same list: a running maximum that starts anew with each list.
    gap, running, last = inf, -inf, -1
    for low, high, q in zip(lowest.tolist(), highest.tolist(), query[starts].tolist(), strict=True):
        running = -inf if q != last else running
        gap, running, last = min(gap, low - running), max(running, high), q
    return gap


def lower_bound(measure: Literal["ndcg", "map"], radius: float, margin: float, loss: float) -> Certificate:
    """Σ RML_t ≥ c (⌊R_X²/γ²⌋ − 1) against the adversary, c = 1 − 1/log₂3 for NDCG and 1/2 for AP (Theorem 9).

    >>> print(lower_bound("map", 1.0, 0.1, loss=60.0).value)
    49.5
    """
    check_positive(radius=radius, margin=margin)
    rounds = floor(radius**2 / margin**2 * (1 + 1e-12)) - 1
    least = 0.5 if measure == "map" else 1 - 1 / log2(3)
    return Certificate(
        statement=f"Σ RML_t ≥ {least:.4g}·(⌊R_X²/γ²⌋ − 1) for any deterministic learner",
        value=least * rounds,
        observed=loss,
        reference="Theorem 9",
        assumptions=(Assumption("the lists are those of Eq. 25, answered round by round"),),
        sense=">=",
    )
