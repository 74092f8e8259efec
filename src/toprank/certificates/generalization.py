"""How far a listwise loss on n queries is from its expectation: the bounds of the generalisation paper.

sup_f (risk − empirical risk) ≤ 2 C_A(φ) N(φ) R̂(F) + √(2 ln(2/δ)/n) with probability 1 − δ (Theorems 1 and 2), for
scores w·x with ‖w‖ ≤ B, ‖x‖ ≤ M and losses divided by their largest value. Everything is computed in logarithms: the
m! of ListNet leaves the range of floats at m = 171. Beside the theorem as printed stands a bound that takes each list
with its own length and norms (`list_by_list`, derived in docs/theory.md): hundreds of times smaller on real lists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from .._typing import Floats
from ..data import linear, validation
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..surrogates.listwise import ListMLE, ListNet, Listwise, RankCosine
from ..surrogates.transforms import Transform
from .base import ROUNDING, Assumption, Certificate, scientific

Algorithm: TypeAlias = Literal["ListMLE", "ListNet", "ListNet top-one", "RankCosine"]

ALGORITHMS: tuple[Algorithm, ...] = ("ListMLE", "ListNet", "RankCosine")
"""The three of the paper; its ListNet is the full permutation form."""
_ALL = ("ListMLE", "ListNet", "ListNet top-one", "RankCosine")


def log_c(algorithm: Algorithm, transform: Transform, bound: float, m: int, shortest: int | None = None) -> float:
    """log C_A(φ) of Theorem 2 for lists of m documents and scores in [−bound, bound], bound = BM.

    C_ListMLE = 2/(φ(−BM)(log m + log φ(BM)/φ(−BM))), C_ListNet = m! C_ListMLE, C_RankCosine = √m/(2φ(−BM)).
    "ListNet top-one" is the form in common use, by the same argument (not in the paper): position s of a list has
    probability at most 1/s under the truth, so C = (1 + Σ_s 1/s)/(φ(−BM)(log m + log φ(BM)/φ(−BM))), without m!.

    With lists of `shortest` to m documents (not in the paper either) the proof's sum over positions s is kept: lists
    that have a position s have at least max(s, shortest) documents, and each term is largest at that length.

    >>> from toprank.surrogates import Exponential
    >>> round(math.exp(log_c("RankCosine", Exponential(1.0), 0.0, 16)), 6)
    2.0
    """
    validation.check_choice(_ALL, algorithm=algorithm)
    validation.check_count(m=m, shortest=m if shortest is None else shortest)
    if not transform.is_positive(bound):
        raise InputError(f"{transform} is not positive on [−{bound:.6g}, {bound:.6g}]: take b above a·B·M")
    position = np.arange(1, m + 1)
    length = np.maximum(position, m if shortest is None else shortest)
    low = float(transform.log(-bound))
    if algorithm == "RankCosine":
        return math.log(float((0.5 / np.sqrt(length)).sum())) - low
    width = np.log(length) + transform.log_range(bound)
    if width[0] <= 0:
        return math.inf  # lists of one document under a constant φ: there is nothing to normalise
    if algorithm == "ListNet top-one":
        return math.log(float(((1 / position + 1 / length) / width).sum())) - low
    harmonic = np.concatenate(([0.0], np.cumsum(1 / position)))
    # log φ of the document itself, and its share in the sums over what is left at each earlier place
    terms = 1 + harmonic[length] - harmonic[length - position]
    likelihood = math.log(float((terms / (length * width)).sum())) - low
    return likelihood if algorithm == "ListMLE" else math.lgamma(m + 1) + likelihood


def normalizer(algorithm: Algorithm, transform: Transform, bound: float, m: int) -> float:
    """Z_A, the largest value of the loss: m(log m + log φ(BM)/φ(−BM)) for ListMLE and ListNet, 1 for RankCosine.

    The top-one form has one choice instead of m, and Z without the factor m.
    """
    validation.check_choice(_ALL, algorithm=algorithm)
    if algorithm == "RankCosine":
        return 1.0
    width = math.log(m) + transform.log_range(bound)
    return width if algorithm == "ListNet top-one" else m * width


def rademacher_closed(radius: float, norm: float, n: int) -> float:
    """R̂(F) ≤ 2BM/√n for F = {x ↦ w·x, ‖w‖ ≤ B}, as the paper quotes it.

    >>> rademacher_closed(1.0, 1.0, 400)
    0.1
    """
    return 2 * radius * norm / math.sqrt(n)


def rademacher_sampled(
    data: QueryDataset, radius: float, draws: int = 200, random_state: int = 0, delta: float = 0.05
) -> tuple[float, float]:
    """R̂(F) = (B/n) E_σ ‖Σ_i σ_i x_i‖ by Monte Carlo, and what must be added to it to be above R̂(F) but for δ.

    The proof takes one document of each query, those at one position of the true order at a time: this is the largest
    of these averages over the positions. One sign moves the mean of the draws by at most 2B‖x_i‖/(n·draws), so the
    error exceeds B √(2 ln(positions/δ) Σ‖x_i‖²/draws)/n with probability at most δ (bounded differences).

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=100, random_state=0)
    >>> estimate, error = rademacher_sampled(data, radius=1.0)
    >>> estimate + error <= rademacher_closed(1.0, largest_norm(data), 100)
    True
    """
    validation.check_count(draws=draws)
    validation.check_positive(radius=radius)
    rng = np.random.default_rng(random_state)
    signs = rng.choice(np.array([-1.0, 1.0]), size=(draws, data.n_queries))
    order = np.lexsort((np.arange(data.n_docs), -data.y, np.repeat(np.arange(data.n_queries), data.lengths)))
    squares, positions = linear.square_norms(data.X)[order], int(data.lengths.max(initial=0))
    found = [(0.0, 0.0)]
    for position in range(positions):
        there = data.ptr[:-1][data.lengths > position] + position
        sums = np.asarray((data.X[order[there]].T @ signs[:, data.lengths > position].T).T, dtype=np.float64)
        error = math.sqrt(2 * math.log(positions / delta) * float(squares[there].sum()) / draws)
        found.append((float(np.linalg.norm(sums, axis=1).mean()), error))
    estimate, error = (max(part) * radius / data.n_queries for part in zip(*found, strict=True))
    return estimate, error


def largest_norm(data: QueryDataset) -> float:
    """M = max ‖x‖ over the documents.

    >>> largest_norm(QueryDataset.from_arrays([[3.0, 4.0], [1.0, 0.0]], [1, 0]))
    5.0
    """
    return math.sqrt(data.map_reduce(_largest_square, max))


def _largest_square(block: QueryDataset) -> float:
    return float(linear.square_norms(block.X).max(initial=0.0))


LARGEST = {"RankCosine": 0.5}
"""The largest normalised loss where it is not 1: vectors of positive numbers are at a right angle at most."""


@dataclass(frozen=True)
class Bound:
    """sup_f (risk − empirical risk) ≤ complexity + confidence; `value` is inf where floats end."""

    algorithm: Algorithm
    transform: Transform
    m: int
    """The longest list."""
    n: int
    log_complexity: float
    """log of 2 C_A(φ) N(φ) R̂(F), or of what stands in its place."""
    confidence: float
    """The term of δ, √(2 ln(2/δ)/n) as printed."""
    way: str = "as printed"
    terms: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def log_value(self) -> float:
        """log of the bound."""
        return float(np.logaddexp(self.log_complexity, math.log(self.confidence)))

    @property
    def value(self) -> float:
        """The bound."""
        return math.exp(self.log_value) if self.log_value < 709 else math.inf

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no news: no gap exceeds the largest normalised loss."""
        return self.log_value >= math.log(LARGEST.get(self.algorithm, 1.0))

    def __str__(self) -> str:
        verdict = "vacuous" if self.vacuous else "informative"
        return f"{self.algorithm} with {self.transform}: gap ≤ {scientific(self.log_value)} ({verdict})"


