"""Two classes: any two labels in, scores and top-k labels out, judged by precision at k."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._typing import AnyArray, ArrayLike, Floats, Ints
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.grouping import group_rows
from ..data.labels import Indicator, TwoClasses
from ..errors import InputError
from ..measures.base import Measure, mean_value
from ..measures.binary import P, PAtShare, places_at_share
from ..measures.presets import Blank
from ..model.functions import LinearFunctions
from ..surrogates.precision_at_k import cutoff
from .base import QueryWeight, Ranker, parameters
from .spellings import patience_of, valid_of
from .watching import Judge

if TYPE_CHECKING:
    from sklearn.utils import Tags


def top_precision(k: int | None, kappa: float | None) -> Measure:
    """P@k, or with a share of the positives P@⌈κ n₊⌉, where a list without positives does not count.

    >>> s, y = np.array([0.9, 0.8, 0.1, 0.7]), np.array([1.0, 0.0, 1.0, 1.0])
    >>> top_precision(None, 0.5).per_query(s, y, np.array([0, 4])).tolist()
    [0.5]
    >>> top_precision(2, None).per_query(np.zeros(4), y, np.array([0, 4])).tolist()  # ties: in any order
    [0.75]
    """
    places, share = cutoff(k, kappa)
    return P(k=places) if places else PAtShare(share=share, blank=Blank.SKIP)


@parameters
class TwoClassRanker(Ranker):
    """What the learners of precision at k share: how they read labels, and how they show and judge the top.

    `predict` and `decision_function` both return scores, so `average_precision_score` and the other ranking scorers
    of scikit-learn work; `predict_labels` puts the positive label on the top k; `score` is the precision at k. Of two
    labels the larger is positive, unless `pos_label` names it; with more than two, `pos_label` stands against all the
    rest, and grades from 0 up are positive above 0.

    A y with several columns of 0 and 1 (an array or a sparse matrix) has a label for each: the rows are one list per
    label. `estimators_` learn them one by one; scores, places and `predict_labels` have a column for each label,
    `coef_` a row, and `score` is the mean over the labels.
    """

    _rows_are_one_list = True
    state_attributes: ClassVar[tuple[str, ...]] = ("labels_", "n_seen_", "n_positive_")

    measure: str | Measure = "map"
    k: int | None = None
    kappa: float | None = None
    pos_label: Any = None
    labels_: tuple[Any, ...] = field(init=False)
    """How labels are read: the fields of `TwoClasses`."""
    n_seen_: int = field(init=False)
    n_positive_: int = field(init=False)
    estimators_: list[Self] = field(init=False)
    """One ranker for each label, where y has several; their parameters are this one's."""

    def fit(
        self,
        X: Any,
        y: Any,
        qid: ArrayLike | None = None,
        query_weight: QueryWeight | None = None,
        valid: QueryDataset | Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: Any = None,
        eval_qid: Any = None,
        early_stopping_rounds: int | None = None,
    ) -> Self:
        """Learn from rows X with labels y; a y with several columns of 0 and 1 is one list per column.

        The other parameters are as for every ranker; with several labels `valid` has as many.
        """
        labels, valid = Indicator.of(y), valid_of(valid, eval_set, eval_qid)
        if labels is None:
            return super().fit(
                X, y, qid, query_weight, valid, sample_weight, early_stopping_rounds=early_stopping_rounds
            )
        with self._learning_copy() as new, patience_of(new, early_stopping_rounds):
            before = new._learned_before(labels) if vars(self).get("warm_start") and "function_" in vars(self) else None
            data = new._grouped(X, labels.column(0), qid, query_weight, sample_weight, reset=True)
            held, held_labels = new._valid_with_labels(valid, labels.count)

            def learn(one: Self, label: int) -> None:
                one.fit_queries(
                    _of_label(data, labels, label), None if held is None else _of_label(held, held_labels, label)
                )

            new._learn_each(labels.count, before, learn)
        return self

    def _valid_with_labels(self, valid: Any, count: int) -> tuple[QueryDataset | None, Indicator | None]:
        if valid is None:
            return None, None
        labels = Indicator.of(valid[1]) if isinstance(valid, (tuple, list)) and 2 <= len(valid) <= 4 else None
        if labels is None or labels.count != count:
            raise InputError(f"valid must be (X, y) or (X, y, qid), and its y have {count} columns as y has")
        return self._grouped(valid[0], labels.column(0), *(*valid[2:], None)[:2], reset=False), labels

    def _learned_before(self, labels: Indicator) -> list[Self]:
        """Return what has been learned of each label, to go on from."""
        before = vars(self).get("estimators_", [self])
        if len(before) != labels.count or before[0] is self:
            raise InputError(
                f"y has {labels.count} columns, and this {type(self).__name__} learned {len(before)} so far"
            )
        return [copy(one) for one in before]

    def _learn_each(self, count: int, before: list[Self] | None, learn: Callable[[Self, int], object]) -> None:
        """Learn label by label; a warning that several labels give is shown once."""
        params, told = self.get_params(), dict[tuple[type[Warning], str], list[str]]()
        ones = before or [type(self)(**params) for _ in range(count)]
        for label, one in enumerate(ones):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    learn(one, label)
                except InputError as error:
                    raise InputError(f"label {label}: {error}") from None
            for warning in caught:
                text = str(warning.message)
                told.setdefault((warning.category, text.partition(":")[0]), []).append(f"label {label}: {text}")
        for name in (*self.state_attributes, *self.optional_attributes, "solution_", "n_iter_", "_lists"):
            vars(self).pop(name, None)  # of a fit before, to one label
        self.estimators_, self.function_ = ones, LinearFunctions(np.stack([one.coef_ for one in ones]))
        names = vars(self).get("feature_names_in_")
        self.inputs_ = replace(ones[0].inputs_, names=None if names is None else tuple(map(str, names)))
        self.n_queries_in_, self.learned_from_ = ones[0].n_queries_in_, ones[0].learned_from_
        self.certificates_, self.trace_ = [], {}
        for (kind, _), (first, *more) in told.items():
            warnings.warn(first + (f" (and the like of {len(more)} more labels)" if more else ""), kind, stacklevel=4)

    def _first_labels(self, y: ArrayLike) -> Floats:
        if vars(self).pop("estimators_", None):
            del self.function_  # of several labels: there is nothing to go on from
        if not np.asarray(y).size:
            return np.empty(0)  # the data set is refused as empty, in the words that every ranker has
        return self._read(TwoClasses.of(y, self.pos_label), y)

    def _later_labels(self, y: ArrayLike) -> Floats:
        return self.coding.encode(y)

    def _read(self, coding: TwoClasses, y: ArrayLike) -> Floats:
        self.labels_ = (coding.kind, coding.negative, coding.positive)
        return coding.encode(y)

    def _note_labels(self, data: QueryDataset) -> None:
        self.n_seen_, self.n_positive_ = data.n_docs, int(data.y.sum())

    def _judge(self) -> Measure:
        return top_precision(self.k, self.kappa)

    def _mean(
        self,
        scores: Floats,
        y: Any,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        judge: Judge | None = None,
    ) -> float:
        if "estimators_" not in vars(self):
            return super()._mean(scores, y, qid, sample_weight, judge)
        labels, rest = self._same_labels(y), (qid, sample_weight, judge)
        each = [one._mean(scores[:, j], labels.column(j), *rest) for j, one in enumerate(self.estimators_)]
        return mean_value(np.array(each))

    def _same_labels(self, y: Any) -> Indicator:
        labels, known = Indicator.of(y), len(self.estimators_)
        if labels is None or labels.count != known:
            raise InputError(f"y must have {known} columns: this {type(self).__name__} learned so many labels")
        return labels

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
        """The negative and the positive label; where there are several labels, their numbers."""
        if "estimators_" in vars(self):
            return np.arange(len(self.estimators_))
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
        lengths = _lengths(X, qid, len(places))
        if "estimators_" in vars(self):
            top = [one._labels_of_top(places[:, j], lengths, k) for j, one in enumerate(self.estimators_)]
            return np.column_stack(top).astype(np.int64)
        return self._labels_of_top(places, lengths, k)

    def _labels_of_top(self, places: Ints, lengths: Ints, k: int | None) -> AnyArray:
        own, kappa = cutoff(self.k, self.kappa)
        wanted = k or own or places_at_share(kappa, self.n_positive_ / self.n_seen_ * lengths)
        return self.classes_[(places <= wanted).astype(np.int64)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = False
        tags.target_tags.multi_output = True
        return tags


def _of_label(data: QueryDataset, labels: Indicator | None, label: int) -> QueryDataset:
    """Return the list of one label: the same X, without the names, which the ranker of all labels has compared."""
    assert labels is not None
    return replace(data, y=data.grouped(labels.column(label)), feature_names=None)


def _lengths(X: Any, qid: ArrayLike | None, n: int) -> Ints:
    """Return for each row, in the caller's order, how long its list is."""
    if isinstance(X, QueryDataset):
        return X.in_caller_order(np.repeat(X.lengths, X.lengths))
    ptr, _, order = group_rows(qid, n)
    lengths = np.repeat(np.diff(ptr), np.diff(ptr))
    if order is not None:
        lengths[order] = lengths.copy()
    return lengths
