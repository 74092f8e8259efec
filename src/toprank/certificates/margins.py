"""Margins of precision at k: what a scoring function realises, and the largest that a linear one can.

On a list with n₊ positives and k ≤ n₊: weak (k, γ) – the k-th best positive lies γ above the best negative
(Definition 2); (k, γ) – so does the mean of the n₊ − k + 1 lowest positives (Definition 5); strong γ – so does every
positive (Definition 4). weak ≥ (k, γ) ≥ strong, and a margin of 1 makes ramp, avg or max zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..data import linear, validation
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..measures.binary import places_at_share
from ..surrogates.precision_at_k import cutoff

Kind = Literal["weak", "k", "strong"]


@dataclass(frozen=True)
class Margins:
    """The three margins that one scoring function realises on every list: the smallest over the lists."""

    weak: float
    k: float
    strong: float


def realised_margins(
    scores: ArrayLike, y: ArrayLike, ptr: ArrayLike | None = None, *, k: int | None = None, kappa: float | None = None
) -> Margins:
    """Return the margins of a scoring function; lists with one class only are left out, grades above 0 are positive.

    >>> realised_margins([3.0, 2.0, 0.5, 1.0], [1, 1, 1, 0], k=2)
    Margins(weak=1.0, k=0.25, strong=-0.5)
    """
    s = validation.as_scores(scores)
    labels = validation.as_labels(y, len(s))
    bounds = np.array([0, len(s)]) if ptr is None else validation.as_ptr(ptr, len(s))
    found = [_sorted_list(s[a:b], labels[a:b], k, kappa) for a, b in _lists_with_both(labels, bounds)]
    if not found:
        raise InputError("no list holds both classes: there is no margin to speak of")
    return Margins(*(min(edge.margin(kind, edge.scores) for edge in found) for kind in ("weak", "k", "strong")))


@dataclass(frozen=True, eq=False)
class LargestMargin:
    """A unit vector and the margin it realises; `upper` is proved to bound every unit vector's (infinite for weak)."""

    kind: Kind
    margin: float
    upper: float
    w: Floats
    n_iter: int


def largest_margin(
    data: QueryDataset,
    kind: Kind = "k",
    *,
    k: int | None = None,
    kappa: float | None = None,
    start: ArrayLike | None = None,
    max_iter: int = 200,
    tol: float = 1e-3,
) -> LargestMargin:
    """Search the linear function with the largest margin on all lists: max_{‖w‖=1} min over lists, by cutting planes.

    The (k, γ) and the strong margin m are concave: every w gives g with m(v) ≤ g·v for all v, and the shortest vector
    in the hull of those g bounds m from above and is the next w to try. The search ends when the two meet within
    `tol`, or when the bound is 0: then no linear function has a margin. The weak margin is not concave: its k best
    positives are held fixed in turn, and what comes out is a local best.

    >>> data = QueryDataset.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [1, 1, 0])
    >>> found = largest_margin(data, "strong", k=1)
    >>> round(found.margin, 4), round(found.upper, 4), found.w.round(4).tolist()
    (0.7071, 0.7071, [0.7071, 0.7071])
    """
    validation.check_choice(("weak", "k", "strong"), kind=kind)
    validation.check_count(max_iter=max_iter)
    validation.check_positive(tol=tol)
    cutoff(k, kappa)
    lists = _lists_with_both(data.y, data.ptr)
    if not lists:
        raise InputError("no list holds both classes: there is no margin to speak of")
    first = _mean_difference(data) if start is None else validation.as_vector(start, data.n_features, "start")
    if kind != "weak":
        return _by_cutting_planes(data, lists, kind, k, kappa, first, max_iter, tol)
    best = _by_cutting_planes(data, lists, kind, k, kappa, first, 1, tol)
    used = best.n_iter
    while used < max_iter:
        kept = _only_best_positives(data, lists, k, kappa, best.w)
        found = _by_cutting_planes(
            kept, _lists_with_both(kept.y, kept.ptr), "strong", None, 1.0, best.w, max_iter - used, tol
        )
        used += found.n_iter
        reached = realised_margins(linear.scores(data.X, found.w), data.y, data.ptr, k=k, kappa=kappa).weak
        if reached <= best.margin + tol * abs(best.margin):
            break
        best = replace(best, margin=reached, w=found.w)
    return replace(best, n_iter=used, upper=np.inf)


