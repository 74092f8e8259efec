"""Scorers that scikit-learn's model selection can call with query ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._estimators import response
from .._typing import AnyArray, ArrayLike
from ..data import validation
from ..data.labels import Indicator, TwoClasses
from ..data.splits import ROUTING
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure, mean_value
from ..surrogates.precision_at_k import cutoff
from .base import Ranker
from .two_classes import TwoClassRanker, top_precision
from .watching import mean_of_rows


class _WantsQid:
    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn that this scorer takes qid and sample_weight."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True).add_request(param="sample_weight", alias=True)
        return request


@dataclass(frozen=True)
class Scorer(_WantsQid):
    """Mean of a measure over the queries of the part that was held out; made by `scorer`."""

    measure: Measure

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score a fitted estimator by what it says of order; qid says which rows are one list."""
        if qid is None and not (isinstance(estimator, Ranker) and estimator.n_queries_in_ == 1):
            raise InputError(f"the {self.measure} scorer needs qid: {ROUTING}")
        if isinstance(estimator, Ranker):
            return estimator._mean(estimator.predict(X, qid), y, qid, sample_weight, self.measure)
        return mean_of_rows(self.measure, validation.as_scores(response(estimator, X, qid)), y, qid, sample_weight)


def scorer(measure: str | Measure, convention: str = "standard") -> Scorer:
    """Return a scorer for `cross_validate`, `GridSearchCV` and similar functions.

    >>> import numpy as np, sklearn, toprank as tr
    >>> from sklearn.model_selection import cross_val_score
    >>> data = tr.datasets.make_graded(n_queries=60, random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     values = cross_val_score(tr.ListNet(), data.X, data.y, scoring=tr.scorer("ndcg@10"),
    ...                              cv=tr.QueryKFold(3), params={"qid": data.qid})
    >>> values.shape, bool((values > 0.5).all())
    ((3,), True)
    """
    return Scorer(parse_measure(measure, convention=convention) if isinstance(measure, str) else measure)


@dataclass(frozen=True)
class PrecisionScorer(_WantsQid):
    """Precision at the top of what was held out; made by `precision_at_k`."""

    k: int | None
    kappa: float | None
    pos_label: Any

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Score a fitted ranker, classifier or regressor; of several labels for each row, each is one list."""
        labels, judge = Indicator.of(y), top_precision(self.k, self.kappa)
        if labels is not None:
            own = isinstance(estimator, Ranker)
            found = np.asarray(estimator.predict(X, qid) if own else response(estimator, X, qid))
            if found.shape != labels.columns.shape:
                raise InputError(f"y has the shape {labels.columns.shape} and what is predicted {found.shape}")
            rows = ((found[:, j], labels.column(j)) for j in range(labels.count))
            each = [mean_of_rows(judge, *one, qid, sample_weight) for one in rows]
            return mean_value(np.array(each))
        scores, positive = _response(estimator, X, qid, self.pos_label)
        coding = TwoClasses.of(y, self.pos_label) if positive is None else positive
        return mean_of_rows(judge, validation.as_scores(scores), coding.encode(y), qid, sample_weight)


def precision_at_k(*, k: int | None = None, kappa: float | None = None, pos_label: Any = None) -> PrecisionScorer:
    """Return a scorer for `cross_val_score`, `GridSearchCV` and similar functions: how many of the top k are positive.

    `k` is a number of places, `kappa` a share of the positives (neither: 0.25). It works for every estimator that
    scores: `decision_function`, else `predict_proba`, else `predict`. The positive label is the estimator's second
    class unless `pos_label` names another; of several classes numbered from 0 all but 0 are positive. Tied rows count
    as any order of them does on average.

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


def _response(estimator: Any, X: Any, qid: ArrayLike | None, pos_label: Any) -> tuple[AnyArray, TwoClasses | None]:
    """Return one score per row, higher for the positive class, and how labels are read (None: ask y)."""
    classes = getattr(estimator, "classes_", None)
    if isinstance(estimator, TwoClassRanker) and pos_label is None:
        return estimator.predict(X, qid), estimator.coding
    for name in ("decision_function", "predict_proba", "predict"):
        if hasattr(estimator, name):
            scores = np.asarray(getattr(estimator, name)(X))
            break
    else:
        raise InputError(f"{type(estimator).__name__} cannot score: it has no decision_function and no predict")
    if classes is None or name == "predict":
        return scores, None
    coding = TwoClasses.of(classes, pos_label)
    # Grades above 0 are positive, so what speaks against class 0 speaks for them.
    named = coding.negative if coding.kind == "grades" else coding.positive
    place, sign = int(np.flatnonzero(np.asarray(classes) == named)[0]), -1.0 if coding.kind == "grades" else 1.0
    if scores.ndim == 2:
        if scores.shape[1] != len(classes):
            raise InputError(
                f"{type(estimator).__name__}.{name} gives {scores.shape[1]} columns for {len(classes)} classes"
            )
        return sign * scores[:, place], coding
    return (scores if place == 1 else -scores), coding