def generalization_bound(
    algorithm: Algorithm,
    transform: Transform,
    *,
    radius: float,
    norm: float,
    m: int,
    n: int,
    delta: float = 0.05,
    exact: bool = False,
    rademacher: float | None = None,
    shortest: int | None = None,
) -> Bound:
    """(4BM/√n) C_A(φ) N(φ) + √(2 ln(2/δ)/n), or with another value of R̂(F) in place of 2BM/√n.

    `exact` takes the true N(φ) = sup φ' where Table 1 prints an over-estimate (the sigmoid).

    >>> from toprank.surrogates import Exponential, Linear
    >>> bound = generalization_bound("RankCosine", Linear(1.0, 11.0), radius=10, norm=1, m=10, n=10**6)
    >>> round(bound.value, 4), bound.vacuous
    (0.066, False)
    >>> print(generalization_bound("ListNet", Exponential(1.0), radius=1, norm=1, m=200, n=1000))
    ListNet with exponential(1): gap ≤ 2.02e+374 (vacuous)
    """
    validation.check_positive(radius=radius, norm=norm)
    validation.check_count(n=n)
    validation.check_fraction(delta=delta)
    if rademacher is not None:
        validation.check_not_negative(rademacher=rademacher)
    average = rademacher_closed(radius, norm, n) if rademacher is None else rademacher
    c = log_c(algorithm, transform, radius * norm, m, shortest)
    slope = transform.steepest(radius * norm, exact=exact)
    return Bound(
        algorithm,
        transform,
        m,
        n,
        math.log(2) + c + slope + (math.log(average) if average > 0 else -math.inf),
        math.sqrt(2 * math.log(2 / delta) / n),
        terms={"C": _power(c), "N": _power(slope), "R̂": average, "B": radius, "M": norm},
    )


