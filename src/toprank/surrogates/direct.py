"""Upper bounds on 1 − E for a measure E in [0, 1]: type one (of E itself) and type two (of pairs of rankings)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import factorial, prod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..data.dataset import QueryDataset
from ..data.validation import check_choice, check_finite
from ..errors import InputError
from ..measures import AP, NDCG
from ..measures import measure as parse_measure
from ..measures.base import Compiled, Measure
from ..measures.order import Ties
from ..measures.plan import discount_table
from ..measures.presets import Discount, Short
from .base import NO_FLOATS, NO_PLACES, CompiledSurrogate, Surrogate, refuse_doc_weight

if TYPE_CHECKING:
    from ._structural_kernels import StructuralRule
    from ._working_set_kernels import BlockRule

MAX_PATTERNS = 2_000_000
"""How many orders of the grades of a list the type-two maximum enumerates at most; 7 relevant among 21 have 116,280."""
QUERIES = 256
"""Queries that are asked at a time whether they are informative."""
MAX_SUM = 8
"""How many documents a list has at most whose rankings the type-two sum enumerates."""


def parse_bounded(measure: str | Measure) -> Measure:
    """Read a measure whose values lie in [0, 1].

    >>> parse_bounded("dcg@5")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: dcg@5 is not a measure in [0, 1]: use ndcg, map or another that is bounded
    """
    value = parse_measure(measure)
    if not value.bounded:
        raise InputError(f"{value.name} is not a measure in [0, 1]: use ndcg, map or another that is bounded")
    return value


def in_training(measure: Measure) -> Measure:
    """Return the measure with tied documents counted by expectation over their orders, whatever its convention.

    If the order of the rows decided, a feature that never changes would be perfect on rows sorted by grade.

    >>> str(in_training(parse_measure("ndcg@10:trec_eval")))
    'ndcg@10:trec_eval:ties=average'
    """
    return replace(measure, ties=Ties.AVERAGE) if Ties.AVERAGE in measure.tie_rules else measure  # type: ignore[call-arg]


def is_informative(measure: Measure, data: QueryDataset) -> bool:
    """Say whether the measure tells the best order of some query from the worst.

    >>> import toprank as tr
    >>> is_informative(parse_measure("map"), tr.QueryDataset.from_arrays([[1.0], [2.0]], [1, 2]))
    False
    """
    weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    if isinstance(measure, Compiled):
        measure.check(data.y, data.ptr, float(data.y.min(initial=0.0)), float(data.y.max(initial=0.0)))
    for first in range(0, data.n_queries, QUERIES):  # most often the first will do
        ptr = data.ptr[first : first + QUERIES + 1]
        y = data.y[ptr[0] : ptr[-1]]
        best, worst = (measure.per_query(sign * y, y, ptr - ptr[0]) for sign in (1.0, -1.0))
        if (np.nan_to_num(best - worst)[weight[first : first + QUERIES] > 0] > 0).any():
            return True
    return False


ALL_ALIKE = (
    "in each query all documents are alike to the measure: use one that reads the grades (ndcg), or other grades"
)
"""The message where it does not."""


@dataclass(frozen=True)
class TypeOne(Surrogate):
    """ℓ(s, y) = exp(−E) or log2(1 + exp(−E)), E the measure of the order by s (Sec. 4.1): both at least 1 − E.

    A step function of the scores: its gradient is 0 wherever it exists, so boosting (`AdaRank`) minimises it.

    >>> value, grad = TypeOne("map").value_and_grad([2.0, 1.0], [1, 0], [0, 2])
    >>> round(value, 4), grad.tolist()
    (0.3679, [0.0, 0.0])
    """

    measure: str | Measure = "map"
    loss: Literal["exponential", "logistic"] = "exponential"
    convex: ClassVar[bool] = False
    smooth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice(("exponential", "logistic"), loss=self.loss)
        parse_bounded(self.measure)

    @property
    def upper_bounds(self) -> Measure:
        """The measure."""
        return parse_bounded(self.measure)

    def per_query(
        self, scores: Floats, y: Floats, ptr: Ints, doc_weight: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return φ(−E) per list, and zeros."""
        refuse_doc_weight(self, doc_weight)
        E = parse_bounded(self.measure).per_query(scores, y, ptr)
        losses = np.exp(-E) if self.loss == "exponential" else np.log2(1 + np.exp(-E))
        return losses, np.zeros_like(scores)


