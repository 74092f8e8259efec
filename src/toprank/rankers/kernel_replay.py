"""Certificates of the kernel perceptron: the linear learner's theorems, in the space of the kernel.

The proofs use inner products alone, so they hold for f = Σ_b α_b k(s_b, ·) in place of w, with ‖f‖² = Σ_b α_b f(s_b),
‖z_t‖² = gᵀKg and R_X² = max k(x, x). Where a budget drops rounds, Eq. 17 is left, with what the drops cost added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from math import expm1, inf, sqrt
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Floats, Matrix
from ..certificates.base import Assumption
from ..certificates.mistakes import Run, ranking_margin
from ..certificates.replay import Direction, Replay
from ..data.csr import dense
from ..data.dataset import QueryDataset
from ..data.mapped import read_in_any_order
from ..errors import InputError
from ..model.functions import KernelFunction, LinearFunction, ScoringFunction
from ..solvers.stream import OnlineDescent
from .base import Ranker
from .kernel import KernelSlamPerceptron
from .kernel_store import Settings, Store, squared_norm
from .replay import (
    SAME_RUN,
    SeenLists,
    longer_run,
    longest_row,
    loss_weights,
    nearly_equal,
    observed_run,
    tightest_constant,
)

_LANDMARKS = 256
"""How many documents the search for a comparator works with."""
_CHOICE = 2048
"""How many of the stored documents, and how many of all, these are chosen from."""
_NUMBERS = 2**22
"""How many coordinates the search holds (32 MB); longer data lend it every n-th query."""
_FLAT = 1e-6
"""A document that lies in the span of the landmarks but for this share adds none of its own: it would be rounding."""


class KernelReplay(Replay):
    """The rounds of a kernel perceptron, played again."""

    def __init__(self, ranker: KernelSlamPerceptron, data: QueryDataset) -> None:
        loss, seed = ranker._check(), int(ranker._passes["seed"])
        self.data, self.store = data, Store.empty(ranker, data.n_features, seed)
        self.learner = OnlineDescent(loss, ranker._target, ranker._steps())
        self.seen, self._along = SeenLists(self.learner, data), 0.0
        rng, rows, born, played = np.random.default_rng(seed), [np.empty((0, 4))], list[int](), 0
        for _ in range(ranker._passes["epochs"]):
            order = rng.permutation(data.n_queries) if ranker._passes["shuffle"] else np.arange(data.n_queries)
            scores, first = np.zeros(data.n_docs), len(rows)
            with read_in_any_order(data.X, order):
                for q in order:
                    rows.append(ranker._play(self.store, loss, data, np.array([q]), scores))
                    born += [played] * (self.store.counts.documents - len(born))
                    played += len(rows[-1])
            loss_weight = loss_weights(self.learner, data, order, np.concatenate(rows[first:]))
            self._along += self.seen.add(scores, loss_weight)
        self.rounds = np.concatenate(rows)
        self.present = 1 - np.array(born) / max(played, 1)
        """In which share of the rounds each stored document was held, while none has been dropped."""
        mine, own = self.store, ranker._store
        same = mine.counts == own.counts and nearly_equal(mine.totals, own.totals)
        same = same and np.array_equal(mine.documents, own.documents) and nearly_equal(mine.alpha, own.alpha)
        self.same = Assumption(SAME_RUN, same)

    @property
    def dropped(self) -> int:
        """How many rounds the budget dropped."""
        return self.store.counts.dropped

    @cached_property
    def run(self) -> Run:
        """The numbers of the run, the constants of Lemma 5, and what the drops cost where u = 0.

        A step changes ‖f‖² by η²‖z_t‖² − 2η z_t·f_t, so all that is left of ‖f‖² at the end was changed by drops.
        """
        loss, settings = self.learner.surrogate, self.store.settings
        kernel, radius2 = settings.kernel, largest_square(settings, self.data)
        # gamma > 0, coef0 ≥ 0 and a whole degree make k an inner product
        space = Assumption(f"norms are those of the {kernel} kernel, R_X² = max k(x, x) = {radius2:.4g}", True)
        found = observed_run(self.learner, self.data, self.rounds, sqrt(radius2), (self.same, space))
        half, rest = found.half or 0.0, 0.0
        if not found.constant:
            rest = self._along - half
        elif self.dropped:
            rest = squared_norm(self.store.model()) / (2 * found.eta) + self._along - half
        square = distance(settings)
        tight = inf if square is None else tightest_constant(loss, self.data, self.seen.weights, square)
        zero = self.seen.loss(np.zeros(self.data.n_docs))[0]
        return replace(found, dropped=self.dropped, rest=rest, tight=tight, zero=zero)

    def direction(self, u: KernelFunction) -> Direction:
        """Measure a function."""
        norm = sqrt(squared_norm(u))
        unit = _times(u, 1 / norm) if norm > 0 else u
        scores, along = unit.scores(self.data.X), 0.0
        if self.dropped or not self.run.constant:
            along = -float(self.seen.slopes @ scores)
        if self.dropped and self.run.constant:
            held = self.store.model()
            along -= float(unit.scores(held.stored) @ held.alpha) / self.run.eta
        margin = ranking_margin(scores, self.learner.compared(self.data.y), self.data.ptr)
        return Direction(unit, norm, margin, partial(self.seen.losses, scores), along, _times)

    def directions(self) -> Iterator[KernelFunction]:
        """Yield the learner's last function, its average over the rounds, and two of a longer run.

        The longer run is the linear learner's search, in coordinates of the space that some documents span. All that it
        looks at are functions Σ_j β_j k(s_j, ·), so their norms and scores are exact.
        """
        from ..model import _kernel_kernels as kernels

        own = self.store.model()
        yield own
        if self.dropped == 0:
            yield replace(own, alpha=own.alpha * self.present)
        choice = np.concatenate([_some_rows(own.stored), _some_rows(self.data.X)])
        form = kernels.KernelForm.of(own.kernel, own.gamma, own.coef0, own.degree)
        coords, marks = np.zeros((len(choice), min(len(choice), _LANDMARKS))), np.zeros(_LANDMARKS, dtype=np.int64)
        r = kernels.span(form, choice, _FLAT, marks[: coords.shape[1]], coords)
        if r == 0:
            return
        documents, basis = choice[marks[:r]], coords[marks[:r], :r]
        part = self.data[:: -(-self.data.n_docs * r // _NUMBERS)]
        features = np.empty((part.n_docs, r))
        for low in range(0, part.n_docs, 4096):
            rows = _dense(part.X[low : low + 4096])
            kernels.coordinates(form, rows, documents, basis, features[low : low + 4096])
        for w in longer_run(self.learner, part.with_X(features), self.run.A):
            beta = w.copy()
            for j in range(r - 1, -1, -1):  # basisᵀ β = w, from the last row up
                beta[j] = (w[j] - (basis[j + 1 :, j] * beta[j + 1 :]).sum()) / basis[j, j]
            yield self.store.settings.function(documents, beta)


def largest_square(settings: Settings, data: QueryDataset) -> float:
    """R_X² = max k(x, x): each kernel grows with ‖x‖, or does not depend on it."""
    longest = longest_row(data) ** 2
    with np.errstate(over="ignore"):
        power = np.float64(settings.gamma * longest + settings.coef0) ** settings.degree
    return float({"linear": longest, "polynomial": power, "rbf": 1.0}[settings.kernel])


def distance(settings: Settings) -> Callable[[float], float] | None:
    """Return ‖k(x, ·) − k(s, ·)‖² as a function of ‖x − s‖²; None where it is none (polynomials)."""
    return {"linear": float, "rbf": lambda d2: -2 * expm1(-settings.gamma * d2)}.get(settings.kernel)


def _times(f: KernelFunction, c: float) -> KernelFunction:
    return replace(f, alpha=c * f.alpha)


def _some_rows(X: Matrix) -> Floats:
    """Return rows at even distances."""
    return _dense(X[np.arange(0, X.shape[0], -(-X.shape[0] // _CHOICE) or 1)])


def _dense(X: Matrix) -> Floats:
    return np.ascontiguousarray(dense(X), dtype=np.float64)


def as_function(own: KernelFunction, comparator: Any) -> KernelFunction:
    """Return a comparator as a function in the space of the kernel that `own` has.

    >>> own = KernelFunction(np.array([[1.0, 0.0]]), np.array([2.0]), "linear")
    >>> as_function(own, ([[1.0, 1.0], [0.0, 1.0]], [1.0, -1.0])).scores(np.array([[5.0, 7.0]])).tolist()
    [5.0]
    >>> as_function(own, [1.0, 3.0]).scores(np.array([[5.0, 7.0]])).tolist()
    [26.0]
    """
    if isinstance(comparator, Ranker):
        check_is_fitted(comparator, "model_")
        comparator = comparator.function_
    if isinstance(comparator, ScoringFunction) and not isinstance(comparator, LinearFunction):
        if not isinstance(comparator, KernelFunction) or _kernel(comparator) != _kernel(own):
            raise InputError(f"the comparator must have the ranker's own kernel, {_kernel(own)}")
        found = comparator
    else:
        documents, alpha = _expansion(own, comparator)
        found = replace(own, stored=documents, alpha=alpha)
    if found.n_features != own.n_features:
        raise InputError(f"the comparator must be of {own.n_features} features, got {found.n_features}")
    return found


def _expansion(own: KernelFunction, comparator: Any) -> tuple[Floats, Floats]:
    """Return the documents and coefficients that the caller gave; with the linear kernel a weight vector is one."""
    pair = isinstance(comparator, (tuple, list)) and len(comparator) == 2 and np.ndim(comparator[0]) == 2
    if isinstance(comparator, LinearFunction):
        comparator = comparator.coef
    if own.kernel == "linear" and not pair:
        comparator = ([comparator], [1.0])
    elif not pair:
        raise InputError(
            f"a comparator in the space of the {own.kernel} kernel is a fitted ranker with the same kernel, or a pair "
            "(documents, coefficients)"
        )
    try:
        documents, alpha = (np.array(part, dtype=np.float64, order="C") for part in comparator)
    except (TypeError, ValueError) as error:
        raise InputError(f"the comparator must hold numbers: {error}") from None
    return documents, alpha


def _kernel(model: KernelFunction) -> str:
    """Return what makes two kernels the same, as text."""
    if model.kernel == "linear":
        return "linear"
    shape = f", coef0={model.coef0!r}, degree={model.degree}" if model.kernel == "polynomial" else ""
    return f"{model.kernel} with gamma={model.gamma!r}{shape}"
