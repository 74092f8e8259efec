"""How far a listwise loss on n queries is from its expectation: the bounds of the generalisation paper.

sup_f (risk − empirical risk) ≤ 2 C_A(φ) N(φ) R̂(F) + √(2 ln(2/δ)/n) with probability 1 − δ (Theorems 1 and 2), for
scores w·x with ‖w‖ ≤ B, ‖x‖ ≤ M and losses divided by their largest value. Everything is computed in logarithms: the
m! of ListNet leaves the range of floats at m = 171.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from .._tables import Table
from .._typing import Floats
from ..data import blocks, linear
from ..data.dataset import QueryDataset
from ..data.validation import check_choice, check_count, check_positive, is_sparse
from ..errors import InputError
from ..surrogates.listwise import ListMLE, ListNet, Listwise, RankCosine
from ..surrogates.transforms import Exponential, Linear, Sigmoid, Transform
from .base import Assumption, Certificate

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

    >>> round(math.exp(log_c("RankCosine", Exponential(1.0), 0.0, 16)), 6)
    2.0
    """
    check_choice(_ALL, algorithm=algorithm)
    check_count(m=m, shortest=m if shortest is None else shortest)
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
    check_choice(_ALL, algorithm=algorithm)
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
    data: QueryDataset, radius: float, draws: int = 200, random_state: int = 0
) -> tuple[float, float]:
    """R̂(F) = (B/n) E_σ ‖Σ_i σ_i x_i‖ by Monte Carlo, and its standard error.

    The proof takes one document of each query, those at one position of the true order at a time: this is the largest
    of these averages over the positions.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=100, random_state=0)
    >>> estimate, error = rademacher_sampled(data, radius=1.0)
    >>> estimate <= rademacher_closed(1.0, largest_norm(data), 100)
    True
    """
    check_count(draws=draws)
    check_positive(radius=radius)
    rng = np.random.default_rng(random_state)
    signs = rng.choice(np.array([-1.0, 1.0]), size=(draws, data.n_queries))
    order = np.lexsort((np.arange(data.n_docs), -data.y, np.repeat(np.arange(data.n_queries), data.lengths)))
    best = (0.0, 0.0)
    for position in range(int(data.lengths.max(initial=0))):
        there = np.flatnonzero(data.lengths > position)
        rows = data.X[order[data.ptr[there] + position]]
        sums = np.asarray((rows.T @ signs[:, there].T).T, dtype=np.float64)
        norms = np.linalg.norm(sums, axis=1) * radius / data.n_queries
        error = float(norms.std(ddof=1) / math.sqrt(draws)) if draws > 1 else math.inf
        best = max(best, (float(norms.mean()), error))
    return best


def largest_norm(data: QueryDataset) -> float:
    """M = max ‖x‖ over the documents.

    >>> largest_norm(QueryDataset.from_arrays([[3.0, 4.0], [1.0, 0.0]], [1, 0]))
    5.0
    """

    def largest(block: QueryDataset) -> float:
        values = block.X.multiply(block.X).sum(axis=1) if is_sparse(block.X) else None
        squares = np.einsum("ij,ij->i", block.X, block.X, dtype=np.float64) if values is None else np.asarray(values)
        return float(squares.max(initial=0.0))

    return math.sqrt(blocks.map_reduce(largest, blocks.split(data), combine=max))


