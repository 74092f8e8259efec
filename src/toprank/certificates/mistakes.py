"""Bounds on what the online perceptrons lose: theorems applied to the numbers of a run.

Notation of the paper: R_X the largest row norm, m the longest list, vmax the largest ratio of positive weights inside a
round, F = Σ_t f_t(w_t) ≥ Σ_t RML_t the cumulative surrogate and loss, L(u) = Σ_t f_t(u) that of a comparator u. With a
margin Δ other than 1 a mistake costs at least Δ, so F/Δ bounds the loss and A is divided by Δ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import floor, inf, isclose, isfinite, log2, nan, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np

from .._typing import Floats, Ints
from ..data.validation import check_not_negative, check_positive
from .base import Assumption, Certificate

Algorithm = Literal["slam", "slam@k", "minimax", "listnet"]

_THEOREM = {"slam": "Theorem 6", "slam@k": "Theorem 8", "minimax": "Theorem 10"}
_COROLLARY = {"slam": "Corollary 7", "slam@k": "Corollary 7 with Theorem 8", "minimax": "Corollary 11"}
_CONSTANT = {"slam": "4 m R_X² vmax", "slam@k": "4 k R_X² vmax", "minimax": "4 R_X²"}


@dataclass(frozen=True)
class Comparator:
    """What the bounds need to know of a weight vector u."""

    norm2: float
    """‖u‖²."""
    loss: float
    """L(u) = Σ_t f_t(u)."""
    margin: float = 0.0
    """Margin of u/‖u‖ on the data (Eq. 21); not above 0 where u misranks a pair."""
    u: Any = field(default=None, compare=False)
    along: float = 0.0
    """The part of a price of learning that is linear in u."""

    def __post_init__(self) -> None:
        check_not_negative(norm2=self.norm2, loss=self.loss)

    @property
    def terms(self) -> dict[str, Any]:
        """The numbers, by their symbols."""
        known = {} if self.u is None else {"u": self.u}
        return known | {"‖u‖": sqrt(self.norm2), "L(u)": self.loss}


Choice: TypeAlias = Callable[[Callable[[Comparator], float]], Comparator]
"""Returns the comparator at which a right-hand side is smallest among those at hand."""


@dataclass(frozen=True)
class Run:
    """What a run of Algorithm 2 or 3 (or of online ListNet) showed, and the constants of Lemma 5 for its data.

    >>> run = Run("minimax", A=4.0, eta=0.25, loss=2.5, mistakes=3, surrogate=4.0, znorm2=9.0, largest_ratio=3.0)
    >>> rival = Comparator(norm2=4.0, loss=0.0, margin=0.5)
    >>> [certificate.reference for certificate in run.certificates(lambda bound: rival)][:3]
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
    """What holds for the run as a whole (that these are its lists, weights that start at 0, …)."""
    tight: float = inf
    """max_t diam_t²/vmin_t over the mistake rounds: the tighter constant (docs/theory.md)."""
    rounds: float = inf
    worst: float = inf
    """Σ_t RML_t of the worst order of each list."""
    zero: float = inf
    """L(0): what is known without any comparator."""
    radius: float = nan
    weighted: bool = False
    """Whether queries have weights: f_t and z_t then are weighted, and Σ RML_t is not what they bound."""
    constant: bool = True
    """Whether every step was η."""
    dropped: int = 0
    """How many rounds a budget dropped."""
    half: float | None = None
    """Σ_t η_t‖z_t‖²/2; (η/2) Σ‖z_t‖² where left out."""
    rest: float = 0.0
    """What the price of learning has beside it at u = 0: the cost of drops, or of steps that change."""

    def __post_init__(self) -> None:
        check_positive(eta=self.eta, margin=self.margin)
        check_not_negative(A=self.A, loss=self.loss, surrogate=self.surrogate, znorm2=self.znorm2)

    def certificates(self, choose: Choice) -> list[Certificate]:
        """Return every theorem of the paper that speaks of this run, each at the comparator that suits it best."""
        regret = self.regret(choose(self.price))
        if self.algorithm == "listnet":
            return [regret]
        found = [
            self.self_bounding(),
            regret,
            self.any_step(choose(lambda u: self.price(u) - self._steps)),
            self.optimised_step(choose(self._optimised)),
            self.after_the_fact(choose(lambda u: u.loss + sqrt(u.norm2 * self.znorm2))),
            self.separable(widest := choose(lambda u: -u.margin)),
        ]
        return found + ([self.number_of_mistakes(widest)] if self.algorithm == "minimax" else [])

    @property
    def _a(self) -> float:
        """The smaller of the constants of Lemma 5."""
        return min(self.A, self.tight) / self.margin

    @property
    def _fixed_step(self) -> tuple[Assumption, ...]:
        return (*self.assumptions, Assumption("the step is constant", self.constant))

    @property
    def _plain(self) -> tuple[Assumption, ...]:
        """What the theorems assume that know nothing of budgets and weights."""
        kept = f"the budget dropped no document, but it dropped {self.dropped}"
        return (
            *self._fixed_step,
            *([Assumption(kept, False)] if self.dropped else []),
            *([Assumption("all queries weigh 1", False)] if self.weighted else []),
        )

    @property
    def _terms(self) -> dict[str, Any]:
        return {"A": self._a, "η": self.eta, "Δ": self.margin, "R_X": self.radius, "Σ‖z_t‖²": self.znorm2}

    @property
    def _steps(self) -> float:
        return self.eta / 2 * self.znorm2 if self.half is None else self.half

    def self_bounding(self) -> Certificate:
        """‖z_t‖² ≤ A f_t(w_t) in every round (Lemma 5; Theorem 10's proof for Algorithm 3)."""
        tighter, printed = self.tight < self.A, _CONSTANT[self.algorithm]
        return Certificate(
            statement=f"max_t ‖z_t‖²/f_t(w_t) ≤ A = {'max_t diam_t²/vmin_t' if tighter else printed}",
            value=self._a,
            observed=self.largest_ratio,
            reference="Lemma 5",
            meaning="no step was long where the loss was small",
            terms={"A": self._a, printed: self.A / self.margin, "R_X": self.radius},
            arithmetic=f"{self._a:.6g}" + (f" (the paper's {printed}: {self.A / self.margin:.6g})" if tighter else ""),
        )

    def price(self, u: Comparator) -> float:
        """L(u) + ‖u‖²/(2η) + (η/2) Σ‖z_t‖² + what drops cost; with steps that change, the telescoped sum instead."""
        return u.loss + (u.norm2 / (2 * self.eta) if self.constant else 0.0) + self._steps + self.rest + u.along

    def regret(self, u: Comparator) -> Certificate:
        """F ≤ L(u) + the price of learning, after the fact, for the steps that were taken (Eq. 17).

        A round brings ‖w − u‖² down by 2η_t z_t·(w_t − u) − η_t²‖z_t‖², and z_t·(w_t − u) ≥ f_t(w_t) − f_t(u). Divided
        by 2η_t and added up this is the telescoped sum; for one η its ends remain, and what drops moved.
        """
        value, statement = self.price(u), "Σ f_t(w_t) ≤ L(u) + ‖u‖²/(2η) + (η/2) Σ‖z_t‖²"
        parts, reference = [u.loss, u.norm2 / (2 * self.eta), self._steps], "Eq. 17"
        if not self.constant:
            statement = "Σ f_t(w_t) ≤ L(u) + Σ (‖w_t − u‖² − ‖w_t − η_t z_t − u‖²)/(2η_t) + Σ η_t‖z_t‖²/2"
            parts, reference = [u.loss, self.rest + u.along, self._steps], "Eq. 17, telescoped"
        elif self.dropped:
            statement += f" + what {self.dropped} drops cost: Σ (‖f_t − u‖² − ‖f_t + dropped − u‖²)/(2η)"
            parts, reference = [*parts, self.rest + u.along], "Eq. 17 on a budget"
        return Certificate(
            statement=statement,
            value=value,
            observed=self.surrogate,
            reference=reference,
            assumptions=self.assumptions,
            vacuous_from=self.price(Comparator(0.0, self.zero)) if isfinite(self.zero) else None,
            meaning=f"while it learned it lost at most {value - u.loss:.4g} more than one fixed ranker would have",
            terms=u.terms
            | self._terms
            | ({"cost of drops": self.rest + u.along} if self.dropped and self.constant else {}),
            arithmetic=f"{' + '.join(f'{part:.6g}' for part in parts)} = {value:.6g}",
        )

    def any_step(self, u: Comparator) -> Certificate:
        """F ≤ (L(u) + ‖u‖²/(2η) + what drops cost) / (1 − ηA/2) for every η < 2/A."""
        factor = 1 - self.eta * self._a / 2
        limit = f" = {2 / self._a:.4g}" if self._a > 0 else ""
        drops, cost = (" + cost of drops", f" + {self.rest + u.along:.6g}") if self.dropped else ("", "")
        return Certificate(
            statement=f"Σ f_t(w_t) ≤ (L(u) + ‖u‖²/(2η){drops}) / (1 − ηA/2)",
            value=(self.price(u) - self._steps) / factor if factor > 0 else inf,
            observed=self.surrogate,
            reference="Eq. 17 and Lemma 5",
            assumptions=(*self._fixed_step, Assumption(f"η = {self.eta:.4g} < 2/A{limit}", factor > 0)),
            vacuous_from=(self.zero + self.rest) / factor if factor > 0 else None,
            terms=u.terms | self._terms,
            arithmetic=f"({u.loss:.6g} + {u.norm2:.6g}/{2 * self.eta:.4g}{cost})/{factor:.6g}",
        )

    def _optimised(self, u: Comparator) -> float:
        """L(u) + √(A‖u‖²)·√L(u) + A‖u‖², infinite where the step was too long for it."""
        a = self._constant_for_step(u)
        return (u.loss + sqrt(a * u.norm2 * u.loss) + a * u.norm2) / self.margin if isfinite(a) else inf

    def _constant_for_step(self, u: Comparator) -> float:
        """The constant A' ≥ A for which η is the best step; A itself for Algorithm 3, whose rankings no η changes.

        Lemma 5 holds for every constant above A too. Infinite where η is longer than the best step for A.
        """
        if self.algorithm == "minimax":
            return self._a
        if u.norm2 == 0:
            return inf
        own = 1 / self.eta / (1 + self.eta * u.loss / u.norm2)
        return max(own, self._a) if own >= self._a * (1 - 1e-6) else inf

    def optimised_step(self, u: Comparator) -> Certificate:
        """Σ RML_t ≤ L(u) + √(A‖u‖²) √L(u) + A‖u‖² at the best η (Theorems 6, 8, 10).

        For Algorithm 3 neither rankings nor z_t depend on η, so the bound at the best η is a bound at every η. For
        Algorithm 2 an η below the best one is the best one for a larger A, which serves as well.
        """
        suited = self._constant_for_step(u)
        a = suited if isfinite(suited) else self._a
        q, assumptions = a * u.norm2, self._plain
        if self.algorithm != "minimax":
            best = f"η = {self.eta:.4g} is not above the optimised {best_step(self._a, u):.4g}"
            assumptions = (*assumptions, Assumption(best, isfinite(suited)))
        value = (u.loss + sqrt(q * u.loss) + q) / self.margin
        return Certificate(
            statement="Σ RML_t ≤ L(u) + √(A‖u‖²)·√L(u) + A‖u‖²",
            value=value,
            observed=self.loss,
            reference=_THEOREM[self.algorithm],
            assumptions=assumptions,
            vacuous_from=self._known_bound,
            meaning=f"the rankings shown while it learned lost {value:.6g} in all, at most",
            terms=u.terms | self._terms | {"A": a},
            arithmetic=f"({u.loss:.6g} + √({q:.6g}·{u.loss:.6g}) + {q:.6g})/{self.margin:g} = {value:.6g}",
        )

    @property
    def _known_bound(self) -> float:
        """What bounds Σ RML_t without any learning: the worst orders, and L(0), which restates the mistakes."""
        return min(self.rounds, self.worst, self.zero / self.margin)

    def after_the_fact(self, u: Comparator) -> Certificate:
        """Σ RML_t ≤ (L(u) + ‖u‖ √Σ‖z_t‖²) / Δ: Eq. 17 at the η that is best for the observed subgradients."""
        spread = sqrt(self.znorm2)
        best = sqrt(u.norm2) / spread if spread > 0 else inf
        assumptions = self._plain
        if self.algorithm != "minimax":
            near = isclose(self.eta, best, rel_tol=1e-6) or spread == 0
            assumptions = (*assumptions, Assumption(f"η = {self.eta:.4g} is ‖u‖/√Σ‖z_t‖² = {best:.4g}", near))
        value = (u.loss + sqrt(u.norm2) * spread) / self.margin
        return Certificate(
            statement="Σ RML_t ≤ L(u) + ‖u‖·√Σ‖z_t‖²",
            value=value,
            observed=self.loss,
            reference="Eq. 17 at its best step",
            assumptions=assumptions,
            vacuous_from=self._known_bound,
            meaning=f"the rankings shown while it learned lost {value:.6g} in all, at most",
            terms=u.terms | self._terms,
            arithmetic=f"({u.loss:.6g} + {sqrt(u.norm2):.6g}·{spread:.6g})/{self.margin:g} = {value:.6g}",
        )

    def separable(self, u: Comparator) -> Certificate:
        """Σ RML_t ≤ A/γ² where a unit vector ranks every list with margin γ (Corollaries 7, 11), whatever T.

        Algorithm 2 needs η = 1/A for it; at another η < 2/A the bound grows by 1/(ηA(2 − ηA)).
        """
        separates = Assumption(f"u/‖u‖ ranks every list with margin γ = {u.margin:.4g}", u.margin > 0)
        assumptions = (*self._plain, separates)
        value, statement, factor = inf, "Σ RML_t ≤ A/γ²", ""
        scaled = self.eta * self._a
        if u.margin > 0:
            value = self._a * self.margin / u.margin**2
            if self.algorithm != "minimax" and not isclose(scaled, 1.0, rel_tol=1e-6):
                statement, factor = "Σ RML_t ≤ A/γ² · 1/(ηA(2 − ηA))", f"/({scaled:.4g}·(2 − {scaled:.4g}))"
                value = value / (scaled * (2 - scaled)) if scaled < 2 else inf
                assumptions = (*assumptions, Assumption(f"η = {self.eta:.4g} < 2/A = {2 / self._a:.4g}", scaled < 2))
        return Certificate(
            statement,
            value,
            self.loss,
            _COROLLARY[self.algorithm],
            assumptions,
            vacuous_from=min(self.rounds, self.worst),
            meaning=f"however long the stream, its rankings will lose {value:.6g} in all, at most",
            terms=u.terms | self._terms | {"γ": u.margin},
            arithmetic=f"{self._a * self.margin:.6g}/{u.margin:.6g}²{factor} = {value:.6g}" if u.margin > 0 else "",
        )

    def number_of_mistakes(self, u: Comparator) -> Certificate:
        """Mistakes ≤ A/γ² for Algorithm 3: a round with a mistake has f_t ≥ Δ, so Corollary 11 counts them too."""
        found = self.separable(u)
        return replace(
            found,
            statement="mistakes ≤ A/γ²",
            observed=float(self.mistakes),
            vacuous_from=self.rounds,
            reference="Corollary 11, mistakes",
            meaning=f"however long the stream, it will show at most {found.value:.6g} imperfect rankings",
        )


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
        vacuous_from=0.0,
        meaning="no deterministic learner could have done better against these lists",
        terms={"R_X": radius, "γ": margin},
        arithmetic=f"{least:.4g}·{rounds} = {least * rounds:.6g}",
    )