@dataclass(frozen=True)
class TypeTwo(Surrogate):
    """ℓ(s, y) = max over perfect π*, other π of (E(π*) − E(π)) φ(−(F(π*) − F(π))) (Sec. 4.2), or the sum (Eq. 7).

    F(π) = Σ_{k before l} (s_k − s_l)/(n(n−1)) (Eq. 3); `pairs="graded"` takes the mean over the pairs of different
    grade instead (the other definition of Sec. 3, under which perfect rankings of two grades do not differ). φ(x) is
    e^x, log2(1 + e^x) or [1 + x]₊; `loss="margin"` is [max (E(π*) − E(π)) − (F(π*) − F(π))]₊ instead.

    Exact, by enumeration: E depends on the order of the grades alone, and for one such order F is largest with each
    grade in score order, so the maximum runs over the orders of the grades (up to 2,000,000); the sum runs over all
    rankings (up to 8 documents). For long lists there is `StructuralHinge`.

    >>> value, grad = TypeTwo("map", loss="hinge").value_and_grad([1.0, 0.0], [1, 0], [0, 2])
    >>> value, grad.tolist()
    (0.0, [0.0, 0.0])
    >>> value, grad = TypeTwo("map", loss="margin").value_and_grad([0.2, 0.0], [1, 0], [0, 2])
    >>> round(value, 6), grad.tolist()
    (0.3, [-1.0, 1.0])
    """

    measure: str | Measure = "map"
    loss: Literal["exponential", "logistic", "hinge", "margin"] = "exponential"
    reduction: Literal["max", "sum"] = "max"
    pairs: Literal["all", "graded"] = "all"
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice(("exponential", "logistic", "hinge", "margin"), loss=self.loss)
        check_choice(("max", "sum"), reduction=self.reduction)
        check_choice(("all", "graded"), pairs=self.pairs)
        parse_bounded(self.measure)

    @property
    def upper_bounds(self) -> Measure | None:
        """The measure, where a perfect ranking has the value 1."""
        value = parse_bounded(self.measure)
        return value if value.best_is_one else None

    def per_query(
        self, scores: Floats, y: Floats, ptr: Ints, doc_weight: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the bound of each list, exactly, and a subgradient."""
        from . import _enumeration_kernels as kernels

        refuse_doc_weight(self, doc_weight)
        measure, form = parse_bounded(self.measure), int(kernels.Phi[self.loss.upper()])
        losses, grad = np.zeros(len(ptr) - 1), np.zeros_like(scores)
        for q, (a, b) in enumerate(pairwise(ptr)):
            one = _sum_bound if self.reduction == "sum" else _max_bound
            losses[q], grad[a:b] = one(measure, form, scores[a:b], y[a:b], self.pairs == "graded")
        return losses, grad


def worst_case(measure: str | Measure, scores: Floats, y: Floats, ptr: Ints, *, graded: bool = False) -> Floats:
    """max over perfect π*, other π of (E(π*) − E(π)) [F(π*) ≤ F(π)] per list (Eq. 6), exactly.

    F runs over all pairs of documents, or over those of different grade (`graded`).

    >>> worst_case("map", np.array([0.0, 1.0]), np.array([1.0, 0.0]), np.array([0, 2])).tolist()
    [0.5]
    """
    from . import _enumeration_kernels as kernels

    value = parse_bounded(measure)
    bounds = (_max_bound(value, int(kernels.Phi.STEP), scores[a:b], y[a:b], graded)[0] for a, b in pairwise(ptr))
    return np.fromiter(bounds, dtype=np.float64, count=len(ptr) - 1)


@dataclass(frozen=True, eq=False)
class _Patterns:
    """Every order of a list's grades, and how far the measure of that order falls short of the best."""

    rows: AnyArray
    lost: Floats


@lru_cache(maxsize=8)
def _patterns(measure: Measure, grades: tuple[float, ...], counts: tuple[int, ...]) -> _Patterns:
    from . import _enumeration_kernels as kernels

    n = sum(counts)
    number = factorial(n) // prod(map(factorial, counts))
    if number > MAX_PATTERNS:
        raise InputError(
            f"a list of {n} documents has {number} orders of its grades, too many to enumerate (at most "
            f"{MAX_PATTERNS}): use StructuralHinge for long lists"
        )
    rows = np.empty((number, n), dtype=np.uint8)
    kernels.all_patterns(np.repeat(np.arange(len(counts)), counts).astype(np.uint8), rows)
    lost = _lost(measure, np.array(grades)[rows])
    return _Patterns(rows, lost)


def _lost(measure: Measure, listed: Floats) -> Floats:
    """E(π*) − E(π) for rows of grades in ranked order, exactly 0 for the perfect ones."""
    number, n = listed.shape
    ranked = np.tile(np.arange(n, 0, -1, dtype=np.float64), number)
    E = measure.per_query(ranked, listed.ravel(), np.arange(0, (number + 1) * n, n))
    lost = np.nan_to_num(E.max() - E)
    return np.where(lost > 1e-12, lost, 0.0)


def smallest_gap(measure: str | Measure, scores: Floats, y: Floats, ptr: Ints, *, graded: bool = False) -> Floats:
    """min over perfect π*, other π of F(π*) − F(π) per list, exactly: the left-hand side of condition (9).

    Infinite where all orders of a list are perfect.

    >>> smallest_gap("map", np.array([3.0, 1.0]), np.array([1.0, 0.0]), np.array([0, 2])).tolist()
    [2.0]
    """
    value, gaps = parse_bounded(measure), np.full(len(ptr) - 1, np.inf)
    for q, (a, b) in enumerate(pairwise(ptr)):
        found = _Enumerated.of(value, scores[a:b], y[a:b], graded)
        if found is not None:
            gaps[q] = found.F_perfect.min() - found.F[found.patterns.lost > 0].max()
    return gaps


class _Enumerated(NamedTuple):
    """The orders of a list's grades, with the F of the best ranking of each, and of the worst perfect ones."""

    patterns: _Patterns
    codes: Ints
    starts: Ints
    falling: Ints
    rising: Ints
    F: Floats
    perfect: Ints
    F_perfect: Floats

    @classmethod
    def of(cls, measure: Measure, s: Floats, y: Floats, graded: bool) -> _Enumerated | None:
        """Enumerate them; None where all orders are perfect."""
        from . import _enumeration_kernels as kernels

        if len(s) < 2:
            return None
        grades, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        patterns = _patterns(measure, tuple(grades.tolist()), tuple(counts.tolist()))
        if not patterns.lost.any():
            return None
        falling, rising = np.lexsort((-s, codes)), np.lexsort((s, codes))
        starts = np.concatenate(([0], np.cumsum(counts)))
        F = np.empty(len(patterns.rows))
        kernels.pattern_scores(patterns.rows, s[falling], starts, graded, F)
        perfect = np.flatnonzero(patterns.lost == 0)
        F_perfect = np.empty(len(perfect))
        kernels.pattern_scores(patterns.rows[perfect], s[rising], starts, graded, F_perfect)
        return cls(patterns, codes, starts, falling, rising, F, perfect, F_perfect)


def _max_bound(measure: Measure, form: int, s: Floats, y: Floats, graded: bool) -> tuple[float, Floats]:
    from . import _enumeration_kernels as kernels

    grad, found = np.zeros(len(s)), _Enumerated.of(measure, s, y, graded)
    if found is None:
        return 0.0, grad
    rows, lowest = found.patterns.rows, int(np.argmin(found.F_perfect))
    value, slope, worst = kernels.largest_loss(form, found.patterns.lost, found.F, found.F_perfect[lowest])
    chosen = np.array(
        [
            _fill_pattern(rows[worst], found.falling, found.starts),
            _fill_pattern(rows[found.perfect[lowest]], found.rising, found.starts),
        ]
    )
    weights = np.array([slope, -slope])
    np.add.at(grad, chosen, weights[:, None] * _coefficients(found.codes[chosen], graded))
    return float(value), grad


def _fill_pattern(pattern: AnyArray, by_level: Ints, starts: Ints) -> Ints:
    """Return a ranking, first to last: at each place of the pattern, the next document of that grade."""
    used, order = starts.copy(), np.empty(len(pattern), dtype=np.int64)
    for place, level in enumerate(pattern):
        order[place] = by_level[used[level]]
        used[level] += 1
    return order


def _coefficients(ranked: AnyArray, graded: bool) -> Floats:
    """∂F/∂s at each place of rankings, given as rows of grade codes from first to last."""
    number, n = ranked.shape
    if not graded:
        return np.tile((n - 1 - 2 * np.arange(n)) / (n * (n - 1)), (number, 1))
    same = ranked[:, :, None] == ranked[:, None, :]
    others = n - same.sum(axis=2)
    ahead = np.arange(n) - np.tril(same, -1).sum(axis=2)
    return np.asarray((others - 2 * ahead) / np.maximum(others.sum(axis=1, keepdims=True) / 2, 1))


@lru_cache(maxsize=8)
def _rankings(n: int) -> AnyArray:
    """Every ranking of n documents: one row of document numbers each."""
    from . import _enumeration_kernels as kernels

    rows = np.empty((factorial(n), n), dtype=np.uint8)
    kernels.all_patterns(np.arange(n, dtype=np.uint8), rows)
    return rows


def _sum_bound(measure: Measure, form: int, s: Floats, y: Floats, graded: bool) -> tuple[float, Floats]:
    from . import _enumeration_kernels as kernels

    n = len(s)
    if n > MAX_SUM:
        raise InputError(f"the sum over rankings takes lists of up to {MAX_SUM} documents, got {n}: use the maximum")
    if n < 2:
        return 0.0, np.zeros(n)
    rows = _rankings(n)
    c = _coefficients(y[rows], graded)
    lost = _lost(measure, y[rows])
    weight = np.empty(len(rows))
    value = kernels.sum_over_pairs(form, lost, (s[rows] * c).sum(axis=1), weight)
    grad = np.zeros(n)
    np.add.at(grad, rows, weight[:, None] * c)
    return float(value), grad


@dataclass(frozen=True)
class StructuralHinge(CompiledSurrogate):
    """ℓ(s, y) = max_π (E(π*) − E(π)) − (F(π*) − F(π)), F over relevant × irrelevant pairs: SVMmap's loss (Eq. 10).

    E is AP, or NDCG with 0/1 gains; a document is relevant from grade `threshold` on (None: as the measure says, above
    0 for NDCG). The most violated ranking keeps relevant and irrelevant documents in score order and is found exactly:
    in O(n log n) for AP and for NDCG with the usual discount, in O(n log n + k n) with a cut-off k, and in
    O(relevant · irrelevant) for LETOR's discount without a cut-off.

    >>> value, grad = StructuralHinge().value_and_grad([0.0, 0.0], [1, 0], [0, 2])
    >>> value, grad.tolist()
    (0.5, [-2.0, 2.0])
    """

    measure: str | Measure = "map"
    threshold: float | None = None
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False

    def __post_init__(self) -> None:
        parse_ap_or_ndcg(self.measure)
        if self.threshold is not None:
            check_finite(threshold=self.threshold)

    @property
    def upper_bounds(self) -> Measure | None:
        """MAP, where the threshold is its own."""
        value = parse_ap_or_ndcg(self.measure)
        return value if isinstance(value, AP) and self.threshold is None else None

    def relevant(self, y: Floats) -> AnyArray:
        """Say which documents count as relevant."""
        if self.threshold is not None:
            return np.asarray(y >= self.threshold)
        value = parse_ap_or_ndcg(self.measure)
        return np.asarray(y > (value.above if isinstance(value, AP) else 0.0))

    def rule(self, longest: int) -> StructuralRule:
        """Return the measure as the kernels take it, for lists of up to `longest` documents."""
        from ._structural_kernels import StructuralRule

        value = parse_ap_or_ndcg(self.measure)
        if isinstance(value, AP):
            harmonic = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, longest + 2))))
            return StructuralRule(True, longest, False, True, harmonic)
        k = min(value.k or longest, longest + 1)
        table = np.zeros(longest + 2)
        table[1 : k + 1] = discount_table(k)[value.discount, :k]
        halving = value.discount == Discount.LOG2 and k >= longest
        return StructuralRule(False, k, value.short == Short.ZERO and value.k is not None, halving, table)

    def fill(
        self,
        scores: Floats,
        y: Floats,
        ptr: Ints,
        losses: Floats,
        grad: Floats,
        curve: Floats = NO_FLOATS,
        doc_weight: Floats = NO_FLOATS,
        place: Ints = NO_PLACES,
    ) -> int:
        """Fill the loss at the most violated ranking, and −2/(PN) times the inversions of each document."""
        from . import _structural_kernels as kernels

        rule = self.rule(int(np.diff(ptr).max(initial=1)))
        kernels.structural_hinge_of_lists(scores, self.relevant(y), ptr, rule, losses, grad)
        return -1