def lipschitz(algorithm: Algorithm, transform: Transform, bound: float, m: int) -> float:
    """ℓ with |l(s) − l(s')| ≤ ℓ ‖s − s'‖₂ for the normalised loss of a list of m, scores in [−bound, bound].

    With d = sup (log φ)' and ρ = φ(bound)/φ(−bound): ListMLE and ListNet d √Σ_p max(1, c_p − 1)²/Z with
    c_p = Σ_{s ≤ p} ρ/(ρ + m − s), "ListNet top-one" d√2/Z, RankCosine ½ d ρ/√(ρ² + m − 1). See docs/theory.md.

    >>> from toprank.surrogates import Exponential
    >>> round(lipschitz("RankCosine", Exponential(1.0), 0.0, 16), 6)
    0.125
    """
    validation.check_choice(_ALL, algorithm=algorithm)
    steepest = float(transform.log_slope(-bound))  # log φ is concave for each of the transforms
    small = math.exp(-transform.log_range(bound))  # 1/ρ
    if algorithm == "RankCosine":
        return 0.5 * steepest / math.sqrt(1 + (m - 1) * small**2)
    scale = normalizer(algorithm, transform, bound, m)
    if scale == 0:
        return 0.0  # one document under a constant φ: the loss is 0
    if algorithm == "ListNet top-one":
        return steepest * math.sqrt(2) / scale
    places = np.cumsum(1 / (1 + (m - np.arange(1, m + 1)) * small))
    return steepest * float(np.linalg.norm(np.maximum(1.0, places - 1))) / scale


def list_by_list(
    algorithm: Algorithm, transform: Transform, data: QueryDataset, radius: float, delta: float = 0.05
) -> Bound:
    """(2√2 B/n) √(Σ_q ℓ_q² ‖X_q‖²) + 3 √(ln(2/δ)/(2n)): every list with its own ℓ_q and norms.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=500, n_docs=(3, 40), random_state=0)
    >>> round(list_by_list("ListMLE", tr.surrogates.Sigmoid(), data, radius=0.1).value, 1)
    0.2
    """
    validation.check_positive(radius=radius)
    validation.check_fraction(delta=delta)
    n, squares = data.n_queries, linear.square_norms(data.X)
    reach = radius * math.sqrt(float(squares.max(initial=0.0)))
    lengths, place = np.unique(data.lengths, return_inverse=True)
    steep = np.array([lipschitz(algorithm, transform, reach, int(m)) if m else 0.0 for m in lengths])[place]
    sums = np.diff(np.append(0.0, np.cumsum(squares))[data.ptr])
    total = float((steep**2 * sums).sum())
    complexity = 2 * math.sqrt(2) * radius / n * math.sqrt(total)
    return Bound(
        algorithm,
        transform,
        int(lengths.max(initial=0)),
        n,
        math.log(complexity) if complexity > 0 else -math.inf,
        3 * math.sqrt(math.log(2 / delta) / (2 * n)),
        "list by list",
        {"B": radius, "Σ ℓ_q²‖X_q‖²": total, "n": n},
    )


def gaps(
    algorithm: Algorithm, transform: Transform, data: QueryDataset, radius: float, delta: float = 0.05
) -> list[Bound]:
    """Every bound on the gap that these queries allow, the theorem as printed first.

    The draws of the sampled Rademacher average take a twentieth of δ.
    """
    M = largest_norm(data)
    printed: dict[str, Any] = {
        "radius": radius, "norm": M, "m": int(data.lengths.max()), "n": data.n_queries,
        "shortest": int(data.lengths.min()),
    }  # fmt: skip
    found = [generalization_bound(algorithm, transform, delta=delta, **printed)]
    if transform.steepest(radius * M) != transform.steepest(radius * M, exact=True):
        exact = generalization_bound(algorithm, transform, delta=delta, exact=True, **printed)
        found.append(replace(exact, way="exact N"))
    average, error = rademacher_sampled(data, radius, delta=delta / 20)
    sampled = generalization_bound(
        algorithm, transform, delta=delta * 19 / 20, exact=True, rademacher=average + error, **printed
    )
    drawn = {**sampled.terms, "error of the draws": error}
    found.append(replace(sampled, way="sampled Rademacher average, exact N", terms=drawn))
    return [*found, list_by_list(algorithm, transform, data, radius, delta)]


