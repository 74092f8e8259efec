"""Certificates of the kernel perceptron: the linear learner's theorems, in the space of the kernel.

The proofs use inner products alone, so they hold for f = Σ_b α_b k(s_b, ·) in place of w, with ‖f‖² = Σ_b α_b f(s_b),
‖z_t‖² = gᵀKg and R_X² = max k(x, x). What they do need is that a round changes f by −η z_t and by nothing else: a
document that the budget drops breaks all but Lemma 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import isfinite, sqrt
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import Floats, Matrix
from ..certificates.base import Assumption, Certificate
from ..certificates.mistakes import Comparator, Run, ranking_margin
from ..data.dataset import QueryDataset
from ..data.validation import is_sparse
from ..errors import InputError
from ..solvers.online import OnlineDescent
from ..solvers.steps import Steps
from .base import Ranker
from .kernel import KernelSlamPerceptron, compared_grades
from .kernel_store import Store, squared_norm
from .models import KernelModel, LinearModel, Model
from .replay import Rivals, longer_run, longest_row, observed_run

_LANDMARKS = 256
"""How many documents the search for a comparator works with."""
_CHOICE = 2048
"""How many of the stored documents, and how many of all, these are chosen from."""
_NUMBERS = 2**22
"""How many coordinates the search holds (32 MB); longer data lend it every n-th query."""
_FLAT = 1e-6
"""A document that lies in the span of the landmarks but for this share adds none of its own: it would be rounding."""


def certify_kernel(
    ranker: KernelSlamPerceptron, data: QueryDataset, comparator: KernelModel | None
) -> list[Certificate]:
    """Return the certificates of a kernel perceptron that learned from `data`.

    The rounds are played again; that they end at the ranker's own documents and coefficients is the first assumption.
    """
    replay = KernelReplay(ranker, data)
    run = replay.run()
    given = None if comparator is None else replay.rival(comparator)
    lemma, *others = run.certificates(replay.rivals(run).choose if given is None else lambda bound: given)
    return [replace(lemma, assumptions=(replay.inner_product,)), *others]


class KernelReplay:
    """The rounds of a kernel perceptron, played again."""

    def __init__(self, ranker: KernelSlamPerceptron, data: QueryDataset) -> None:
        loss, seed = ranker._slam(), int(ranker._passes["seed"])
        self.data, self.store = data, Store.empty(ranker, data.n_features, seed)
        self.learner = OnlineDescent(loss, loss.target, Steps.parse(ranker.eta))
        self.grades, self._delta = compared_grades(loss.target, data.y), loss.margin
        # A comparator scores a document alike in all rounds: what the document weighs in them may be summed up.
        self.weights = np.zeros(data.n_docs)
        rng, rows = np.random.default_rng(seed), [np.empty((0, 4))]
        born: list[int] = []
        played = 0
        for _ in range(ranker._passes["epochs"]):
            order = rng.permutation(data.n_queries) if ranker._passes["shuffle"] else np.arange(data.n_queries)
            for q in order:
                rows.append(ranker._play(self.store, loss, data, np.array([q]), self.weights))
                born += [played] * (int(self.store.counters[0]) - len(born))
                played += len(rows[-1])
        self.rounds = np.concatenate(rows)
        self.present = 1 - np.array(born) / max(played, 1)
        """In which share of the rounds each stored document was held, while none has been dropped."""
        self.same = self.store.equals(ranker._store)

    @property
    def dropped(self) -> int:
        """How many documents the budget dropped."""
        return int(self.store.counters[2])

    @property
    def radius2(self) -> float:
        """R_X² = max k(x, x): each kernel grows with ‖x‖, or does not depend on it."""
        kernel, gamma, coef0, degree, *_ = self.store.settings
        longest = longest_row(self.data) ** 2
        with np.errstate(over="ignore"):
            power = np.float64(gamma * longest + coef0) ** degree
        return float({"linear": longest, "polynomial": power, "rbf": 1.0}[kernel])

    @property
    def inner_product(self) -> Assumption:
        """What ‖·‖ and R_X stand for here; gamma > 0, coef0 ≥ 0 and a whole degree make k an inner product."""
        kernel = self.store.settings[0]
        return Assumption(f"norms are those of the {kernel} kernel, R_X² = max k(x, x) = {self.radius2:.4g}", True)

    def run(self) -> Run:
        """Return the numbers of the run and the constant of Lemma 5."""
        kept = "the budget dropped no document" + (f", but it dropped {self.dropped}" if self.dropped else "")
        assumptions = (
            Assumption("these lists, in this order, are what the ranker learned from, starting at 0", self.same),
            Assumption("the step is constant", True),
            Assumption(kept, self.dropped == 0),
            self.inner_product,
        )
        found = observed_run(self.learner, self.data, self.rounds, sqrt(self.radius2), assumptions)
        return replace(found, zero=float(self.losses(np.zeros(self.data.n_docs), np.ones(1))[0]))

    def losses(self, scores: Floats, scales: Floats) -> Floats:
        """L(c·u) = Σ_t f_t(c·u) for every c in `scales`, from the scores of u."""
        from ..solvers import _list_kernels as kernels

        ptr, losses = np.array(self.data.ptr), np.zeros(len(scales))
        level = kernels.number_grades(self.grades, ptr)[0]
        kernels.rival_losses(False, self._delta, scores, self.weights, level, ptr, scales, losses)
        return losses

    def margin(self, scores: Floats) -> float:
        """Return the margin of these scores on all lists (Eq. 21), 0 where no list has two grades."""
        margin = ranking_margin(scores, self.grades, self.data.ptr)
        return margin if isfinite(margin) else 0.0

    def rival(self, u: KernelModel) -> Comparator:
        """Return what the bounds need to know of u."""
        norm2, scores = squared_norm(u), u.scores(self.data.X)
        margin = self.margin(scores) / sqrt(norm2) if norm2 > 0 else 0.0
        return Comparator(norm2, float(self.losses(scores, np.ones(1))[0]), margin, u)

    def rivals(self, run: Run) -> Rivals:
        """Return the functions at hand, each at many lengths."""
        found = Rivals(run.margin, run.zero, self.store.function(np.zeros((0, self.data.n_features)), np.zeros(0)))
        for direction in self.directions(run.A):
            norm = sqrt(squared_norm(direction))
            if norm > 0:
                scores = direction.scores(self.data.X) / norm
                found.add(
                    replace(direction, alpha=direction.alpha / norm), self.margin(scores), partial(self.losses, scores)
                )
        return found

    def directions(self, A: float) -> Iterator[KernelModel]:
        """Yield the learner's last function, its average over the rounds, and two of a longer run.

        The longer run is the linear learner's search, in coordinates of the space that some documents span. All that it
        looks at are functions Σ_j β_j k(s_j, ·), so their norms and scores are exact.
        """
        from . import _kernel_kernels as kernels

        own = self.store.model()
        yield own
        if self.dropped == 0:
            yield replace(own, alpha=own.alpha * self.present)
        choice = np.concatenate([_some_rows(own.stored), _some_rows(self.data.X)])
        settings = (kernels.Kind[own.kernel.upper()], own.gamma, own.coef0, own.degree)
        coords, marks = np.zeros((len(choice), min(len(choice), _LANDMARKS))), np.zeros(_LANDMARKS, dtype=np.int64)
        r = kernels.span(*settings, choice, _FLAT, marks[: coords.shape[1]], coords)
        if r == 0:
            return
        documents, basis = choice[marks[:r]], coords[marks[:r], :r]
        part = self.data[:: -(-self.data.n_docs * r // _NUMBERS)]
        features = np.empty((part.n_docs, r))
        for low in range(0, part.n_docs, 4096):
            rows = _dense(part.X[low : low + 4096])
            kernels.coordinates(*settings, rows, documents, basis, features[low : low + 4096])
        for w in longer_run(self.learner, part.with_X(features), A):
            beta = w.copy()
            for j in range(r - 1, -1, -1):  # basisᵀ β = w, from the last row up
                beta[j] = (w[j] - (basis[j + 1 :, j] * beta[j + 1 :]).sum()) / basis[j, j]
            yield self.store.function(documents, beta)


def _some_rows(X: Matrix) -> Floats:
    """Return rows at even distances."""
    return _dense(X[np.arange(0, X.shape[0], -(-X.shape[0] // _CHOICE) or 1)])


def _dense(X: Matrix) -> Floats:
    return np.ascontiguousarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def as_function(own: KernelModel, comparator: Any) -> KernelModel:
    """Return a comparator as a function in the space of the kernel that `own` has.

    >>> own = KernelModel(np.array([[1.0, 0.0]]), np.array([2.0]), "linear")
    >>> as_function(own, ([[1.0, 1.0], [0.0, 1.0]], [1.0, -1.0])).scores(np.array([[5.0, 7.0]])).tolist()
    [5.0]
    >>> as_function(own, [1.0, 3.0]).scores(np.array([[5.0, 7.0]])).tolist()
    [26.0]
    """
    if isinstance(comparator, Ranker):
        check_is_fitted(comparator, "model_")
        comparator = comparator.model_
    if isinstance(comparator, Model) and not isinstance(comparator, LinearModel):
        if not isinstance(comparator, KernelModel) or _kernel(comparator) != _kernel(own):
            raise InputError(f"the comparator must have the ranker's own kernel, {_kernel(own)}")
        found = comparator
    else:
        documents, alpha = _expansion(own, comparator)
        found = replace(own, stored=documents, alpha=alpha)
    if found.n_features != own.n_features:
        raise InputError(f"the comparator must be of {own.n_features} features, got {found.n_features}")
    return found


def _expansion(own: KernelModel, comparator: Any) -> tuple[Floats, Floats]:
    """Return the documents and coefficients that the caller gave; with the linear kernel a weight vector is one."""
    pair = isinstance(comparator, (tuple, list)) and len(comparator) == 2 and np.ndim(comparator[0]) == 2
    if isinstance(comparator, LinearModel):
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


def _kernel(model: KernelModel) -> str:
    """Return what makes two kernels the same, as text."""
    if model.kernel == "linear":
        return "linear"
    shape = f", coef0={model.coef0!r}, degree={model.degree}" if model.kernel == "polynomial" else ""
    return f"{model.kernel} with gamma={model.gamma!r}{shape}"
