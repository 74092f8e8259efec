"""The scikit-learn face of every ranker."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, ClassVar, Literal, Self, TypeAlias, TypeVar, dataclass_transform

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import AnyArray, ArrayLike, Floats, Ints, Matrix
from ..certificates.base import Assumption, Certificate
from ..data import validation
from ..data.dataset import QueryDataset
from ..data.grades import warn_of_lowest_grade
from ..data.grouping import group_rows
from ..data.mapped import check_whole
from ..data.preparation import words_of
from ..data.remote import ALL_ROWS, NotInMemoryError, RemoteMatrix
from ..data.sketch import Sketch
from ..data.splits import ROUTING
from ..data.weights import weight_of_rows
from ..errors import InputError
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..measures.order import ranks
from ..model import Inputs, LinearFunction, LinearFunctions, Model, ScoringFunction
from ..model.importance import score_shares
from ..model.missing import NOT_ON_A_CLUSTER, Missing
from ..solvers.base import Solution, warn_of_failure
from ..statistics.evaluation import checked_data_set
from . import checking
from ._estimator import BaseEstimator
from .spellings import patience_of, valid_of
from .watching import BestOnValidation, Judge, mean_of_rows

R = TypeVar("R", bound="Ranker")
QueryWeight: TypeAlias = "ArrayLike | Mapping[Any, float]"
"""Weights of queries: by id, one per row, or one per query as they appear."""
_COMMIT = Lock()


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def parameters(kind: type[R]) -> type[R]:
    """Make the annotated fields of a ranker the parameters of its constructor, all by keyword.

    `field(kw_only=False, default=...)` marks the one that may also come first without its name; `field(init=False)` is
    an attribute that learning sets. Comparing, hashing and printing stay scikit-learn's.
    """
    return dataclass(eq=False, repr=False, match_args=False, kw_only=True)(kind)


@parameters
class Ranker(BaseEstimator, ABC):
    """fit(X, y, qid) learns a scoring function; predict scores; rank orders; score is the mean of `measure`.

    `qid` is one id per row, of any type and in any order; None means that all rows are one list. Results come back in
    the caller's row order. A fit that fails or is interrupted leaves the ranker exactly as it was. Subclasses are
    final: their fields are hyper-parameters, and they implement `_fit`.

    `prepare` names what is done to the features first, in learning and in scoring: "log" (`SignedLog`), "query"
    (`QueryNormalizer`), "standard" (its other method), then copies beside the features that are relative to the query
    ("+rank", "+minmax", "+standard"), then knots at quantiles of every column so far, which `fit` learns: "ramps:8"
    makes curves of straight lines of a linear function, "steps:16" steps; several by commas. What is prepared query by
    query needs `qid` to score, too. `missing` says what becomes of missing cells (NaN): "error" refuses them, "zero"
    takes them for 0, "median" for the median of the feature in the rows that were learned from, "indicator" does the
    same and adds a column that says where cells were missing. Both rules are fixed by `fit` with what they learned
    (`inputs_`), belong to the model (`model_`) and are kept in its file: setting the parameters later changes the next
    fit only.
    """

    # With metadata routing switched on, these make `cross_validate` and `Pipeline` pass qid without set-up.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True, "query_weight": True, "sample_weight": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True, "sample_weight": True}

    _depends_on_units: ClassVar[bool] = True
    """Whether what is learned depends on the units of the features."""
    _rows_are_one_list: ClassVar[bool] = False
    """Whether rows without qid are what the ranker is for."""

    learns_from: ClassVar[Literal["labels", "clicks", "nothing"]] = "nothing"
    """What one more list must come with for the ranker to go on learning."""
    needs_all_rows: ClassVar[bool] = False
    """Whether all rows of X must be in one memory, so that the ranker cannot learn on a cluster."""
    MOVED_PARAMETERS: ClassVar[Mapping[str, str]] = {}
    """Parameters of earlier versions, and what to write instead."""
    weighs_documents: ClassVar[bool] = False
    """Whether a fit counts `doc_weight`; the others refuse it."""
    state_attributes: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes beside the model that a model file keeps, so that learning can go on from it."""
    optional_attributes: ClassVar[tuple[str, ...]] = ()
    """State attributes that older model files lack."""

    measure: str | Measure = field(default="ndcg@10", kw_only=False)
    missing: Missing = "error"
    prepare: str | Sequence[str] = ""
    function_: ScoringFunction = field(init=False)
    """What was learned: it scores rows that are filled in and prepared."""
    inputs_: Inputs = field(init=False)
    """Names of the features, the rule for missing cells and the preparation, as they were when learning began."""
    n_features_in_: int = field(init=False)
    n_queries_in_: int = field(init=False)
    n_iter_: int = field(init=False)
    trace_: dict[str, Floats] = field(init=False)
    solution_: Solution = field(init=False)
    certificates_: list[Certificate] = field(init=False)
    _lists: tuple[AnyArray, Ints] = field(init=False)
    """Ids and lengths of the queries of the last fit."""
    learned_from_: Sketch | None = field(init=False)
    """Marks of the rows that took part in learning, those of validation among them; None where it is not known."""

    def __new__(cls, *args: Any, **given: Any) -> Self:
        """Refuse parameters of earlier versions in one line that says what to write now."""
        for name in given:
            if name in cls.MOVED_PARAMETERS:
                raise InputError(f"{cls.__name__}({name}=...) is now {cls.__name__}({cls.MOVED_PARAMETERS[name]})")
        return super().__new__(cls)

    @classmethod
    def upgraded_parameters(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a file of an earlier version as they are written now."""
        return params

    @abstractmethod
    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        """Learn from checked data and set `model_` and `trace_`."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        query_weight: QueryWeight | None = None,
        valid: QueryDataset | Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        eval_set: Any = None,
        eval_qid: Any = None,
        early_stopping_rounds: int | None = None,
    ) -> Self:
        """Learn from rows X with grades y, grouped by qid.

        `query_weight` is a mapping or a Series by query id, one weight per row (the same in all rows of a query), or
        one per query in order of first appearance. `sample_weight` is scikit-learn's name for one weight per row: it
        must be the same in all rows of a query, which then counts so much. Documents of one query are weighed against
        each other by the `doc_weight` of a data set.

        `valid` is what to choose by where the learner chooses: (X, y), (X, y, qid), (X, y, qid, query_weight) or a data
        set. `eval_set` with `eval_qid` is the same in the words of XGBoost and LightGBM, and `early_stopping_rounds`
        the `patience` of this fit.
        """
        valid = valid_of(valid, eval_set, eval_qid)
        with self._learning_copy() as new, patience_of(new, early_stopping_rounds):
            data = new._grouped(X, new._first_labels(y), qid, query_weight, sample_weight, reset=True)
            if qid is None and not self._rows_are_one_list:
                checking.warn_of_one_list("fit", data.n_docs)
            new._learn(data, new._as_valid(valid), None)
        return self

    def fit_queries(
        self, data: QueryDataset, valid: QueryDataset | None = None, executor: Executor | None = None
    ) -> Self:
        """Learn from a data set; `valid` is for early stopping, `executor` runs blocks of queries in parallel."""
        with self._learning_copy() as new:
            new._note_features(data)
            data = new._with_labels(data, new._first_labels(data.y))
            new._learn(data, new._as_valid(valid), executor)
        return self

    @contextmanager
    def _learning_copy(self) -> Iterator[Self]:
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
        checked_data_set(data)
        self.n_features_in_ = data.n_features
        self.__dict__.pop("feature_names_in_", None)
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)

    def _learn(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        if isinstance(data.X, RemoteMatrix):
            self.check_cluster()
        given = [data] if valid is None else [data, valid]
        going_on = bool(vars(self).get("warm_start")) and "function_" in vars(self)
        if going_on and data.n_features != self.inputs_.n_features:
            raise InputError(
                f"warm_start: the weights so far are for {self.inputs_.n_features} features, got {data.n_features}"
            )
        data = self._learnable(data, first=not going_on)
        if valid is not None:
            valid = self._learnable(valid, first=False)
        warn_of_lowest_grade(data.y, data.n_queries)
        if self._depends_on_units and vars(self).get("scale") is None:
            checking.check_even_features(type(self).__name__, data, steps="scale" in vars(self))
        self._note_labels(data)
        self.n_queries_in_, self._lists = data.n_queries, (data.query_ids, data.lengths)
        self.certificates_ = []
        try:
            self._fit(data, valid, executor)
        except NotInMemoryError as error:
            raise InputError(f"{type(self).__name__}: {error}") from None
        solution = vars(self).get("solution_")
        if solution is not None:
            warn_of_failure(type(self).__name__, solution)
        going_on = going_on and "learned_from_" in vars(self)
        for i, part in enumerate(given):
            self._note_rows(part.X, part.ptr, first=i == 0 and not going_on)

    def check_cluster(self) -> None:
        """Refuse to learn from rows on the workers of a cluster, before anybody reads them."""
        if self.needs_all_rows:
            raise InputError(f"{type(self).__name__}: {ALL_ROWS}")
        if self.missing in ("median", "indicator"):
            raise InputError(NOT_ON_A_CLUSTER.format(self.missing))

    def _learnable(self, data: QueryDataset, *, first: bool) -> QueryDataset:
        """Return checked data as the learner sees them: every way in leads through here.

        The `first` rows decide what the model wants of all others: names, what fills missing cells, preparation.
        """
        checking.check_parameters(self)
        check_whole(data.X)
        checking.check_learnable(data)
        if not self.weighs_documents:
            checking.check_no_doc_weight(type(self).__name__, data)
        if first:
            names = vars(self).get("feature_names_in_")
            fitted = self._fitted_inputs(data)
            self.inputs_ = replace(fitted, names=None if names is None else tuple(map(str, names)))
            return self._prepared(data)
        if self._wanted_words != self.inputs_.words:
            before = ",".join(self.inputs_.words)
            raise InputError(
                f'prepare cannot change while learning goes on: the weights so far belong to prepare="{before}"; fit '
                "anew, without warm_start"
            )
        return self._prepared(self.inputs_.matched(data, type(self).__name__))

    def _fitted_inputs(self, data: QueryDataset) -> Inputs:
        """Return what the model will want of all rows, learned from the first ones."""
        return Inputs.fit(data, self.missing, self.prepare)

    @property
    def _wanted_words(self) -> tuple[str, ...]:
        """The preparation that the parameters ask for."""
        return words_of(self.prepare)

    def _prepared(self, data: QueryDataset) -> QueryDataset:
        """Return rows whose columns are those of the fit as the learner reads them."""
        return self.inputs_.prepared(data)

    @property
    def model_(self) -> Model:
        """Everything between a row of features and a score, as one value."""
        own = vars(self)
        if "function_" not in own or "inputs_" not in own:
            raise AttributeError(f"{type(self).__name__} has no model_: it is not fitted")
        return Model(self.function_, self.inputs_, type(self).__name__)

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """What the validation set saw, look by look: {"valid": {name of the measure: values}}."""
        reached = vars(self).get("trace_", {}).get("valid", ())
        if not len(reached):
            raise AttributeError(f"{type(self).__name__} has no evals_result_: it was fitted without a validation set")
        return {"valid": {str(self._judge()): [float(value) for value in reached]}}

    @property
    def best_iteration_(self) -> int:
        """Which look at the validation set was the best, counted from 1: a round, iteration, epoch or value of C."""
        (values,) = self.evals_result_["valid"].values()
        return int(np.argmax(values)) + 1

    def _start(self) -> Floats | None:
        """Return the weights to begin at: those so far with `warm_start`, else None."""
        if not vars(self).get("warm_start") or "function_" not in vars(self):
            return None
        return self.coef_

    def _keep_solution(self, coef: Floats, solution: Solution, watch: BestOnValidation[Any]) -> None:
        """Keep what a solver found."""
        self.function_, self.solution_ = LinearFunction(coef), solution
        self.trace_ = {**solution.trace, **watch.trace()}
        self.n_iter_ = solution.n_iter

    def _first_labels(self, y: ArrayLike) -> ArrayLike:
        """Return labels as they are learned from; the two-class learners read here which is which."""
        return y

    def _later_labels(self, y: ArrayLike) -> ArrayLike:
        """Return labels that come after the first ones: of a validation set, or of the next lists of a stream."""
        return y

    def _note_labels(self, data: QueryDataset) -> None:
        """Note what must be known of the labels that were learned from."""

    def _as_valid(self, valid: QueryDataset | Sequence[Any] | None) -> QueryDataset | None:
        """Return a validation set from however it was given."""
        if valid is None:
            return None
        if isinstance(valid, QueryDataset):
            return self._with_labels(valid, self._later_labels(valid.y))
        if isinstance(valid, (tuple, list)) and any(isinstance(part, (tuple, QueryDataset)) for part in valid):
            raise InputError(
                f"valid takes one validation set, by which the learner chooses, and got a list of {len(valid)}: give "
                "the one to choose by, or put their rows together"
            )
        if not isinstance(valid, (tuple, list)) or not 2 <= len(valid) <= 4:
            raise InputError("valid must be a data set or (X, y), (X, y, qid) or (X, y, qid, query_weight)")
        X, y, qid, weight = (*valid, None, None)[:4]
        return self._grouped(X, self._later_labels(y), qid, weight, reset=False)

    @staticmethod
    def _with_labels(data: QueryDataset, y: ArrayLike) -> QueryDataset:
        return data if y is data.y else replace(data, y=np.asarray(y, dtype=np.float64), mapped=None)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as they were given."""
        return {name: vars(self)[name] for name in self._get_param_names()}

    def _note_rows(self, X: Matrix, ptr: Ints, *, first: bool) -> None:
        """Remember that the rows of these lists, as they came, took part in learning."""
        before = Sketch.of() if first else self.learned_from_ or Sketch.unknown()
        self.learned_from_ = before.with_lists(X, ptr)

    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score per row in the caller's order: higher ranks first. X is a matrix, a frame or a data set.

        `qid` matters only to a ranker that prepares its features query by query.
        """
        if isinstance(X, QueryDataset):
            return X.in_caller_order(self.predict_grouped(X))
        check_is_fitted(self, "model_")
        if qid is None and self.inputs_.needs_queries and vars(self).get("n_queries_in_", 1) > 1:
            raise InputError(
                f"predict needs qid: this {type(self).__name__} prepares features query by query, and without qid all "
                "rows would count as one list; or pass a data set"
            )
        data = self._rows(X, qid)
        return data.in_caller_order(self.model_.scores(data))

    def _rows(self, X: Any, qid: ArrayLike | None) -> QueryDataset:
        """Return the caller's rows as a data set; scikit-learn compares their columns with those of the fit."""
        data = self.model_.as_queries(X, qid)
        validate_data(self, X, reset=False, skip_check_array=True)
        return data._with(feature_names=self.inputs_.names)

    def predict_grouped(self, data: QueryDataset) -> Floats:
        """Return one score per row of `data.X`, grouped by query, after comparing its features with the fit's."""
        check_is_fitted(self, "model_")
        return self.model_.predict_grouped(checked_data_set(data))

    def rank(self, X: Any, qid: ArrayLike | None = None) -> Ints:
        """Return each row's place in its query, 1 for the best; ties keep the order of the rows."""
        if isinstance(X, QueryDataset):
            return X.in_caller_order(ranks(self.predict_grouped(X), X.ptr))
        scores = self.predict(X, qid)
        ptr, _, order = group_rows(qid, len(scores))
        places = np.empty(scores.shape, dtype=np.int64)
        columns = places[:, None] if scores.ndim == 1 else places
        rows = slice(None) if order is None else order
        for j, column in enumerate(scores.reshape(columns.shape).T):
            columns[rows, j] = ranks(column[rows], ptr)
        return places

    def score(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Return the mean of `measure` over the queries, each with the weight of its rows where there is one.

        A ranker that was fitted on several queries refuses to score without qid: taking all rows as one list would
        give a number that means something else.
        """
        check_is_fitted(self, "model_")
        if qid is None and self.n_queries_in_ > 1:
            raise InputError(
                f"score needs qid: this {type(self).__name__} was fitted on {self.n_queries_in_} queries, and without "
                f"qid all rows would count as one list: pass qid; in scikit-learn's model selection {ROUTING}"
            )
        scores = self.predict(X, qid)
        if qid is None and not self._rows_are_one_list:
            checking.warn_of_one_list("score", len(scores))
        return self._mean(scores, y, qid, sample_weight)

    def _mean(
        self,
        scores: Floats,
        y: ArrayLike,
        qid: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        judge: Judge | None = None,
    ) -> float:
        """Return the mean value over the queries of rows in the caller's order."""
        if qid is not None:
            ptr, query_ids, _ = group_rows(qid, len(scores))
            checking.warn_of_split_lists(vars(self).get("_lists"), query_ids, np.diff(ptr))
        return mean_of_rows(judge or self._judge(), scores, self._later_labels(y), qid, sample_weight)

    def _judge(self) -> Judge:
        """Return what the ranker is judged by."""
        return parse_measure(self.measure)

    def _check_state(self) -> None:
        """Refuse `state_attributes` that a model file has and no fit could have left; raise `InputError`."""

    @property
    def coef_(self) -> Floats:
        """Weights of a linear model; a row for each label where there are several."""
        function = vars(self).get("function_")
        if not isinstance(function, (LinearFunction, LinearFunctions)):
            raise AttributeError(f"{type(self).__name__} has no coef_: it is not fitted, or not linear")
        return function.coef

    @property
    def features_(self) -> tuple[str, ...]:
        """The features that count: a document scores the same whatever the others are."""
        check_is_fitted(self, "model_")
        return self.model_.features_used

    def feature_importances(self, data: QueryDataset) -> dict[str, float]:
        """Return each feature's share of the variance of the scores inside lists, the largest first.

        That is the covariance of the scores with what they lose when the feature is held at its mean in each list. The
        shares of a sum of curves add up to 1; one below 0 works against the others.
        """
        check_is_fitted(self, "model_")
        model = self.model_
        model.check_one_score()
        shares = score_shares(model, checked_data_set(data))
        return {model.names[j]: float(shares[j]) for j in np.argsort(-shares, kind="stable").tolist()}

    def certify(
        self, data: QueryDataset | None = None, comparator: Any = None, *, delta: float = 0.05
    ) -> list[Certificate]:
        """Return what the papers prove about this ranker on `data`; a bound may fail with probability `delta`.

        Without data, an online ranker says what is known from the totals of the stream that it learned; a `comparator`
        is then the margin that some unit vector is said to have.
        """
        from .certifying import proved

        return proved(self, data, comparator, delta)

    def _as_comparator(self, comparator: Any) -> Any:
        """Return what the caller compares with as `_certify` takes it: a vector, unless the ranker is not linear."""
        if isinstance(comparator, Ranker):
            comparator = comparator.function_
        if isinstance(comparator, LinearFunction):
            comparator = comparator.coef
        return validation.as_vector(comparator, self.function_.n_features, "the comparator")

    def _certify(self, data: QueryDataset, here: Assumption, comparator: Any, delta: float) -> list[Certificate]:
        """Return what is proved on prepared data; `here` says whether the ranker learned from them."""
        return []

    def _certify_stream(self, margin: float | None, confidence: float) -> list[Certificate]:
        raise InputError(f"{type(self).__name__} notes nothing of what it learned from: certify needs the queries")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ranker as JSON; `toprank.load` reads it back."""
        from .persistence import save

        check_is_fitted(self, "model_")
        save(self, path)

    def _grouped(
        self,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None,
        query_weight: QueryWeight | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        reset: bool,
    ) -> QueryDataset:
        """Return the caller's arrays as a data set, and note its features (or compare them, where not `reset`)."""
        if query_weight is not None and sample_weight is not None:
            raise InputError("query_weight or sample_weight: both weigh queries, so give one of them")
        if not reset:
            validate_data(self, X, reset=False, skip_check_array=True)
        data = QueryDataset.from_arrays(X, y, qid, query_weight=query_weight, missing="keep")
        if sample_weight is not None:
            weight = weight_of_rows(sample_weight, data.query_ids, data.ptr, data.order)
            data = replace(data, query_weight=weight)
        if reset:
            validate_data(self, X, reset=True, skip_check_array=True)
        return data

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        return tags
