"""Generated data sets: separable as in the theory, graded as in practice, large as in production."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._typing import AnyArray, Floats, Ints, Seed
from ..errors import InputError
from . import validation
from .dataset import QueryDataset
from .grouping import bounds_of, query_of_rows

_BAND = 1.5
"""Half the width of a grade's band along the ranker, in standard deviations: 87% of a Gaussian lies inside."""

_WEB_SHARES = (0.524, 0.325, 0.134, 0.010, 0.007)
"""Shares of the grades 0–4, close to those of judged web results: half irrelevant, few excellent."""


@dataclass(frozen=True)
class Separable:
    """A separable data set, and a `ranker` that orders every query with at least `margin` between grades."""

    data: QueryDataset
    ranker: Floats
    margin: float
    """Measured on the data: Eq. 21 holds for `ranker` with this γ."""


def make_separable(
    n_queries: int = 1000,
    n_docs: int = 20,
    n_features: int = 20,
    n_grades: int = 5,
    margin: float = 1.0,
    random_state: Seed = None,
) -> Separable:
    """Make queries that some weights w rank without a mistake, with a margin between grades.

    min_q min_{i,j: R_i > R_j} w·x_i − w·x_j ≥ γ, ‖w‖ = 1 (online perceptrons, Eq. 21; the simulation of its Fig. 1).

    Grades are uniform over the documents; documents of a grade come from that grade's Gaussian. Its component along
    the unit ranker w is cut to a band, and the bands stand `margin` apart; the other directions are left alone, and the
    grades' means differ there as well, so that no single feature shows the ranker.

    >>> made = make_separable(n_queries=50, margin=0.5, random_state=0)
    >>> made.data
    QueryDataset(50 queries, 1000 documents, 20 features, float64)
    >>> made.margin >= 0.5, bool(np.isclose(np.linalg.norm(made.ranker), 1))
    (True, True)
    """
    validation.check_count(n_queries=n_queries, n_docs=n_docs, n_features=n_features, n_grades=n_grades)
    validation.check_positive(margin=margin)
    rng = validation.as_generator(random_state)
    ranker = rng.standard_normal(n_features)
    ranker /= np.linalg.norm(ranker)
    means = rng.standard_normal((n_grades, n_features))
    y = rng.integers(0, n_grades, size=n_queries * n_docs)
    X = means[y]
    X += rng.standard_normal(X.shape)
    # A little more than the margin, so that rounding in X @ ranker cannot fall below what was asked for.
    step = margin * (1 + 1e-9) + 2 * _BAND
    along = (y - (n_grades - 1) / 2) * step + _truncated_normal(rng, len(y))
    X += np.outer(along - _scores(X, ranker), ranker)
    data = QueryDataset.from_arrays(X, y, np.repeat(np.arange(n_queries), n_docs))
    return Separable(data, ranker, _margin(_scores(X, ranker), data))


def make_graded(
    n_queries: int = 100,
    n_docs: int | tuple[int, int] = 20,
    n_features: int = 20,
    n_grades: int = 5,
    *,
    noise: float = 0.5,
    n_informative: int | None = None,
    n_redundant: int | None = None,
    blank: float = 0.0,
    density: float | None = None,
    dtype: npt.DTypeLike = np.float64,
    random_state: Seed = None,
) -> QueryDataset:
    """Make judged queries like real ones: few high grades, easy and hard queries, useful and useless features.

    A hidden score is linear in the informative features, plus a shift per query and Gaussian `noise` (in units of the
    score's own spread); grade g starts where the hidden score passes the quantile that leaves a share ∝ 2^−g above
    it. `n_docs` is the mean length (lists run from half to one and a half times it) or a range `(shortest, longest)`.
    A third of the features is informative and a third redundant (mixtures of informative ones) unless stated. `blank`
    is the share of queries without a relevant document; with a `density`, X is CSR (the dense array is made first).

    >>> make_graded(n_queries=30, n_docs=(5, 9), n_features=6, blank=0.1, random_state=0).info().blank_queries
    3
    >>> make_graded(n_docs=(10, 10), n_features=50, density=0.1, random_state=0)
    QueryDataset(100 queries, 1000 documents, 50 features, CSR float64)
    """
    validation.check_count(n_queries=n_queries, n_features=n_features, n_grades=n_grades)
    validation.check_not_negative(noise=noise)
    if n_grades < 2:
        raise InputError(f"n_grades must be at least 2 (grade 0 and one relevant), got {n_grades}")
    validation.check_share(blank=blank)
    if density is not None and not 0 < density <= 1:
        raise InputError(f"density must be a share above 0 and up to 1, got {density!r}")
    informative, redundant = _roles(n_features, n_informative, n_redundant)
    rng = validation.as_generator(random_state)
    lengths = rng.integers(*_length_range(n_docs), size=n_queries, endpoint=True)
    ptr = bounds_of(lengths)
    X: Any = rng.standard_normal((ptr[-1], n_features))
    mixture = rng.standard_normal((informative, redundant)) / np.sqrt(informative)
    copies = X[:, informative : informative + redundant]
    copies *= 0.3
    copies += np.einsum("ij,jk->ik", X[:, :informative], mixture)
    if density is not None:
        X *= rng.random(X.shape) < density
    hidden = _scores(X[:, :informative], rng.standard_normal(informative))
    spread = float(hidden.std()) or 1.0
    hidden += 0.5 * spread * np.repeat(rng.standard_normal(n_queries), lengths)
    hidden += noise * spread * rng.standard_normal(len(hidden))
    shares = 0.5 ** np.arange(n_grades)
    y = _grades(hidden, shares / shares.sum())
    _set_blank(y, hidden, ptr, rng.permutation(n_queries)[: round(blank * n_queries)])
    X = X[:, rng.permutation(n_features)].astype(dtype, copy=False)
    if density is not None:
        from scipy.sparse import csr_array

        X = csr_array(X)
    return QueryDataset.from_arrays(X, y, query_of_rows(ptr))