def _by_cutting_planes(
    data: QueryDataset,
    lists: list[tuple[int, int]],
    kind: Kind,
    k: int | None,
    kappa: float | None,
    first: Floats,
    max_iter: int,
    tol: float,
) -> LargestMargin:
    w = first / (np.linalg.norm(first) or 1.0)
    best = LargestMargin(kind, -np.inf, np.inf, w, 0)
    cuts = np.empty((0, data.n_features))
    for iteration in range(1, max_iter + 1):
        scores = linear.scores(data.X, w)
        edges = [_sorted_list(scores[a:b], data.y[a:b], k, kappa) for a, b in lists]
        worst = min(range(len(edges)), key=lambda i: edges[i].margin(kind, edges[i].scores))
        margin = edges[worst].margin(kind, edges[worst].scores)
        if margin > best.margin:
            best = replace(best, margin=margin, w=w)
        slope = np.zeros(data.n_docs)
        slope[lists[worst][0] : lists[worst][1]] = edges[worst].slope(kind)
        cuts = np.vstack([cuts, linear.adjoint(data.X, slope)])
        shortest = _shortest_in_hull(cuts)
        upper = float(np.linalg.norm(shortest))
        if kind != "weak":
            best = replace(best, upper=min(best.upper, upper))
        best = replace(best, n_iter=iteration)
        if upper <= 1e-9 * np.abs(cuts).max() or upper - best.margin <= tol * upper:
            break
        w = shortest / upper
    return best


@dataclass(frozen=True, eq=False)
class _SortedList:
    """One list from worst to best: positives, negatives, and its k."""

    scores: Floats
    positives: Ints
    best_negative: int
    k: int

    def margin(self, kind: Kind, scores: Floats) -> float:
        positives = scores[self._counted_positives(kind)]
        return float(positives.mean() - scores[self.best_negative])

    def _counted_positives(self, kind: Kind) -> Ints:
        """The positives whose mean score the margin is about."""
        n_pos = len(self.positives)
        if kind == "k":
            return self.positives[: n_pos - self.k + 1]
        return self.positives[[0 if kind == "strong" else n_pos - self.k]]

    def slope(self, kind: Kind) -> Floats:
        g = np.zeros(len(self.scores))
        held = self._counted_positives(kind)
        g[held] = 1 / len(held)
        g[self.best_negative] -= 1.0
        return g


def _sorted_list(s: Floats, y: Floats, k: int | None, kappa: float | None) -> _SortedList:
    positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
    places, share = cutoff(k, kappa)
    n_pos = len(positives)
    own = min(n_pos, places or int(places_at_share(share, n_pos)))
    rising = positives[np.argsort(s[positives], kind="stable")]
    return _SortedList(s, rising, int(negatives[np.argmax(s[negatives])]), own)


def both_classes(positive: AnyArray, ptr: Ints) -> AnyArray:
    """Which lists hold both classes."""
    found = np.diff(np.append(0, np.cumsum(positive))[ptr])
    return (found > 0) & (found < np.diff(ptr))


def _lists_with_both(y: Floats, ptr: Ints) -> list[tuple[int, int]]:
    """The rows of each list that holds both classes."""
    return [(int(ptr[q]), int(ptr[q + 1])) for q in np.flatnonzero(both_classes(y > 0, ptr))]


def _mean_difference(data: QueryDataset) -> Floats:
    positive = data.y > 0
    return linear.adjoint(data.X, np.where(positive, 1 / max(positive.sum(), 1), -1 / max((~positive).sum(), 1)))


def _only_best_positives(
    data: QueryDataset, lists: list[tuple[int, int]], k: int | None, kappa: float | None, w: Floats
) -> QueryDataset:
    """Leave out the positives below the k best of their list."""
    scores, keep = linear.scores(data.X, w), np.ones(data.n_docs, dtype=bool)
    for a, b in lists:
        edge = _sorted_list(scores[a:b], data.y[a:b], k, kappa)
        keep[a + edge.positives[: len(edge.positives) - edge.k]] = False
    rows = np.flatnonzero(keep)
    ptr = np.append(0, np.cumsum(keep))[data.ptr].astype(np.int64)
    return replace(data, X=data.X[rows], y=data.y[rows], ptr=ptr, doc_ids=None, order=None, mapped=None)


def _shortest_in_hull(cuts: Floats) -> Floats:
    """Shortest vector in the convex hull of the rows, as a least-squares problem over λ ≥ 0 (Lawson and Hanson)."""
    from scipy.optimize import nnls

    scale = float(np.abs(cuts).max()) or 1.0
    system = np.vstack([cuts.T / scale, np.ones(len(cuts))])
    weights, _ = nnls(system, np.append(np.zeros(cuts.shape[1]), 1.0), maxiter=50 * len(cuts) + 100)
    return np.asarray((weights / weights.sum()) @ cuts, dtype=np.float64)
