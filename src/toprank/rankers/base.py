"""The scikit-learn face of every ranker."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import ArrayLike, Floats, Ints
from ..certificates.base import Certificate
from ..data import validation
from ..data.dataset import QueryDataset
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..measures.order import ranks
from .models import LinearModel, Model

R = TypeVar("R", bound="Ranker")

_COMMIT = Lock()


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def parameters(kind: type[R]) -> type[R]:
    """Make the annotated fields of a ranker the parameters of its constructor, all by keyword.

    `field(kw_only=False, default=...)` marks the one that may also come first without its name; `field(init=False)` is
    an attribute that learning sets. Comparing, hashing and printing stay scikit-learn's.
    """
    return dataclass(eq=False, repr=False, match_args=False, kw_only=True)(kind)


@parameters
class Ranker(BaseEstimator, ABC):  # type: ignore[misc]
    """fit(X, y, qid) learns a scoring function; predict scores; rank orders; score is the mean of `measure`.

    `qid` is one id per row, of any type and in any order; None means that all rows are one list. Results come back in
    the caller's row order. A fit that fails or is interrupted leaves the ranker exactly as it was. Subclasses are
    final: their fields are hyper-parameters, and they implement `_fit`.
    """

    # With metadata routing switched on, these make `cross_validate` and `Pipeline` pass qid without set-up.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "query_weight": True}
    # `Pipeline.score` hands on sample_weight=None to whoever is last: it must be a known name, and nothing more.
    __metadata_request__score: ClassVar[dict[str, bool | None]] = {"qid": True, "sample_weight": None}

    state_attributes: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes beside the model that a model file keeps, so that learning can go on from it."""

    measure: str | Measure = field(default="ndcg@10", kw_only=False)
    missing: validation.Missing = "error"
    model_: Model = field(init=False)
    n_features_in_: int = field(init=False)
    n_queries_in_: int = field(init=False)
    n_iter_: int = field(init=False)
    trace_: dict[str, Floats] = field(init=False)
    certificates_: list[Certificate] = field(init=False)

    @abstractmethod
    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        """Learn from checked data and set `model_` and `trace_`."""

    def fit(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X with grades y, grouped by qid; `query_weight` is one weight per query as they appear."""
        with self._changing() as new:
            data = new._checked(X, y, qid, query_weight, reset=True)
            new._learn(data, None, None)
        return self

    def fit_queries(
        self, data: QueryDataset, valid: QueryDataset | None = None, executor: Executor | None = None
    ) -> Self:
        """Learn from a data set; `valid` is for early stopping, `executor` runs blocks of queries in parallel."""
        with self._changing() as new:
            new._note_features(data)
            if valid is not None:
                new._check_same_features(valid)
            new._learn(data, valid, executor)
        return self

    @contextmanager
    def _changing(self) -> Iterator[Self]:
        """Yield a copy to learn into; the ranker becomes the copy when the block ends well, and else stays as it is."""
        before = self.__dict__
        new = object.__new__(type(self))
        new.__dict__.update(before)
        yield new
        with _COMMIT:
            if self.__dict__ is not before:
                raise InputError(
                    f"this {type(self).__name__} learned in another thread meanwhile, and what was learned here is "
                    "dropped: let one thread at a time call fit and partial_fit"
                )
            self.__dict__ = new.__dict__

    def _note_features(self, data: QueryDataset) -> None:
        """Note how many features there are, and their names; only ever called on a copy that is to be learned into."""
        self.n_features_in_ = data.n_features
        self.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)

    def _learn(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        self.n_queries_in_ = data.n_queries
        self.certificates_ = []
        self._fit(data, valid, executor)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as they were given."""
        return {name: vars(self)[name] for name in self._get_param_names()}

    def predict(self, X: Any) -> Floats:
        """Return one score per row in the caller's order: higher ranks first. X is a matrix, a frame or a data set."""
        if isinstance(X, QueryDataset):
            return X.in_caller_order(self.predict_grouped(X))
        check_is_fitted(self, "model_")
        matrix = self._matrix(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.model_.scores(matrix)

    def predict_grouped(self, data: QueryDataset) -> Floats:
        """Return one score per row of `data.X`, grouped by query, after comparing its features with the fit's."""
        check_is_fitted(self, "model_")
        self._check_same_features(data)
        return self.model_.scores(data.X)

    def rank(self, X: Any, qid: ArrayLike | None = None) -> Ints:
        """Return each row's place in its query, 1 for the best; ties keep the order of the rows."""
        if isinstance(X, QueryDataset):
            return X.in_caller_order(ranks(self.predict_grouped(X), X.ptr))
        scores = self.predict(X)
        ptr, _, order = validation.group_rows(qid, len(scores))
        if order is None:
            return ranks(scores, ptr)
        places = np.empty(len(scores), dtype=np.int64)
        places[order] = ranks(scores[order], ptr)
        return places

    def score(self, X: Any, y: ArrayLike, qid: ArrayLike | None = None) -> float:
        """Return the mean of `measure` over the queries.

        A ranker that was fitted on several queries refuses to score without qid: taking all rows as one list would
        give a number that means something else.
        """
        check_is_fitted(self, "model_")
        if qid is None and self.n_queries_in_ > 1:
            raise InputError(
                f"score needs qid: this {type(self).__name__} was fitted on {self.n_queries_in_} queries, and without "
                "qid all rows would count as one list (in cross-validation use toprank.scorer, or switch on "
                "sklearn.set_config(enable_metadata_routing=True))"
            )
        scores = self.predict(X)
        data_ptr, _, order = validation.group_rows(qid, len(scores))
        labels = validation.as_labels(y, len(scores))
        if order is not None:
            scores, labels = scores[order], labels[order]
        return parse_measure(self.measure).mean(scores, labels, data_ptr)

    def _check_state(self) -> None:
        """Refuse `state_attributes` that a model file has and no fit could have left; raise `InputError`."""

    @property
    def coef_(self) -> Floats:
        """Weights of a linear model."""
        if "model_" not in vars(self) or not isinstance(self.model_, LinearModel):
            raise AttributeError(f"{type(self).__name__} has no coef_: it is not fitted, or not linear")
        return self.model_.coef

    def certify(self, data: QueryDataset, comparator: Any = None) -> list[Certificate]:
        """Return the certificates that hold for this ranker on `data`; none where no theorem applies."""
        check_is_fitted(self, "model_")
        self._check_same_features(data)
        return self._certify(data, None if comparator is None else self._as_comparator(comparator))

    def _as_comparator(self, comparator: Any) -> Any:
        """Return what the caller compares with as `_certify` takes it: a vector, unless the ranker is not linear."""
        return np.asarray(comparator, dtype=np.float64)

    def _certify(self, data: QueryDataset, comparator: Any) -> list[Certificate]:
        return []

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker as JSON; `toprank.load` reads it back."""
        from .persistence import save

        check_is_fitted(self, "model_")
        save(self, path)

    def _checked(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None, query_weight: ArrayLike | None = None, *, reset: bool
    ) -> QueryDataset:
        """Check everything before anything changes, then note the features (or compare them, where not `reset`)."""
        if not reset:
            validate_data(self, X, reset=False, skip_check_array=True)
        data = QueryDataset.from_arrays(X, y, qid, query_weight=query_weight, missing=self.missing)
        validation.check_grades(data.y)
        if reset:
            validate_data(self, X, reset=True, skip_check_array=True)
        return data

    def _matrix(self, X: Any) -> Any:
        return validation.as_matrix(X, feature_names=getattr(self, "feature_names_in_", None), missing=self.missing)

    def _check_same_features(self, data: QueryDataset) -> None:
        if data.n_features != self.n_features_in_:
            raise InputError(
                f"the data set has {data.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        known = getattr(self, "feature_names_in_", None)
        if known is not None and data.feature_names is not None and tuple(known) != data.feature_names:
            at = next(i for i, (a, b) in enumerate(zip(known, data.feature_names, strict=True)) if a != b)
            raise InputError(
                f"feature {at} is {data.feature_names[at]!r} in the data set but was {known[at]!r} during fit: "
                "give the features in the same order"
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "zero"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
