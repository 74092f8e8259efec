"""Two classes: any two labels in, scores and top-k labels out, judged by precision at k."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.labels import TwoClasses
from ..errors import InputError
from ..measures.base import Measure
from ..surrogates.precision_at_k import cutoff
from .base import Ranker, parameters

if TYPE_CHECKING:
    from sklearn.utils import Tags


@dataclass(frozen=True)
class TopPrecision:
    """Share of positives among the first k of each list; tied rows count as any order of them does on average.

    k is a number of places, or ⌈κ n₊⌉ of a list with n₊ positives, where a list without positives is NaN.

    >>> s, y = np.array([0.9, 0.8, 0.1, 0.7]), np.array([1.0, 0.0, 1.0, 1.0])
    >>> TopPrecision(kappa=0.5).per_query(s, y, np.array([0, 4])).tolist()
    [0.5]
    >>> TopPrecision(k=2).per_query(np.zeros(4), y, np.array([0, 4])).tolist()  # ties: in any order
    [0.75]
    """

    k: int | None = None
    kappa: float | None = None

    def per_query(self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, *, doc_ids: ArrayLike | None = None) -> Floats:
        """Return the precision of each list."""
        s, labels = np.asarray(scores, dtype=np.float64), np.asarray(y) > 0
        bounds = np.asarray(ptr)
        lengths = np.diff(bounds)
        group = np.repeat(np.arange(len(lengths)), lengths)
        found = np.bincount(group, labels, len(lengths))
        places, share = cutoff(self.k, self.kappa)
        k = np.full(len(lengths), places) if places else np.ceil(share * found * (1 - 1e-12)).astype(np.int64)
        taken = np.minimum(k, lengths)
        counted = taken > 0
        lowest = np.full(len(lengths), np.inf)  # the score at place k
        by_score = np.lexsort((-s, group))
        lowest[counted] = s[by_score[bounds[:-1][counted] + taken[counted] - 1]]
        above, tied = s > lowest[group], s == lowest[group]
        left = taken - np.bincount(group, above, len(lengths))
        among = np.bincount(group, tied & labels, len(lengths)) / np.maximum(np.bincount(group, tied, len(lengths)), 1)
        hits = np.bincount(group, above & labels, len(lengths)) + left * among
        return np.where(k > 0, hits / np.maximum(k, 1), math.nan)

    def __str__(self) -> str:
        places, share = cutoff(self.k, self.kappa)
        return f"p@{places}" if places else f"p@{share:g}·n₊"


@parameters
class TwoClassRanker(Ranker):
    """What the learners of precision at k share: how they read labels, and how they show and judge the top.

    `predict` and `decision_function` both return scores, so `average_precision_score` and the other ranking scorers
    of scikit-learn work; `predict_labels` puts the positive label on the top k; `score` is the precision at k. Of two
    labels the larger is positive, unless `pos_label` names it; with more than two, `pos_label` stands against all the
    rest, and grades from 0 up are positive above 0.
    """

    state_attributes: ClassVar[tuple[str, ...]] = ("labels_", "n_seen_", "n_positive_")

    measure: str | Measure = "map"
    k: int | None = None
    kappa: float | None = None
    pos_label: Any = None
    labels_: tuple[Any, ...] = field(init=False)
    """How labels are read: the fields of `TwoClasses`."""
    n_seen_: int = field(init=False)
    n_positive_: int = field(init=False)

    def _first_labels(self, y: ArrayLike) -> Floats:
        return self._read(TwoClasses.of(y, self.pos_label), y)

    def _later_labels(self, y: ArrayLike) -> Floats:
        return self.coding.encode(y)

    def _read(self, coding: TwoClasses, y: ArrayLike) -> Floats:
        self.labels_ = (coding.kind, coding.negative, coding.positive)
        return coding.encode(y)

    def _note_labels(self, data: QueryDataset) -> None:
        self.n_seen_, self.n_positive_ = data.n_docs, int(data.y.sum())

    def _judge(self) -> TopPrecision:
        return TopPrecision(self.k, self.kappa)

    def _warn_of_one_list(self, what: str, rows: int) -> None:
        """Rows without qid are what these learners are for."""

    def _check_state(self) -> None:
        sound = isinstance(self.labels_, tuple) and len(self.labels_) == 3
        sound = sound and str(self.labels_[0]) in ("pair", "rest", "grades")
        if not sound or not all(type(n) is int and n >= 0 for n in (self.n_seen_, self.n_positive_)):
            raise InputError(f"$.state is not that of a {type(self).__name__}")

    @property
    def coding(self) -> TwoClasses:
        """How labels are read."""
        check_is_fitted(self, "labels_")
        return TwoClasses(*self.labels_)

    @property
    def classes_(self) -> AnyArray:
        """The negative and the positive label."""
        if "labels_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no classes_: it is not fitted")
        return self.coding.classes

    def decision_function(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score per row, as `predict` does: the name under which scikit-learn's scorers look for it."""
        return self.predict(X, qid)

    def predict_labels(self, X: Any, qid: ArrayLike | None = None, k: int | None = None) -> AnyArray:
        """Return the positive label for the k best rows of each list, and the negative one for the others.

        k is the learner's own where none is given; with `kappa` it is ⌈κ · (share of positives in training) · n⌉.
        """
        places = self.rank(X, qid)
        if k is not None:
            validation.check_count(k=k)
        own, kappa = cutoff(self.k, self.kappa)
        wanted = (
            k or own or np.ceil(kappa * self.n_positive_ / self.n_seen_ * _lengths(X, qid, len(places)) * (1 - 1e-12))
        )
        return self.classes_[(places <= wanted).astype(np.int64)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = False
        return tags


def _lengths(X: Any, qid: ArrayLike | None, n: int) -> Ints:
    """Return for each row, in the caller's order, how long its list is."""
    if isinstance(X, QueryDataset):
        return X.in_caller_order(np.repeat(X.lengths, X.lengths))
    ptr, _, order = validation.group_rows(qid, n)
    lengths = np.repeat(np.diff(ptr), np.diff(ptr))
    if order is not None:
        lengths[order] = lengths.copy()
    return lengths
