"""Surrogates as LightGBM objectives, and a LightGBM ranker with our fit(X, y, qid)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Matrix
from ..data.dataset import QueryDataset
from ..data.grouping import bounds_of
from ..errors import needed
from ..measures.base import Measure
from ..rankers.base import parameters
from ..solvers.deadline import out_of_time
from ..surrogates.base import Surrogate
from ..surrogates.listwise import ListNet
from .curvature import BoostingLoss, per_query_weight
from .trees import Boosted, BoosterFunction, SurrogateTrees, TreeRanker


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


@dataclass(frozen=True, eq=False)
class LightGBMFunction(BoosterFunction):
    """The sum of trees of a LightGBM booster."""

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return int(self.booster.num_feature())

    def _scores(self, X: Matrix) -> Floats:
        """Return one score per row."""
        return np.asarray(self.booster.predict(X), dtype=np.float64)


@parameters
class LightGBMRanker(SurrogateTrees):
    """Boosted trees that minimise any surrogate of the library: F ← F − eta H⁻¹ g, tree by tree.

    `params` go to LightGBM as they are (`num_leaves`, `min_data_in_leaf`, …). With a validation set in `fit_queries`,
    boosting stops after `patience` rounds without a better `measure` on it, and the best round is kept. The booster is
    in `booster_`; save it with LightGBM's own `booster_.save_model`.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.interop.LightGBMRanker(tr.surrogates.ListMLE(), rounds=10).fit(data.X, data.y, qid=data.qid)
    >>> ranker.score(data.X, data.y, qid=data.qid) > 0.8
    True
    """

    model = LightGBMFunction

    def _boost(self, data: QueryDataset, valid: QueryDataset | None, measure: Measure) -> Boosted:
        params = {
            "learning_rate": self.eta,
            "seed": self.random_state,
            **(self.params or {}),
            "objective": lightgbm_objective(self.surrogate or ListNet(), random_state=self.random_state),
        }
        return boost_lightgbm(self, params, data, valid, measure, verbose=self.verbose)


def boost_lightgbm(
    ranker: TreeRanker,
    params: Mapping[str, Any],
    data: QueryDataset,
    valid: QueryDataset | None,
    measure: Measure,
    *,
    verbose: bool = False,
) -> Boosted:
    """Train LightGBM; the weighted mean of `measure` on the validation queries says when to stop and what to keep."""
    lgb = needed("lightgbm", type(ranker).__name__)

    def reached(scores: AnyArray, part: Any) -> tuple[str, float, bool]:
        ptr = bounds_of(part.get_group())
        y = np.asarray(part.get_label(), dtype=np.float64)
        return "measure", measure.mean(scores, y, ptr, per_query_weight(part.get_weight(), ptr)), True

    history: dict[str, Any] = {}
    callbacks: list[Callable[..., Any]] = [lgb.record_evaluation(history)]
    if valid is not None:
        callbacks.append(lgb.early_stopping(ranker.patience, verbose=verbose))
    if verbose:
        callbacks.append(lgb.log_evaluation())

    def on_time(env: Any) -> None:
        if out_of_time():
            reached_so_far = history.get("valid", {}).get("measure")
            best = env.iteration if reached_so_far is None else int(np.argmax(reached_so_far))
            raise lgb.callback.EarlyStopException(best, env.evaluation_result_list)

    on_time.order = 40  # type: ignore[attr-defined]  # after what is recorded
    callbacks.append(on_time)
    repeatable = {"verbosity": -1, "deterministic": True, "force_row_wise": True, "metric": "None"}
    train = lightgbm_data(lgb, data)
    booster = lgb.train(
        {**repeatable, "feature_pre_filter": False, **params},
        train,
        num_boost_round=ranker.rounds,
        valid_sets=None if valid is None else [lightgbm_data(lgb, valid, train)],
        valid_names=None if valid is None else ["valid"],
        feval=reached,
        callbacks=callbacks,
    )
    if valid is None:
        return Boosted(booster, int(booster.current_iteration()), np.empty(0))
    return Boosted(booster, int(booster.best_iteration), np.array(history["valid"]["measure"]))


def lightgbm_data(lgb: Any, data: QueryDataset, reference: Any = None) -> Any:
    """Return a data set as LightGBM takes it, weights on every row; a validation part follows its `reference`."""
    weight = None if data.query_weight is None else np.repeat(data.query_weight, data.lengths)
    options = {"verbosity": -1, "feature_pre_filter": False}
    return lgb.Dataset(data.X, label=data.y, group=data.lengths, weight=weight, reference=reference, params=options)
