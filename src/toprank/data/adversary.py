"""The adversary that no deterministic learner beats."""

from __future__ import annotations

from collections.abc import Callable
from math import floor

import numpy as np

from .._typing import ArrayLike, Floats
from ..errors import InputError
from . import validation
from .dataset import QueryDataset


class LowerBoundAdversary:
    """Lists that make every deterministic learner err in each round, though some weights rank them all (Theorem 9).

    X_i = (R e_{i+1}, −R e_{i+1}, R e_1, …, R e_1), graded against the learner (Eq. 25).

    In round i the learner scores the list; if it puts the first document on top, the second is the relevant one,
    otherwise the first is. Each of the ⌊R²/γ²⌋ − 1 rounds costs at least 1 − 1/log₂3 of NDCG and 1/2 of AP, and yet the
    lists are separable: `witness` is a unit vector that ranks them with at least the `margin` γ. Ties of scores keep
    the order of the documents.

    >>> adversary = LowerBoundAdversary(radius=1.0, margin=0.5, n_docs=3)
    >>> len(adversary), adversary.documents().tolist()
    (3, [[0.0, 1.0, 0.0, 0.0], [0.0, -1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    >>> adversary.answer([0.0, 0.0, 0.0]).tolist()  # the first document came out on top
    [0.0, 1.0, 0.0]
    """

    def __init__(
        self, radius: float = 1.0, margin: float = 0.1, n_docs: int = 2, n_features: int | None = None
    ) -> None:
        validation.check_positive(radius=radius, margin=margin)
        validation.check_count(n_docs=n_docs)
        # A little more, so that (1/0.1)² counts as 100.
        dimensions = floor(radius**2 / margin**2 * (1 + 1e-12))
        if n_docs < 2 or dimensions < 2:
            raise InputError(
                f"the adversary needs 2 documents a list and radius²/margin² ≥ 2, got {n_docs}, {dimensions}"
            )
        if n_features is not None and n_features < dimensions:
            raise InputError(f"n_features must be at least radius²/margin² = {dimensions}, got {n_features}")
        self.radius, self.margin, self.n_docs = float(radius), float(margin), int(n_docs)
        self.n_features = dimensions if n_features is None else int(n_features)
        self._rounds = dimensions - 1
        self._first_is_relevant: list[bool] = []

    def __len__(self) -> int:
        """Number of rounds."""
        return self._rounds

    @property
    def done(self) -> int:
        """Number of rounds that were answered."""
        return len(self._first_is_relevant)

    def documents(self) -> Floats:
        """Return the list of the coming round."""
        self._check_more_rounds()
        return self._list(self.done)

    def _check_more_rounds(self) -> None:
        if self.done == self._rounds:
            raise InputError(f"all {self._rounds} rounds are played: make a new adversary")

    def _list(self, round_: int) -> Floats:
        X = np.zeros((self.n_docs, self.n_features))
        X[0, round_ + 1], X[1, round_ + 1] = self.radius, -self.radius
        X[2:, 0] = self.radius
        return X

    def answer(self, scores: ArrayLike) -> Floats:
        """Return the grades of the coming list, now that the learner has scored it, and go on to the next round."""
        s = validation.as_scores(scores, self.n_docs)
        self._check_more_rounds()
        first_on_top = bool(s[0] >= s.max())
        self._first_is_relevant.append(not first_on_top)
        return self._grades(self.done - 1)

    def _grades(self, round_: int) -> Floats:
        y = np.zeros(self.n_docs)
        y[0 if self._first_is_relevant[round_] else 1] = 1
        return y

    def play(self, predict: Callable[[Floats], ArrayLike], learn: Callable[[Floats, Floats], object]) -> QueryDataset:
        """Play the remaining rounds against a learner and return all lists that were played."""
        while self.done < self._rounds:
            X = self.documents()
            learn(X, self.answer(predict(X)))
        return self.data

    @property
    def data(self) -> QueryDataset:
        """The lists played so far, as a data set."""
        if self.done == 0:
            raise InputError("no round was played yet: call play, or documents and answer")
        X = np.concatenate([self._list(i) for i in range(self.done)])
        y = np.concatenate([self._grades(i) for i in range(self.done)])
        return QueryDataset.from_arrays(X, y, np.repeat(np.arange(self.done), self.n_docs))

    @property
    def witness(self) -> Floats:
        """w*: the unit vector of the proof, which ranks all lists played so far with margin ≥ γ."""
        w = np.zeros(self.n_features)
        w[0] = -1.0
        w[1 : self.done + 1] = np.where(self._first_is_relevant, 1.0, -1.0)
        unit: Floats = w / np.linalg.norm(w)
        return unit

    def verified_margin(self) -> float:
        """Return the margin of the witness, measured on the lists played so far (Eq. 21)."""
        gaps = []
        for i in range(self.done):
            s, y = self._list(i) @ self.witness, self._grades(i)
            gaps.append(float(s[y > 0].min() - s[y == 0].max()))
        return min(gaps, default=float("inf"))
