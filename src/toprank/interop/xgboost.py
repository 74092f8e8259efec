"""Surrogates as XGBoost objectives, and trees grown by XGBoost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats
from ..data.dataset import QueryDataset
from ..errors import InputError, needed
from ..solvers.deadline import out_of_time
from ..surrogates.base import Surrogate
from .curvature import BoostingLoss, per_query_weight
from .trees import Grown, Growth


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


def grow(data: QueryDataset, growth: Growth) -> Grown:
    """Grow trees with XGBoost, watched round by round."""
    needed("xgboost", "BoostedTrees")
    import xgboost as xgb

    watch = growth.watch

    def look(scores: AnyArray, part: Any) -> tuple[str, float]:
        reached = watch.value(np.asarray(scores, dtype=np.float64))
        watch.note(reached, lambda: len(watch.reached))
        return "measure", reached

    class Stop(xgb.callback.TrainingCallback):  # type: ignore[misc]
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            return watch.stopped or out_of_time()

    params = {"verbosity": 0, "disable_default_eval_metric": True, "nthread": 1, **_named(growth.params)}
    if growth.loss is None:
        # Grades above 31 have no gain 2^l − 1 here; XGBoost then takes the grade itself.
        objective = None
        params = {"objective": "rank:ndcg", "ndcg_exp_gain": bool(data.y.max(initial=0) <= 31), **params}
    else:
        objective = xgboost_objective(growth.loss, random_state=growth.random_state)
        # XGBoost's default of 1 is meant for losses per row; a list shares one unit of curvature.
        params = {"base_score": 0.0, "min_child_weight": 1e-3, **params}
    try:
        booster = xgb.train(
            params,
            xgboost_data(xgb, data),
            num_boost_round=growth.rounds,
            obj=objective,
            custom_metric=look,
            evals=[] if watch.valid is None else [(xgboost_data(xgb, watch.valid), "valid")],
            verbose_eval=False,
            callbacks=[Stop()],
        )
    except xgb.core.XGBoostError as error:
        raise InputError(f"XGBoost: {str(error).splitlines()[0]}") from None
    rounds = watch.best or int(booster.num_boosted_rounds())
    best = booster[:rounds]
    gain = np.zeros(data.n_features)
    for name, value in best.get_score(importance_type="total_gain").items():
        gain[int(name.removeprefix("f"))] = value
    return Grown(best, rounds, gain)


def _named(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters under the names that XGBoost prefers, so that a caller's alias replaces a default of ours."""
    known = {"eta": "learning_rate", "n_jobs": "nthread", "num_threads": "nthread", "random_state": "seed"}
    return {known.get(name, name): value for name, value in params.items()}


def xgboost_data(xgb: Any, data: QueryDataset) -> Any:
    """Return a data set as XGBoost takes it."""
    matrix = xgb.DMatrix(data.X, label=data.y)
    matrix.set_group(data.lengths)
    if data.query_weight is not None:
        matrix.set_weight(data.query_weight)
    return matrix
