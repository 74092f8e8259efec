"""Boosted trees with their own ranking losses, as other people run them: something to compare with."""

from __future__ import annotations

import numpy as np

from ..data.dataset import QueryDataset
from ..data.validation import check_count, check_informative
from ..errors import InputError
from ..interop.lightgbm import LightGBMFunction, boost_lightgbm
from ..interop.trees import Boosted, TreeRanker
from ..interop.xgboost import XGBoostFunction, boost_xgboost
from ..measures.base import Measure
from ..rankers.base import parameters

_MOST_GRADES = 60
"""LightGBM wants one gain 2^l − 1 per grade, and XGBoost refuses larger grades with that gain."""


@parameters
class Peer(TreeRanker):
    """What both take: whole grades, more rounds than will be needed, and patience."""

    rounds: int = 2_000
    patience: int = 50

    def _check_grades(self, data: QueryDataset) -> None:
        check_informative(data.informative)
        if (data.y < 0).any() or (data.y != np.floor(data.y)).any() or data.y.max() >= _MOST_GRADES:
            raise InputError(f"{type(self).__name__} takes whole grades from 0 to {_MOST_GRADES - 1}")


@parameters
class LightGBM(Peer):
    """LightGBM's own LambdaMART (`objective="lambdarank"`), single-threaded so that its bits repeat.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> LightGBM(rounds=10).fit_queries(data).n_iter_
    10
    """

    model = LightGBMFunction

    leaves: int = 31

    def _boost(self, data: QueryDataset, valid: QueryDataset | None, measure: Measure) -> Boosted:
        check_count(leaves=self.leaves)
        self._check_grades(data)
        params = {
            "objective": "lambdarank",
            "label_gain": [2.0**grade - 1 for grade in range(_MOST_GRADES)],
            "learning_rate": self.eta,
            "num_leaves": self.leaves,
            "seed": self.random_state,
            "num_threads": 1,
        }
        return boost_lightgbm(self, params, data, valid, measure)


@parameters
class XGBoost(Peer):
    """XGBoost's own LambdaMART (`objective="rank:ndcg"`), single-threaded so that its bits repeat.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> XGBoost(rounds=10).fit_queries(data).n_iter_
    10
    """

    model = XGBoostFunction

    depth: int = 6

    def _boost(self, data: QueryDataset, valid: QueryDataset | None, measure: Measure) -> Boosted:
        check_count(depth=self.depth)
        self._check_grades(data)
        params = {
            "objective": "rank:ndcg",
            # Grades above 31 have no gain 2^l − 1 here; XGBoost then takes the grade itself.
            "ndcg_exp_gain": bool(data.y.max() <= 31),
            "eta": self.eta,
            "max_depth": self.depth,
            "seed": self.random_state,
            "nthread": 1,
        }
        return boost_xgboost(self, params, data, valid, measure)