def parse_ap_or_ndcg(measure: str | Measure) -> AP | NDCG:
    """Read a measure whose most violated rankings we can find: MAP, or NDCG with or without a cut-off.

    >>> parse_ap_or_ndcg("p@10")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: no exact search for the most violated ranking of p@10: use map, ndcg or ndcg@k
    """
    value = parse_measure(measure)
    if isinstance(value, NDCG) or (isinstance(value, AP) and value.k is None):
        return value
    raise InputError(f"no exact search for the most violated ranking of {value.name}: use map, ndcg or ndcg@k")


def places_told_apart(measure: Measure, n_docs: int) -> tuple[BlockRule, bool]:
    """Return the places that a measure tells apart, for `most_violated`, and whether a grade is only relevant or not.

    MAP and rank-biased precision are perfect with the relevant documents first (up to a cut-off), P@k and recall with
    as many as can be in the top, the reciprocal rank with one at rank 1; the others read every place.
    """
    from ._working_set_kernels import BlockRule, Blocks

    k = measure.k or n_docs
    if measure.tells_apart == "relevant":
        return BlockRule(int(Blocks.RELEVANT), 1, k), True
    if measure.tells_apart != "places":
        return BlockRule(int(Blocks.TOP), 1, 1 if measure.tells_apart == "first" else k), True
    first = 2 if isinstance(measure, NDCG) and measure.discount == Discount.LETOR else 1
    return BlockRule(int(Blocks.EACH), first, k), False


@dataclass(frozen=True)
class WorkingSetHinge(CompiledSurrogate):
    """ℓ = 1/|B| Σ_{b ∈ B} Σ_{c ∈ C} (E(b) − E(c)) [1 − (F(b) − F(c))]₊ (Fig. 7), rankings in place of documents.

    A "document" is a ranking with score F and grade E: grade 1 for the perfect ones (B), below 1 for the others (C).

    >>> value, grad = WorkingSetHinge().value_and_grad([0.0, 0.0], [1.0, 0.25], [0, 2])
    >>> value, grad.tolist()
    (0.75, [-0.75, 0.75])
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = False

    def fill(
        self,
        scores: Floats,
        y: Floats,
        ptr: Ints,
        losses: Floats,
        grad: Floats,
        curve: Floats = NO_FLOATS,
        doc_weight: Floats = NO_FLOATS,
        place: Ints = NO_PLACES,
    ) -> int:
        """Fill the loss of each working set and its gradient, in O(n log n)."""
        from ._working_set_kernels import working_set_hinge_of_lists

        working_set_hinge_of_lists(scores, y, ptr, losses, grad)
        return -1
