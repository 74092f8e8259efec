"""Rankers of two classes: any two labels in, scores and top-k labels out, judged by precision at k."""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.labels import TwoClasses
from ..errors import InputError
from ..measures.base import Measure, mean_value
from ..measures.binary import P
from ..surrogates.precision_at_k import Rule, cutoff
from .base import Ranker, parameters


@parameters
class BipartiteRanker(Ranker):
    """What the learners of precision at k share: how they read labels, and how they show and judge the top.

    `predict` and `decision_function` both return scores, so `average_precision_score` and the other ranking scorers
    of scikit-learn work; `predict_labels` puts the positive label on the top k; `score` is the precision at k.
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

    def fit(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X and labels y, of two kinds (or grades, above 0 positive); each query of qid is one list.

        Without qid all rows are one list. Of two labels the larger is positive, unless `pos_label` names it; with more
        than two, `pos_label` stands against all the rest.
        """
        with self._changing() as new:
            coding = TwoClasses.of(y, self.pos_label)
            data = new._checked(X, coding.encode(y), qid, query_weight, reset=True)
            new._note(coding, data)
            new._learn(data, None, None)
        return self

    def fit_queries(
        self, data: QueryDataset, valid: QueryDataset | None = None, executor: Executor | None = None
    ) -> Self:
        """Learn from a data set; with `valid`, the epoch that is most precise on it is kept."""
        coding = TwoClasses.of(data.y, self.pos_label)
        coded, held = coding.recode(data), None if valid is None else coding.recode(valid)
        with self._changing() as new:
            new._note(coding, coded)
            super(BipartiteRanker, new).fit_queries(coded, held, executor)
        return self

    def _note(self, coding: TwoClasses, data: QueryDataset) -> None:
        self.labels_ = (coding.kind, coding.negative, coding.positive)
        self.n_seen_, self.n_positive_ = data.n_docs, int(data.y.sum())

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

    def decision_function(self, X: Any) -> Floats:
        """Return one score per row, as `predict` does: the name under which scikit-learn's scorers look for it."""
        return self.predict(X)

    def predict_labels(self, X: Any, qid: ArrayLike | None = None, k: int | None = None) -> AnyArray:
        """Return the positive label for the k best rows of each list, and the negative one for the others.

        k is the learner's own where none is given; with `kappa` it is ⌈κ · (share of positives in training) · n⌉.
        """
        places = self.rank(X, qid)
        if isinstance(X, QueryDataset):
            lengths = np.repeat(X.lengths, X.lengths)
        else:
            ptr, _, order = validation.group_rows(qid, len(places))
            lengths = np.repeat(np.diff(ptr), np.diff(ptr))
            if order is not None:
                lengths[order] = lengths.copy()
        if k is not None:
            validation.check_count(k=k)
        own, kappa = cutoff(self.k, self.kappa)
        wanted = k or own or np.ceil(kappa * self.n_positive_ / self.n_seen_ * lengths * (1 - 1e-12))
        return self.classes_[(places <= wanted).astype(np.int64)]

    def score(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """Return the precision at the k that is trained for, its mean over the lists."""
        check_is_fitted(self, "model_")
        if qid is None and self.n_queries_in_ > 1:
            raise InputError(
                f"score needs qid: this {type(self).__name__} was fitted on {self.n_queries_in_} queries, and without "
                "qid all rows would count as one list"
            )
        return mean_precision(self.predict(X), self.coding.encode(y), qid, self.k, self.kappa)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = False
        return tags

    def _precision(self, scores: Floats, data: QueryDataset) -> float:
        return mean_value(precision_per_list(scores, data.y, data.ptr, self.k, self.kappa))


def precision_per_list(scores: Floats, y: Floats, ptr: Ints, k: int | None, kappa: float | None) -> Floats:
    """P@k of each list: at k places, or at ⌈κ n₊⌉, where a list without positives is NaN and not counted.

    >>> s, y = np.array([0.9, 0.8, 0.1, 0.7]), np.array([1.0, 0.0, 1.0, 1.0])
    >>> precision_per_list(s, y, np.array([0, 4]), None, 0.5).tolist()
    [0.5]
    """
    places, share = cutoff(k, kappa)
    if places:
        return P(k=places).per_query(scores, y, ptr)
    from ..surrogates import _at_k_kernels as kernels

    mistakes, ks, grad = np.empty(len(ptr) - 1), np.empty(len(ptr) - 1, dtype=np.int64), np.empty_like(scores)
    kernels.losses_of_lists(int(Rule.PERCEPTRON_AVG), scores, y, ptr, 0, share, mistakes, ks, grad)
    return np.where(ks > 0, (ks - mistakes) / np.maximum(ks, 1), math.nan)


def mean_precision(scores: ArrayLike, y: Floats, qid: ArrayLike | None, k: int | None, kappa: float | None) -> float:
    """Return the mean precision over lists; rows come in the caller's order."""
    s = validation.as_scores(scores)
    labels = validation.as_labels(y, len(s))
    ptr, _, order = validation.group_rows(qid, len(s))
    if order is not None:
        s, labels = s[order], labels[order]
    return mean_value(precision_per_list(s, labels, ptr, k, kappa))


@dataclass(frozen=True)
class PrecisionScorer:
    """Precision at the top of what was held out; made by `precision_at_k`."""

    k: int | None
    kappa: float | None
    pos_label: Any

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """Score a fitted ranker, classifier or regressor."""
        scores, positive = _response(estimator, X, self.pos_label)
        coding = TwoClasses.of(y, self.pos_label) if positive is None else positive
        return mean_precision(scores, coding.encode(y), qid, self.k, self.kappa)

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn that this scorer can use qid."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request


def precision_at_k(*, k: int | None = None, kappa: float | None = None, pos_label: Any = None) -> PrecisionScorer:
    """Return a scorer for `cross_val_score`, `GridSearchCV` and their kin: how many of the top k are positive.

    `k` is a number of places, `kappa` a share of the positives (neither: 0.25). It works for every estimator that
    scores: `decision_function`, else `predict_proba`, else `predict`. The positive label is the estimator's second
    class unless `pos_label` names another.

    >>> import toprank as tr
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(2000, weights=[0.95], class_sep=2.0, random_state=0)
    >>> ranker = tr.SGDAtK(kappa=0.5, random_state=0)
    >>> values = cross_val_score(ranker, X, y, scoring=tr.precision_at_k(kappa=0.5))
    >>> values.shape, bool(values.mean() > 0.6)
    ((5,), True)
    """
    cutoff(k, kappa)
    return PrecisionScorer(k, kappa, pos_label)


def _response(estimator: Any, X: Any, pos_label: Any) -> tuple[AnyArray, TwoClasses | None]:
    """Return one score per row, higher for the positive class, and how labels are read (None: ask y)."""
    classes = getattr(estimator, "classes_", None)
    if isinstance(estimator, BipartiteRanker) and pos_label is None:
        return estimator.predict(X), estimator.coding
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(estimator, name):
            scores = np.asarray(getattr(estimator, name)(X))
            break
    else:
        raise InputError(f"{type(estimator).__name__} cannot score: it has no decision_function and no predict")
    if classes is None or name == "predict":
        return scores, None
    coding = TwoClasses.of(classes, pos_label)
    place = int(np.flatnonzero(np.asarray(classes) == coding.positive)[0])
    if scores.ndim == 2:
        return scores[:, place], coding
    return (scores if place == 1 else -scores), coding
