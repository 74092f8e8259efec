"""Surrogates as LightGBM objectives, and trees grown by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats
from ..data.dataset import QueryDataset
from ..data.grouping import bounds_of
from ..errors import InputError, needed
from ..solvers.deadline import out_of_time
from ..surrogates.base import Surrogate
from .curvature import BoostingLoss, per_query_weight
from .trees import MOST_GRADES, Grown, Growth


@dataclass(frozen=True)
class LightGBMObjective:
    """A surrogate as LightGBM calls it: f(preds, Dataset) in `lgb.train`, f(y, preds, weight, group) elsewhere."""

    loss: BoostingLoss

    def __call__(
        self, first: Any, second: Any, weight: AnyArray | None = None, group: AnyArray | None = None
    ) -> tuple[Floats, Floats]:
        """Return gradient and curvature for LightGBM."""
        if hasattr(second, "get_group"):
            y, scores, weight, group = second.get_label(), first, second.get_weight(), second.get_group()
        else:
            y, scores = first, second
        ptr = bounds_of([len(y)] if group is None else group)
        return self.loss(scores, y, ptr, per_query_weight(weight, ptr))


def lightgbm_objective(surrogate: Surrogate, **options: Any) -> LightGBMObjective:
    """Return the surrogate as a LightGBM objective, for `lgb.train` and for `LGBMRanker(objective=...)` alike.

    `options` are those of `BoostingLoss`: how curvature is estimated where a surrogate has none in closed form.

    >>> import numpy as np, toprank as tr
    >>> objective = tr.interop.lightgbm_objective(tr.surrogates.ListNet())
    >>> grad, hess = objective(np.array([1.0, 0.0]), np.zeros(2), None, np.array([2]))
    >>> grad.round(4).tolist(), hess.tolist()
    ([-0.2311, 0.2311], [0.25, 0.25])
    """
    return LightGBMObjective(BoostingLoss(surrogate, **options))


def grow(data: QueryDataset, growth: Growth) -> Grown:
    """Grow trees with LightGBM, watched round by round."""
    lgb = needed("lightgbm", "BoostedTrees")
    watch = growth.watch

    def look(scores: AnyArray, part: Any) -> tuple[str, float, bool]:
        reached = watch.value(np.asarray(scores, dtype=np.float64))
        watch.note(reached, lambda: len(watch.reached))
        return "measure", reached, True

    def stop(env: Any) -> None:
        if watch.stopped or out_of_time():
            raise lgb.callback.EarlyStopException(env.iteration, [])

    stop.order = 40  # type: ignore[attr-defined]  # after the measure was taken
    repeatable = {"verbosity": -1, "deterministic": True, "force_row_wise": True, "num_threads": 1, "metric": "None"}
    if growth.loss is None:
        objective: dict[str, Any] = {
            "objective": "lambdarank",
            "label_gain": [2.0**grade - 1 for grade in range(MOST_GRADES)],
        }
    else:
        objective = {"objective": lightgbm_objective(growth.loss, random_state=growth.random_state)}
    params = {**repeatable, "feature_pre_filter": False, **objective, **_named(growth.params)}
    train = lightgbm_data(lgb, data)
    valid = None if watch.valid is None else lightgbm_data(lgb, watch.valid, train)
    try:
        booster = lgb.train(
            params,
            train,
            num_boost_round=growth.rounds,
            valid_sets=None if valid is None else [valid],
            feval=look,
            callbacks=[stop],
        )
    except lgb.basic.LightGBMError as error:
        raise InputError(f"LightGBM: {error}") from None
    rounds = watch.best or int(booster.current_iteration())
    text = booster.model_to_string(num_iteration=rounds)
    best = lgb.Booster(model_str=text)
    return Grown(best, rounds, np.asarray(best.feature_importance("gain"), dtype=np.float64))


def _named(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters under LightGBM's own names, so that a caller's alias replaces a default of ours."""
    known = {"max_leaves": "num_leaves", "max_leaf": "num_leaves", "num_leaf": "num_leaves"}
    known |= {"eta": "learning_rate", "shrinkage_rate": "learning_rate", "random_seed": "seed", "random_state": "seed"}
    known |= dict.fromkeys(("n_jobs", "nthread", "nthreads", "num_thread"), "num_threads")
    return {known.get(name, name): value for name, value in params.items()}


def lightgbm_data(lgb: Any, data: QueryDataset, reference: Any = None) -> Any:
    """Return a data set as LightGBM takes it, weights on every row; a validation part follows its `reference`."""
    weight = None if data.query_weight is None else np.repeat(data.query_weight, data.lengths)
    options = {"verbosity": -1, "feature_pre_filter": False}
    return lgb.Dataset(data.X, label=data.y, group=data.lengths, weight=weight, reference=reference, params=options)
