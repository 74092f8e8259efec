"""Scorers that scikit-learn's model selection can call with query ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._typing import ArrayLike
from ..data import validation
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from .base import Ranker


@dataclass(frozen=True)
class Scorer:
    """Mean of a measure over the queries of the part that was held out; made by `scorer`."""

    measure: Measure

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """Score a fitted estimator with `predict`; qid says which rows are one list."""
        if qid is None and not (isinstance(estimator, Ranker) and estimator.n_queries_in_ == 1):
            raise InputError(
                f"the {self.measure} scorer needs qid: switch on sklearn.set_config(enable_metadata_routing=True) and "
                'pass params={"qid": qid} to cross_validate, or qid=qid to GridSearchCV.fit'
            )
        scores = validation.as_scores(estimator.predict(X))
        labels = validation.as_labels(y, len(scores))
        ptr, _, order = validation.group_rows(qid, len(scores))
        if order is not None:
            scores, labels = scores[order], labels[order]
        return self.measure.mean(scores, labels, ptr)

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn that this scorer wants qid."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request


def scorer(measure: str | Measure, convention: str = "standard") -> Scorer:
    """Return a scorer for `cross_validate`, `GridSearchCV` and their kin.

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
