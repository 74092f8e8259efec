"""Boosted trees with their own ranking losses, as other people run them: something to compare with."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats
from ..data.dataset import QueryDataset
from ..data.validation import Missing, check_count, check_positive
from ..errors import InputError, MissingExtraError
from ..interop.curvature import boundaries
from ..interop.lightgbm import LightGBMModel
from ..interop.xgboost import XGBoostModel
from ..measures.base import Measure
from ..measures.base import measure as parse
from ..rankers.base import Ranker

_MOST_GRADES = 60
"""LightGBM wants one gain 2^l − 1 per grade, and XGBoost refuses larger grades with that gain."""


class _Trees(Ranker):
    """At most `rounds` trees; with a validation set, `patience` of them without a better `measure` end the fit."""

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        rounds: int = 300,
        eta: float = 0.1,
        patience: int = 50,
        random_state: int = 0,
        missing: Missing = "error",
    ) -> None:
        self.measure = measure
        self.rounds = rounds
        self.eta = eta
        self.patience = patience
        self.random_state = random_state
        self.missing = missing

    def _checked_measure(self, data: QueryDataset) -> Measure:
        check_count(rounds=self.rounds, patience=self.patience)
        check_positive(eta=self.eta)
        if not data.informative.any():
            raise InputError("no query can teach: in each of them all documents have the same grade")
        if (data.y < 0).any() or (data.y != np.floor(data.y)).any() or data.y.max() >= _MOST_GRADES:
            raise InputError(f"{type(self).__name__} takes whole grades from 0 to {_MOST_GRADES - 1}")
        return parse(self.measure)


class LightGBM(_Trees):
    """LightGBM's own LambdaMART (`objective="lambdarank"`), single-threaded so that its bits repeat.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> LightGBM(rounds=10).fit_queries(data).n_iter_
    10
    """

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        leaves: int = 31,
        rounds: int = 300,
        eta: float = 0.1,
        patience: int = 50,
        random_state: int = 0,
        missing: Missing = "error",
    ) -> None:
        super().__init__(measure, rounds=rounds, eta=eta, patience=patience, random_state=random_state, missing=missing)
        self.leaves = leaves

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        try:
            import lightgbm as lgb
        except ImportError:
            raise MissingExtraError("lightgbm", extra="trees", purpose="LightGBM") from None
        target = self._checked_measure(data)
        check_count(leaves=self.leaves)
        params = {
            "objective": "lambdarank",
            "label_gain": [2.0**grade - 1 for grade in range(_MOST_GRADES)],
            "learning_rate": self.eta,
            "num_leaves": self.leaves,
            "metric": "None",
            "verbosity": -1,
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
        }

        def reached(scores: AnyArray, part: Any) -> tuple[str, float, bool]:
            ptr = boundaries(part.get_group())
            return "measure", target.mean(scores, np.asarray(part.get_label(), dtype=np.float64), ptr), True

        history: dict[str, Any] = {}
        watch: list[Any] = [lgb.record_evaluation(history)]
        train = _lightgbm_data(lgb, data, None)
        booster = lgb.train(
            params,
            train,
            num_boost_round=self.rounds,
            valid_sets=None if valid is None else [_lightgbm_data(lgb, valid, train)],
            valid_names=None if valid is None else ["valid"],
            feval=reached,
            callbacks=watch if valid is None else [*watch, lgb.early_stopping(self.patience, verbose=False)],
        )
        self.model_ = LightGBMModel(booster)
        self.trace_ = {} if valid is None else {"valid": np.array(history["valid"]["measure"])}
        self.n_iter_ = booster.current_iteration() if valid is None else booster.best_iteration


def _lightgbm_data(lgb: Any, data: QueryDataset, reference: Any) -> Any:
    weight = None if data.query_weight is None else np.repeat(data.query_weight, data.lengths)
    X = data.X.tocsr() if data.is_sparse else data.X
    options = {"verbosity": -1, "feature_pre_filter": False}
    return lgb.Dataset(X, label=data.y, group=data.lengths, weight=weight, reference=reference, params=options)


class XGBoost(_Trees):
    """XGBoost's own LambdaMART (`objective="rank:ndcg"`), single-threaded so that its bits repeat.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> XGBoost(rounds=10).fit_queries(data).n_iter_
    10
    """

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        *,
        depth: int = 6,
        rounds: int = 300,
        eta: float = 0.1,
        patience: int = 50,
        random_state: int = 0,
        missing: Missing = "error",
    ) -> None:
        super().__init__(measure, rounds=rounds, eta=eta, patience=patience, random_state=random_state, missing=missing)
        self.depth = depth

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        try:
            import xgboost as xgb
        except ImportError:
            raise MissingExtraError("xgboost-cpu", extra="trees", purpose="XGBoost") from None
        target = self._checked_measure(data)
        check_count(depth=self.depth)
        params = {
            "objective": "rank:ndcg",
            # Grades above 31 have no gain 2^l − 1 here; XGBoost then takes the grade itself.
            "ndcg_exp_gain": bool(data.y.max() <= 31),
            "eta": self.eta,
            "max_depth": self.depth,
            "seed": self.random_state,
            "nthread": 1,
            "verbosity": 0,
            "disable_default_eval_metric": True,
        }

        def reached(scores: Floats, part: Any) -> tuple[str, float]:
            ptr = np.asarray(part.get_uint_info("group_ptr"), dtype=np.int64)
            labels = np.asarray(part.get_label(), dtype=np.float64)
            return "measure", target.mean(np.asarray(scores, dtype=np.float64), labels, ptr)

        history: dict[str, Any] = {}
        booster = xgb.train(
            params,
            _xgboost_data(xgb, data),
            num_boost_round=self.rounds,
            custom_metric=reached,
            maximize=True,
            evals=[] if valid is None else [(_xgboost_data(xgb, valid), "valid")],
            early_stopping_rounds=None if valid is None else self.patience,
            evals_result=history,
            verbose_eval=False,
        )
        if valid is not None:
            booster = booster[: booster.best_iteration + 1]
        self.model_ = XGBoostModel(booster)
        self.trace_ = {} if valid is None else {"valid": np.array(history["valid"]["measure"])}
        self.n_iter_ = booster.num_boosted_rounds()


def _xgboost_data(xgb: Any, data: QueryDataset) -> Any:
    matrix = xgb.DMatrix(data.X, label=data.y)
    matrix.set_group(data.lengths)
    if data.query_weight is not None:
        matrix.set_weight(data.query_weight)
    return matrix