def make_mslr_like(
    n_queries: int = 6000,
    n_docs: float = 117.9175,
    n_features: int = 136,
    *,
    dtype: npt.DTypeLike = np.float32,
    random_state: Seed = 0,
) -> QueryDataset:
    """Make a data set of the shape of one MSLR-WEB10K training fold (707,505 × 136 by default) in seconds.

    `n_docs` is the mean list length. A third of the features is Gaussian, a third skewed like scores, a third whole
    numbers like counts; grades 0–4 have the shares of judged web results and follow a tenth of the features.

    >>> make_mslr_like(n_queries=20, n_docs=50, n_features=12)
    QueryDataset(20 queries, 1000 documents, 12 features, float32)
    """
    validation.check_count(n_queries=n_queries, n_features=n_features)
    if n_docs < 1:
        raise InputError(f"n_docs must be at least 1, got {n_docs!r}")
    rng = validation.as_generator(random_state)
    lengths = _web_lengths(rng, n_queries, round(n_queries * n_docs))
    informative = np.arange(0, n_features, 10)
    w = rng.standard_normal(len(informative))
    X = np.empty((int(lengths.sum()), n_features), dtype=dtype)
    hidden = np.empty(len(X))
    for start in range(0, len(X), 1 << 14):  # block by block, so that every step finds its rows in the cache
        rows = X[start : start + (1 << 14)]
        rng.standard_normal(out=rows, dtype=rows.dtype)
        hidden[start : start + len(rows)] = _scores(rows[:, informative], w)
        np.exp(rows[:, 1::3], out=rows[:, 1::3])
        np.rint(np.exp(rows[:, 2::3]), out=rows[:, 2::3])
    hidden += np.linalg.norm(w) * rng.standard_normal(len(X))
    return QueryDataset.from_arrays(X, _grades(hidden, np.array(_WEB_SHARES)), np.repeat(np.arange(n_queries), lengths))


def _scores(X: AnyArray, w: Floats) -> Floats:
    """X w, added up in an order that does not depend on BLAS or its threads: a seed means the same bits."""
    scores: Floats = np.einsum("ij,j->i", X, w)
    return scores


def _truncated_normal(rng: np.random.Generator, n: int) -> Floats:
    """Draw standard normals inside the band; those outside are drawn again."""
    values = rng.standard_normal(n)
    outside = np.flatnonzero(np.abs(values) > _BAND)
    while len(outside):
        values[outside] = rng.standard_normal(len(outside))
        outside = outside[np.abs(values[outside]) > _BAND]
    return values


def _margin(scores: Floats, data: QueryDataset) -> float:
    """Smallest gap between neighbouring grades of a query (infinite where no query has two grades)."""
    order = np.lexsort((scores, data.y, data.query_of_rows))
    query, y, s = data.query_of_rows[order], data.y[order], scores[order]
    step = (query[1:] == query[:-1]) & (y[1:] > y[:-1])  # from the best of a grade to the worst of the next
    return float((s[1:] - s[:-1])[step].min(initial=np.inf))


def _roles(n_features: int, n_informative: int | None, n_redundant: int | None) -> tuple[int, int]:
    informative = max(1, n_features // 3) if n_informative is None else n_informative
    redundant = min(n_features // 3, n_features - informative) if n_redundant is None else n_redundant
    validation.check_count(n_informative=informative)
    validation.check_not_negative(n_redundant=redundant)
    if informative + redundant > n_features:
        raise InputError(f"{informative} informative and {redundant} redundant features exceed n_features={n_features}")
    return informative, redundant


def _length_range(n_docs: int | tuple[int, int]) -> tuple[int, int]:
    low, high = n_docs if isinstance(n_docs, tuple) else (max(1, n_docs - n_docs // 2), n_docs + n_docs // 2)
    validation.check_count(n_docs=low)
    if high < low:
        raise InputError(f"n_docs must be a mean length or (shortest, longest), got {n_docs!r}")
    return low, high


def _grades(hidden: Floats, shares: AnyArray) -> Floats:
    """Cut the hidden score at its quantiles so that grade g gets its share."""
    cuts = np.quantile(hidden, np.cumsum(shares)[:-1])
    return np.searchsorted(cuts, hidden, side="right").astype(np.float64)


def _set_blank(y: Floats, hidden: Floats, ptr: Ints, blank: Ints) -> None:
    """Give the blank queries no relevant document and every other query at least one."""
    query = query_of_rows(ptr)
    best = np.lexsort((-hidden, query))[ptr[:-1]]
    y[best] = np.maximum(y[best], 1)
    y[np.isin(query, blank)] = 0


def _web_lengths(rng: np.random.Generator, n_queries: int, total: int) -> Ints:
    """Draw skewed list lengths of at least 1 that add up to `total`."""
    share = rng.gamma(4.0, size=n_queries)
    edges = np.rint(np.cumsum(share) / share.sum() * (total - n_queries)).astype(np.int64)
    lengths: Ints = np.diff(edges, prepend=0) + 1
    return lengths
