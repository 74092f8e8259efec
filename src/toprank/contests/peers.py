"""Boosted trees with their own ranking losses, as other people run them: something to compare with."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor
from dataclasses import field
from typing import Any

import numpy as np

from ..data.dataset import QueryDataset
from ..data.validation import check_count, check_informative, check_positive
from ..errors import InputError
from ..interop.lightgbm import LightGBMModel, boost_lightgbm
from ..interop.trees import Boosted, BoosterModel
from ..interop.xgboost import XGBoostModel, boost_xgboost
from ..measures.base import Measure
from ..measures.base import measure as parse
from ..rankers.base import Ranker, parameters

_MOST_GRADES = 60
"""LightGBM wants one gain 2^l − 1 per grade, and XGBoost refuses larger grades with that gain."""


@parameters
class Trees(Ranker):
    """At most `rounds` trees; with a validation set, `patience` of them without a better `measure` end the fit."""

    rounds: int = 2_000
    eta: float = 0.1
    patience: int = 50
    random_state: int = 0
    capped_: bool = field(init=False)
    """Whether `rounds` ended the fit while the measure was still rising: more might have been better."""

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        check_count(rounds=self.rounds, patience=self.patience)
        check_positive(eta=self.eta)
        check_informative(data.informative)
        if (data.y < 0).any() or (data.y != np.floor(data.y)).any() or data.y.max() >= _MOST_GRADES:
            raise InputError(f"{type(self).__name__} takes whole grades from 0 to {_MOST_GRADES - 1}")
        found = self._boost(data, valid, parse(self.measure))
        self.model_ = self._model(found.booster)
        self.trace_ = {} if valid is None else {"valid": found.valid}
        self.n_iter_ = found.rounds
        self.capped_ = valid is not None and len(found.valid) == self.rounds and found.rising(self.patience)

    @abstractmethod
    def _boost(self, data: QueryDataset, valid: QueryDataset | None, measure: Measure) -> Boosted:
        """Return the booster, cut at its best round, and how it came about."""

    @abstractmethod
    def _model(self, booster: Any) -> BoosterModel:
        """Return the booster as a model."""


@parameters
class LightGBM(Trees):
    """LightGBM's own LambdaMART (`objective="lambdarank"`), single-threaded so that its bits repeat.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> LightGBM(rounds=10).fit_queries(data).n_iter_
    10
    """

    leaves: int = 31

    def _boost(self, data: QueryDataset, valid: QueryDataset | None, measure: Measure) -> Boosted:
        check_count(leaves=self.leaves)
        params = {
            "objective": "lambdarank",
            "label_gain": [2.0**grade - 1 for grade in range(_MOST_GRADES)],
            "learning_rate": self.eta,
            "num_leaves": self.leaves,
            "seed": self.random_state,
            "num_threads": 1,
        }
        return boost_lightgbm("LightGBM", params, data, valid, measure, self.rounds, self.patience)

    def _model(self, booster: Any) -> LightGBMModel:
        return LightGBMModel(booster)


@parameters
class XGBoost(Trees):
    """XGBoost's own LambdaMART (`objective="rank:ndcg"`), single-threaded so that its bits repeat.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> XGBoost(rounds=10).fit_queries(data).n_iter_
    10
    """

    depth: int = 6

    def _boost(self, data: QueryDataset, valid: QueryDataset | None, measure: Measure) -> Boosted:
        check_count(depth=self.depth)
        params = {
            "objective": "rank:ndcg",
            # Grades above 31 have no gain 2^l − 1 here; XGBoost then takes the grade itself.
            "ndcg_exp_gain": bool(data.y.max() <= 31),
            "eta": self.eta,
            "max_depth": self.depth,
            "seed": self.random_state,
            "nthread": 1,
        }
        return boost_xgboost("XGBoost", params, data, valid, measure, self.rounds, self.patience)

    def _model(self, booster: Any) -> XGBoostModel:
        return XGBoostModel(booster)