@dataclass(frozen=True)
class Bound:
    """sup_f (risk − empirical risk) ≤ 2 C N R̂ + √(2 ln(2/δ)/n), with its parts; `value` is inf where floats end."""

    algorithm: Algorithm
    transform: Transform
    m: int
    n: int
    log_c: float
    log_n: float
    rademacher: float
    confidence: float
    """The second term, √(2 ln(2/δ)/n)."""

    @property
    def log_complexity(self) -> float:
        """log of 2 C_A(φ) N(φ) R̂(F)."""
        return math.log(2) + self.log_c + self.log_n + _log(self.rademacher)

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
        """Whether the bound is no news: losses are in [0, 1], so no gap exceeds 1."""
        return self.log_value >= 0

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

    >>> bound = generalization_bound("RankCosine", Linear(1.0, 11.0), radius=10, norm=1, m=10, n=10**6)
    >>> round(bound.value, 4), bound.vacuous
    (0.066, False)
    >>> print(generalization_bound("ListNet", Exponential(1.0), radius=1, norm=1, m=200, n=1000))
    ListNet with exponential(1): gap ≤ 2.02e+374 (vacuous)
    """
    check_positive(radius=radius, norm=norm)
    check_count(n=n)
    if not 0 < delta < 1:
        raise InputError(f"delta must be between 0 and 1, got {delta!r}")
    return Bound(
        algorithm,
        transform,
        m,
        n,
        log_c(algorithm, transform, radius * norm, m, shortest),
        transform.steepest(radius * norm, exact=exact),
        rademacher_closed(radius, norm, n) if rademacher is None else rademacher,
        math.sqrt(2 * math.log(2 / delta) / n),
    )


def algorithm_of(loss: Listwise) -> Algorithm:
    """Name the loss as the bounds know it; a top-k form is bounded by the full one's constant."""
    if isinstance(loss, RankCosine):
        return "RankCosine"
    if isinstance(loss, ListMLE):
        return "ListMLE"
    return "ListNet top-one" if isinstance(loss, ListNet) and loss.k == 1 else "ListNet"


def normalized_risk(loss: Listwise, w: Floats, data: QueryDataset, bound: float) -> float:
    """(1/n) Σ_q ℓ(X_q w, y_q)/Z, each list by its own length, over the queries that can teach: a number in [0, 1]."""
    losses, _ = loss.per_query(linear.scores(data.X, w), data.y, data.ptr)
    algorithm = algorithm_of(loss)
    lengths, counted = data.lengths, data.informative
    if not counted.any():
        raise InputError("no query can teach: in each of them all documents have the same grade")
    sizes = {int(m): normalizer(algorithm, loss.transform, bound, int(m)) for m in np.unique(lengths[counted])}
    return float(np.mean([losses[q] / sizes[int(lengths[q])] for q in np.flatnonzero(counted)]))


def certificates(
    loss: Listwise, w: Floats, data: QueryDataset, *, radius: float | None = None, delta: float = 0.05
) -> list[Certificate]:
    """Bound the expected normalised loss of w: as printed, with the exact N(φ), and with a sampled R̂(F).

    B is `radius` where the ball was chosen before training, else ‖w‖; M, n and the list lengths are those of `data`.
    """
    teaching = data[data.informative]
    if teaching.n_queries == 0:
        return []
    B, M = radius or float(np.linalg.norm(w)), largest_norm(teaching)
    algorithm, transform, n = algorithm_of(loss), loss.transform, teaching.n_queries
    if B == 0 or M == 0 or not transform.is_positive(B * M):
        return []
    shortest, longest = int(teaching.lengths.min()), int(teaching.lengths.max())
    assumptions = (
        Assumption("the queries are independent draws from one distribution"),
        Assumption(f"every document has ‖x‖ ≤ M = {M:.6g}, the largest seen"),
        Assumption(f"‖w‖ ≤ B = {B:.6g}" + ("" if radius else ", taken from w itself"), True if radius else None),
        Assumption(
            f"every list has m = {longest} documents"
            if shortest == longest
            else f"lists have {shortest} to {longest} documents (Theorem 2, position by position)",
            True,
        ),
    )
    risk = normalized_risk(loss, w, teaching, B * M)
    sampled, _ = rademacher_sampled(teaching, B)
    source = "Theorems 1 and 2" if algorithm != "ListNet top-one" else "Theorem 1, and Theorem 2's argument for top-one"
    cases: list[tuple[str, bool, float | None]] = [
        ("as printed", False, None),
        ("sampled Rademacher average, exact N", True, sampled),
    ]
    if transform.steepest(B * M) != transform.steepest(B * M, exact=True):
        cases.insert(1, ("exact N", True, None))
    result = []
    for name, exact, average in cases:
        gap = generalization_bound(
            algorithm,
            transform,
            radius=B,
            norm=M,
            m=longest,
            n=n,
            delta=delta,
            exact=exact,
            rademacher=average,
            shortest=shortest,
        )
        size = "" if math.isfinite(gap.value) else f", gap ≤ {scientific(gap.log_value)}"
        result.append(
            Certificate(
                statement=(
                    f"expected {algorithm} loss with {transform} (divided by its largest value) ≤ empirical loss + gap "
                    f"on {n} queries with probability {1 - delta:g}{size} ({name})"
                ),
                value=risk + gap.value,
                observed=risk,
                reference=source,
                assumptions=assumptions,
                vacuous_from=1.0,
            )
        )
    return result


