"""A model as one value: what its rows are like, and the function that scores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._typing import ArrayLike, Floats, Ints, Matrix
from ..data.dataset import QueryDataset
from ..data.grouping import group_rows, in_order
from ..data.mapped import check_whole
from ..data.preparation import steps_of
from ..data.remote import RemoteMatrix
from ..data.validation import as_matrix, as_matrix_with_gaps, check_collected
from ..errors import InputError
from .functions import LinearFunction, LinearFunctions, ScoringFunction, StumpFunction, TreeFunction
from .inputs import Inputs
from .missing import MissingRule


@dataclass(frozen=True, eq=False)
class Model:
    """Everything between a row of features and a score: score = offset + function(prepared row).

    `scores` is the only way from features to scores. Rankers, files, the server, exports and evaluation all go through
    it, so no step between a row and its score can be forgotten.

    Parameters
    ----------
    function : what scores a row that is filled in and prepared.
    inputs : the names of the features, the rule for missing cells and the preparation.
    source : who made it, in messages and files: the name of a ranker, "LightGBM", "XGBoost".
    offset : added to every score.
    scaler : centre and scale of the scaler that is folded into the weights of a linear function, for engines that have
        normalisers of their own; it changes no score.

    >>> from toprank.model import LinearFunction
    >>> model = Model(LinearFunction(np.array([2.0, -1.0])), Inputs(2, ("bm25", "age")), "ListNet")
    >>> data = QueryDataset.from_arrays([[4.0, 1.0]], [0], feature_names=["age", "bm25"])
    >>> model.scores(data).tolist()
    [-2.0]
    """

    function: ScoringFunction
    inputs: Inputs
    source: str = "the model"
    offset: float = 0.0
    scaler: tuple[Floats, Floats] | None = None

    def __post_init__(self) -> None:
        if self.function.n_features != self.inputs.n_outputs:
            raise InputError(
                f"the function of {self.source} scores {self.function.n_features} columns, and its features give "
                f"{self.inputs.n_outputs}"
            )
        if not np.isfinite(self.offset):
            raise InputError(f"the offset of {self.source} must be a finite number")
        for column in self.scaler or ():
            if column.shape != (self.n_features,) or not np.isfinite(column).all():
                raise InputError(f"the scaler of {self.source} needs a centre and a scale for each feature")
        if self.scaler is not None and not (self.scaler[1] > 0).all():
            raise InputError("the scales of a scaler must be above 0")

    @classmethod
    def linear(
        cls,
        names: Sequence[str],
        weights: ArrayLike,
        *,
        offset: float = 0.0,
        fill: ArrayLike | None = None,
        steps: Sequence[str] = (),
        source: str = "linear model",
    ) -> Model:
        """Return score = offset + Σ_j weights_j x_j over named features; `fill` stands in for missing values.

        >>> Model.linear(["bm25", "age"], [2.0, -0.5], fill=[0.0, 0.0]).predict([[1.0, 2.0], [1.0, np.nan]]).tolist()
        [1.0, 2.0]
        """
        rule = MissingRule() if fill is None else MissingRule("fill", np.asarray(fill, dtype=np.float64))
        function = LinearFunction(np.asarray(weights, dtype=np.float64))
        return cls(function, Inputs(len(names), tuple(names), rule, steps_of(steps)), source, offset)

    @property
    def n_features(self) -> int:
        """How many features a row has as it comes."""
        return self.inputs.n_features

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each feature: its own, or f1, f2, … where nobody gave it one."""
        return self.inputs.labels

    @property
    def rule(self) -> MissingRule:
        """What stands in for missing cells."""
        return self.inputs.missing

    @property
    def weights(self) -> Floats:
        """The weights of a linear function, one for each feature."""
        if not isinstance(self.function, LinearFunction):
            raise AttributeError(f"{self.source} has no weights: it is not linear")
        return self.function.coef

    @property
    def features_used(self) -> tuple[str, ...]:
        """The names of the features on which a score depends."""
        inputs, function = self.inputs, self.function
        if isinstance(function, (LinearFunction, LinearFunctions)):
            columns = np.flatnonzero(np.atleast_2d(function.coef).any(axis=0))
        elif isinstance(function, StumpFunction):
            columns = np.unique(function.feature[function.weight != 0])
        elif isinstance(function, TreeFunction):
            columns = np.unique(function.feature[function.feature >= 0])
        else:
            columns = np.arange(inputs.n_outputs)
        filled = inputs.origins[columns]
        behind = np.append(np.arange(self.n_features), np.array(inputs.missing.indicated, dtype=np.int64))
        return tuple(self.names[j] for j in np.unique(behind[filled]).tolist())

    def renamed(self, names: Sequence[str]) -> Model:
        """Return the same score with other names for the features."""
        return replace(self, inputs=replace(self.inputs, names=tuple(names)))

    def scores(self, data: QueryDataset) -> Floats:
        """Return one score per row of `data.X`, grouped by query; a column for each label of several."""
        matched = self.inputs.matched(data, self.source)
        if isinstance(matched.X, RemoteMatrix):
            gathered: Floats = matched.X.collect(self._scores_of_part)
            return gathered
        check_whole(matched.X)
        found = self.function.scores(self.inputs.prepared_lazily(matched).X)
        if data.mapped is not None and not np.isfinite(found).all():
            as_matrix(matched.X, feature_names=matched.feature_names)  # names the cell
        return found + self.offset if self.offset else found

    def _scores_of_part(self, X: Matrix, ptr: Ints) -> Floats:
        """Return the scores of rows on a worker, whose columns are the model's."""
        part = QueryDataset(X, np.zeros(X.shape[0]), ptr, np.arange(len(ptr) - 1), self.inputs.names)
        return self.scores(part)

    def predict_grouped(self, data: QueryDataset) -> Floats:
        """Return one score per row of `data.X`, grouped by query; a model of several labels is refused."""
        self.check_one_score()
        return self.scores(data)

    def predict(self, X: Any, qid: ArrayLike | None = None) -> Floats:
        """Return one score per row in the caller's order. X is a matrix, a frame or a data set.

        `qid` matters only where features are prepared query by query; without it all rows are one list.
        """
        if not isinstance(X, QueryDataset):
            X = self.as_queries(X, qid)
        found: Floats = X.in_caller_order(self.predict_grouped(X))
        return found

    def as_queries(self, X: Any, qid: ArrayLike | None, *, grouped: bool = False) -> QueryDataset:
        """Return the caller's rows as a data set without grades.

        They are grouped by query where that changes a score, or where `grouped` says so. A bare matrix has its columns
        in the model's order; those of a frame have names.
        """
        check_collected(X)
        columns = getattr(X, "columns", None)
        names = self.inputs.names if columns is None else tuple(str(name) for name in columns)
        matrix, has_missing = as_matrix_with_gaps(X, feature_names=names)
        if columns is None and matrix.shape[1] != self.n_features:
            raise InputError(
                f"X has {matrix.shape[1]} features, but {self.source} is expecting {self.n_features} features as input"
            )
        ids = qid if grouped or self.inputs.needs_queries else None
        ptr, query_ids, order = group_rows(ids, matrix.shape[0])
        return QueryDataset(
            X=in_order(matrix, order),
            y=np.zeros(matrix.shape[0]),
            ptr=ptr,
            query_ids=query_ids,
            feature_names=names,
            order=order,
            has_missing=has_missing,
        )

    def check_one_score(self) -> None:
        """Refuse a model of several labels where documents have one score each."""
        if isinstance(self.function, LinearFunctions):
            raise InputError(
                f"this {self.source} learned {len(self.function.coef)} labels and gives a row as many scores, where "
                "one is needed: take that of one label, estimators_[i]"
            )