def algorithm_of(loss: Listwise) -> Algorithm:
    """Name the loss as the bounds know it; a top-k form is bounded by the full one's constant."""
    if isinstance(loss, RankCosine):
        return "RankCosine"
    if isinstance(loss, ListMLE):
        return "ListMLE"
    return "ListNet top-one" if isinstance(loss, ListNet) and loss.k == 1 else "ListNet"


def normalized_risk(loss: Listwise, w: Floats, data: QueryDataset, bound: float) -> float:
    """(1/n) Σ_q ℓ(X_q w, y_q)/Z, each list by its own length, over the informative queries: a number in [0, 1]."""
    losses, _ = loss.per_query(linear.scores(data.X, w), data.y, data.ptr)
    algorithm = algorithm_of(loss)
    lengths, counted = data.lengths, data.informative
    validation.check_informative(counted)
    sizes = {int(m): normalizer(algorithm, loss.transform, bound, int(m)) for m in np.unique(lengths[counted])}
    return float(np.mean([losses[q] / sizes[int(lengths[q])] for q in np.flatnonzero(counted)]))


def certificates(
    loss: Listwise, w: Floats, data: QueryDataset, *, radius: float | None = None, delta: float = 0.05
) -> list[Certificate]:
    """Bound the expected normalised loss of w in each way that `gaps` knows; M, n and the lengths are those of `data`.

    B is `radius` where the ball was chosen before learning. Otherwise it is the first power of two, 2^j, not below ‖w‖:
    all powers are bounded together, the j-th with δ 2^−|j|/3, so that B may depend on w.

    The expected loss cannot be observed. What stands in its place is the loss of the worse half of the queries, first
    or last: it shows where queries are not draws of one distribution.
    """
    validation.check_fraction(delta=delta)
    informative = data[data.informative]
    norm = float(np.linalg.norm(w))
    M = largest_norm(informative) if informative.n_queries else 0.0
    if norm == 0 or M == 0:
        return []
    power = math.ceil(math.log2(norm) - ROUNDING)
    B, share = (2.0**power, delta * 2.0 ** -abs(power) / 3) if radius is None else (radius, delta)
    algorithm, transform, n = algorithm_of(loss), loss.transform, informative.n_queries
    inside = Assumption(f"‖w‖ = {norm:.6g} ≤ B = {B:.6g}", norm <= B * (1 + ROUNDING))
    assumptions = (
        Assumption("the queries are independent draws from one distribution"),
        Assumption(f"every document has ‖x‖ ≤ M = {M:.6g}, the largest seen"),
        inside,
    )
    largest = LARGEST.get(algorithm, 1.0)
    what = f"expected {algorithm} loss with {transform} (divided by its largest value) ≤ loss on {n} queries + gap"
    if not transform.is_positive(B * M):
        positive = Assumption(f"{transform} is positive for scores up to B·M = {B * M:.6g}", False)
        return [Certificate(what, math.inf, math.nan, "Theorems 1 and 2", (*assumptions, positive))]
    shortest, longest = int(informative.lengths.min()), int(informative.lengths.max())
    halves = (informative[: (n + 1) // 2], informative[n // 2 :])
    risk, *parts = (normalized_risk(loss, w, part, B * M) for part in (informative, *halves))
    result = []
    for gap in gaps(algorithm, transform, informative, B, share):
        size = "" if math.isfinite(gap.value) else f", gap ≤ {scientific(gap.log_value)}"
        result.append(
            Certificate(
                statement=f"{what} with probability {1 - delta:g}{size} ({gap.way})",
                value=risk + gap.value,
                observed=max(parts),
                reference=_source(algorithm, gap.way),
                assumptions=(*assumptions, _lengths(shortest, longest, gap.way)),
                vacuous_from=largest,
                meaning=f"on new queries the loss is at most {risk + gap.value:.4g} of its largest value",
                terms={"empirical loss": risk, **gap.terms, "δ": share},
                arithmetic=f"{risk:.6g} + {gap.value:.6g} = {risk + gap.value:.6g}",
            )
        )
    return result


def _source(algorithm: Algorithm, way: str) -> str:
    if way == "list by list":
        return "Theorem 1, list by list"
    return "Theorems 1 and 2" if algorithm != "ListNet top-one" else "Theorem 1, and Theorem 2's argument for top-one"


def _lengths(shortest: int, longest: int, way: str) -> Assumption:
    if shortest == longest:
        return Assumption(f"every list has m = {longest} documents", True)
    how = "each counts with its own length" if way == "list by list" else "Theorem 2, position by position"
    return Assumption(f"lists have {shortest} to {longest} documents ({how})", True)


def _power(log_value: float) -> float:
    return math.exp(log_value) if log_value < 709 else math.inf
