"""Surrogates as XGBoost objectives, and an XGBoost ranker with our fit(X, y, qid)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Matrix
from ..data.dataset import QueryDataset
from ..errors import needed
from ..measures.base import Measure
from ..rankers.base import parameters
from ..solvers.deadline import out_of_time
from ..surrogates.base import Surrogate
from ..surrogates.listwise import ListNet
from .curvature import BoostingLoss, per_query_weight
from .trees import Boosted, BoosterFunction, SurrogateTrees, TreeRanker


@dataclass(frozen=True)
class XGBoostObjective:
    """A surrogate as `xgb.train(obj=...)` calls it: f(preds, DMatrix)."""

    loss: BoostingLoss

    def __call__(self, scores: AnyArray, train: Any) -> tuple[Floats, Floats]:
        """Return gradient and curvature for XGBoost."""
        ptr = _boundaries(train)
        return self.loss(scores, train.get_label(), ptr, per_query_weight(train.get_weight(), ptr))


def xgboost_objective(surrogate: Surrogate, **options: Any) -> XGBoostObjective:
    """Return the surrogate as an XGBoost objective, for `xgb.train(..., obj=objective)`.

    Pass `base_score=0` in the parameters: a ranking loss has no use for XGBoost's intercept. `options` are those of
    `BoostingLoss`: how curvature is estimated where a surrogate has none in closed form.

    >>> import toprank as tr
    >>> tr.interop.xgboost_objective(tr.surrogates.ListNet()).loss.surrogate
    ListNet(truth='grades', transform=Exponential(a=1.0), k=1)
    """
    return XGBoostObjective(BoostingLoss(surrogate, **options))


def _boundaries(matrix: Any) -> Any:
    ptr = np.asarray(matrix.get_uint_info("group_ptr"), dtype=np.int64)
    return ptr if len(ptr) else np.array([0, matrix.num_row()])


@dataclass(frozen=True, eq=False)
class XGBoostFunction(BoosterFunction):
    """The sum of trees of an XGBoost booster."""

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return int(self.booster.num_features())

    def _scores(self, X: Matrix) -> Floats:
        """Return one score per row."""
        import xgboost as xgb

        return np.asarray(self.booster.predict(xgb.DMatrix(X), output_margin=True), dtype=np.float64)


@parameters
class XGBoostRanker(SurrogateTrees):
    """Boosted trees that minimise any surrogate of the library: F ← F − eta H⁻¹ g, tree by tree.

    `params` go to XGBoost as they are (`max_depth`, `lambda`, …). With a validation set in `fit_queries`, boosting
    stops after `patience` rounds without a better `measure` on it, and the best round is kept. The booster is in
    `booster_`; save it with XGBoost's own `booster_.save_model`.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.interop.XGBoostRanker(tr.surrogates.ListMLE(), rounds=10).fit(data.X, data.y, qid=data.qid)
    >>> ranker.score(data.X, data.y, qid=data.qid) > 0.8
    True
    """

    model = XGBoostFunction

    def _boost(self, data: QueryDataset, valid: QueryDataset | None, measure: Measure) -> Boosted:
        params = {
            "eta": self.eta,
            "seed": self.random_state,
            "base_score": 0.0,
            # XGBoost's default of 1 is meant for losses per row; a list shares one unit of curvature.
            "min_child_weight": 1e-3,
            **(self.params or {}),
        }
        loss = xgboost_objective(self.surrogate or ListNet(), random_state=self.random_state)
        return boost_xgboost(self, params, data, valid, measure, objective=loss, verbose=self.verbose)


def boost_xgboost(
    ranker: TreeRanker,
    params: Mapping[str, Any],
    data: QueryDataset,
    valid: QueryDataset | None,
    measure: Measure,
    *,
    objective: XGBoostObjective | None = None,
    verbose: bool = False,
) -> Boosted:
    """Train XGBoost; the weighted mean of `measure` on the validation queries says when to stop and what to keep."""
    needed("xgboost", type(ranker).__name__)
    import xgboost as xgb

    def reached(scores: AnyArray, part: Any) -> tuple[str, float]:
        ptr = _boundaries(part)
        y, values = (np.asarray(x, dtype=np.float64) for x in (part.get_label(), scores))
        return "measure", measure.mean(values, y, ptr, per_query_weight(part.get_weight(), ptr))

    class OnTime(xgb.callback.TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            return out_of_time()

    history: dict[str, Any] = {}
    booster = xgb.train(
        {"verbosity": 0, "disable_default_eval_metric": True, **params},
        xgboost_data(xgb, data),
        num_boost_round=ranker.rounds,
        obj=objective,
        custom_metric=reached,
        maximize=True,
        evals=[] if valid is None else [(xgboost_data(xgb, valid), "valid")],
        early_stopping_rounds=None if valid is None else ranker.patience,
        evals_result=history,
        verbose_eval=verbose,
        callbacks=[OnTime()],
    )
    if valid is None:
        return Boosted(booster, int(booster.num_boosted_rounds()), np.empty(0))
    reached_by_round = np.array(history["valid"]["measure"])
    best = int(np.argmax(reached_by_round)) + 1  # where time ran out, XGBoost has not noted it
    return Boosted(booster[:best], best, reached_by_round)


def xgboost_data(xgb: Any, data: QueryDataset) -> Any:
    """Return a data set as XGBoost takes it."""
    matrix = xgb.DMatrix(data.X, label=data.y)
    matrix.set_group(data.lengths)
    if data.query_weight is not None:
        matrix.set_weight(data.query_weight)
    return matrix
