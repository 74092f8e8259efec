"""Boosted trees as a ranker: LightGBM's or XGBoost's trees, grown for their own loss or for any of ours."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from inspect import isabstract
from typing import Any, ClassVar, Literal

import numpy as np

from .. import surrogates
from .._typing import Floats
from ..data.dataset import QueryDataset
from ..data.validation import check_count, check_informative, check_positive
from ..errors import InputError
from ..model.functions import TreeFunction
from ..rankers.base import Ranker, parameters
from ..rankers.watching import BestOnValidation
from ..surrogates.base import Surrogate
from .curvature import check_slope
from .tree_files import read_trees

MOST_GRADES = 60
"""LightGBM wants one gain 2^l − 1 per grade, and XGBoost refuses larger grades with that gain."""


@dataclass(frozen=True)
class Growth:
    """What an engine is to do: how many trees to grow, with what, and who watches them.

    Parameters
    ----------
    params : parameters of the engine, as it takes them.
    loss : one of our losses; None leaves the engine its own.
    rounds : the most trees.
    watch : judges the trees on the validation queries after each round, and says when to stop.
    random_state : the seed of our loss where its curvature is drawn.
    """

    params: Mapping[str, Any]
    loss: Surrogate | None
    rounds: int
    watch: BestOnValidation[int]
    random_state: int = 0


@dataclass(frozen=True)
class Grown:
    """A booster that was cut at its best round, and the gain of the splits on each feature."""

    booster: Any
    rounds: int
    gain: Floats


@parameters
class BoostedTrees(Ranker):
    """Boosted regression trees of LightGBM or XGBoost, for their own ranking loss or for any of the library.

    F ← F − eta H⁻¹ g, tree by tree: a leaf moves by −Σg/Σh over its documents, g and h being the loss's first and
    second derivatives in the scores.

    The extra `trees` brings the engines. With a validation set the round with the best `measure` on it is kept, and
    `patience` rounds without a better one end the fit. What was learned is a `TreeFunction`: it is saved, served and
    exported without the engine. XGBoost adds up its trees in float32, `predict` in float64, so the last digits differ
    from its own. Engines run on one thread, so that bits repeat; `params={"num_threads": 8}` (XGBoost: "nthread")
    gives that up.

    Parameters
    ----------
    measure : what `score` reports and a validation set is judged by.
    loss : "lambdarank", the engine's own LambdaMART (which takes documents of equal scores in the order of the rows),
        or a surrogate of `toprank.surrogates` or its name; "ListMLE" is the one that draws the orders of documents of
        one grade, anew in every round.
    engine : "lightgbm" or "xgboost".
    rounds : the most trees.
    eta : the learning rate.
    leaves : the most leaves of a tree; None is the engine's default (LightGBM 31, XGBoost no limit).
    depth : the most splits on the way to a leaf; None is the engine's default (LightGBM no limit, XGBoost 6).
    patience : how many rounds without a better value on the validation set end the fit.
    params : more parameters of the engine, as it calls them; they go before those above.
    missing : "native" leaves missing cells to the trees, each split having a side for them; the other rules fill them
        in, as in every ranker.

    >>> import toprank as tr
    >>> data = tr.datasets.make_graded(n_queries=50, random_state=0)
    >>> ranker = tr.BoostedTrees("ndcg@10", loss="ListNet", rounds=30).fit_queries(data[:35], valid=data[35:])
    >>> bool(ranker.n_iter_ == ranker.trace_["valid"].argmax() + 1)
    True
    """

    needs_all_rows = True
    optional_attributes: ClassVar[tuple[str, ...]] = ("gain_",)
    _depends_on_units: ClassVar[bool] = False

    loss: str | Surrogate = "lambdarank"
    engine: Literal["lightgbm", "xgboost"] = "lightgbm"
    rounds: int = 100
    eta: float = 0.1
    leaves: int | None = None
    depth: int | None = None
    patience: int | None = 20
    params: dict[str, Any] | None = None
    random_state: int = 0
    verbose: bool = False
    missing: Literal["error", "zero", "median", "indicator", "native"] = "native"  # type: ignore[assignment]
    booster_: Any = field(init=False)
    """The booster of the engine, cut at its best round; a model file does not keep it."""
    gain_: Floats = field(init=False)
    """By how much the splits on each column that the trees see lowered the loss, as the engine counts it."""
    capped_: bool = field(init=False)
    """Whether `rounds` ended the fit while the measure was still rising: more might have been better."""

    @classmethod
    def upgraded_parameters(cls, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a file of `LightGBM`, `XGBoost`, `LightGBMRanker` or `XGBoostRanker` as ours."""
        if "surrogate" in params:
            params = {**params, "loss": params["surrogate"] or "ListNet"}
        return {name: value for name, value in params.items() if name != "surrogate"}

    @property
    def own_loss(self) -> Surrogate | None:
        """The loss of the library that is minimised; None where the engine minimises its own."""
        if self.loss == "lambdarank":
            return None
        if self.loss == "ListMLE":  # in the order of the rows, that order would be learned too
            return surrogates.ListMLE(ties="sampled", seed=self.random_state)
        kind: Any = getattr(surrogates, self.loss, None) if isinstance(self.loss, str) else self.loss
        found = kind() if isinstance(kind, type) and issubclass(kind, Surrogate) and not isabstract(kind) else kind
        if not isinstance(found, Surrogate):
            raise InputError(f'loss must be "lambdarank", one of toprank.surrogates or its name, got {self.loss!r}')
        check_slope(found)
        return found

    @property
    def feature_importances_(self) -> Floats:
        """The share of each feature in the gain of all splits; 0 everywhere where there is no split."""
        if "gain_" not in vars(self):
            raise AttributeError("this BoostedTrees has no feature_importances_: it is not fitted")
        rule = self.inputs_.missing
        gain = self.gain_[: self.inputs_.n_features].copy()
        np.add.at(gain, list(rule.indicated), self.gain_[self.inputs_.n_features :])
        total = gain.sum()
        return np.asarray(gain / total if total > 0 else gain)

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        check_positive(eta=self.eta)
        for name in ("leaves", "depth"):
            if getattr(self, name) is not None:
                check_count(**{name: getattr(self, name)})
        if not (self.params is None or isinstance(self.params, dict)):
            raise InputError(f"params must be a dictionary of parameters of {self.engine}, got {self.params!r}")
        loss = self.own_loss
        if loss is None:
            check_whole_grades(data)
        watch = BestOnValidation[int](self._judge(), valid, self.patience, self.verbose)
        check_informative(data.informative, data.n_docs)
        if self.engine == "lightgbm":
            from .lightgbm import grow
        else:
            from .xgboost import grow
        grown = grow(data, Growth(self._engine_params(), loss, self.rounds, watch, self.random_state))
        trees = read_trees(grown.booster).function
        assert isinstance(trees, TreeFunction)
        self.function_, self.booster_, self.gain_ = trees, grown.booster, grown.gain
        self.n_iter_, self.trace_ = grown.rounds, watch.trace()
        rising = len(watch.reached) - 1 - watch.best_at < (self.patience or self.rounds)
        self.capped_ = valid is not None and len(watch.reached) == self.rounds and rising

    def _engine_params(self) -> dict[str, Any]:
        """Return the parameters under the names that both engines know; the caller's own come last."""
        sizes = {"max_leaves": self.leaves, "max_depth": self.depth}
        given = {name: value for name, value in sizes.items() if value is not None}
        return {"learning_rate": self.eta, "seed": self.random_state, **given, **(self.params or {})}

    def _check_state(self) -> None:
        gain = vars(self).get("gain_", np.zeros(self.inputs_.n_outputs))
        if np.shape(gain) != (self.inputs_.n_outputs,) or not (np.isfinite(gain).all() and (gain >= 0).all()):
            raise InputError("$.state.gain_ must have one number not below 0 for each column of the trees")


def check_whole_grades(data: QueryDataset) -> None:
    """Refuse grades that LambdaMART has no gain for."""
    if (data.y < 0).any() or (data.y != np.floor(data.y)).any() or data.y.max(initial=0) >= MOST_GRADES:
        raise InputError(
            f'BoostedTrees(loss="lambdarank") takes whole grades from 0 to {MOST_GRADES - 1}; for others take a loss '
            'of toprank.surrogates, such as loss="ListNet"'
        )