@dataclass(frozen=True)
class Advice:
    """Algorithm × transform, the tightest bound first; printed, it is a table."""

    bounds: tuple[Bound, ...]
    radius: float
    norm: float

    @property
    def best(self) -> Bound:
        """The tightest of them."""
        return self.bounds[0]

    def table(self) -> Table:
        """Return the ranking as a table."""
        first = self.best
        rows = [
            (
                b.algorithm,
                str(b.transform),
                scientific(b.log_c),
                scientific(b.log_n),
                scientific(b.log_value),
                "vacuous" if b.vacuous else "informative",
            )
            for b in self.bounds
        ]
        title = f"Guaranteed gap for B = {self.radius:g}, M = {self.norm:.4g}, m = {first.m}, n = {first.n}"
        notes = ("A bound of 1 or more says nothing: the normalised losses lie in [0, 1].",)
        return Table(("algorithm", "transform", "C", "N", "gap ≤", "which is"), rows, title=title, notes=notes)

    def __str__(self) -> str:
        return self.table().plain()

    def _repr_html_(self) -> str:
        return self.table().html()


def advise(
    data: QueryDataset,
    radius: float,
    *,
    transforms: Sequence[Transform] | None = None,
    algorithms: Sequence[Algorithm] = ALGORITHMS,
    delta: float = 0.05,
    exact: bool = False,
) -> Advice:
    """Rank algorithm × transform by the bound on how far training and expected loss can part, as Section 3.3 does.

    M and n are measured from `data`, m is the mean list length (rounded); the default transforms are a = 1 with
    b = aBM + 1. The bounds compare guarantees, not accuracy: a loss that is hard to move also learns little.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=200, n_docs=20, random_state=0)
    >>> advice = tr.advise(data, radius=1.0)
    >>> advice.best.algorithm, type(advice.best.transform).__name__
    ('ListMLE', 'Linear')
    """
    check_positive(radius=radius)
    norm = largest_norm(data)
    if norm == 0:
        raise InputError("every row of X is 0: no score can differ from 0")
    m = max(1, round(float(data.lengths.mean())))
    chosen = transforms or (Linear.on_ball(radius, norm), Exponential(), Sigmoid())
    bounds = [
        generalization_bound(
            algorithm, transform, radius=radius, norm=norm, m=m, n=data.n_queries, delta=delta, exact=exact
        )
        for algorithm in algorithms
        for transform in chosen
    ]
    return Advice(tuple(sorted(bounds, key=lambda b: b.log_value)), radius, norm)


def scientific(log_value: float) -> str:
    """Show e^log_value, however large.

    >>> scientific(math.log(1234.5)), scientific(1e4), scientific(math.log(0.5))
    ('1.23e+03', '8.81e+4342', '0.5')
    """
    if math.isinf(log_value):
        return "inf" if log_value > 0 else "0"
    if abs(log_value) < 690:
        return f"{math.exp(log_value):.3g}"
    power = log_value / math.log(10)
    return f"{10 ** (power - math.floor(power)):.3g}e{math.floor(power):+d}"


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
