"""Surrogates as LightGBM objectives, and a LightGBM ranker with our fit(X, y, qid)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Matrix
from ..data.dataset import QueryDataset
from ..data.validation import Missing, check_count, check_positive
from ..errors import MissingExtraError
from ..measures.base import Measure
from ..rankers.base import Ranker
from ..rankers.models import Model
from ..surrogates.base import Surrogate
from ..surrogates.listwise import ListNet
from .curvature import Curved, boundaries, per_query_weight


@dataclass(frozen=True)
class LightGBMObjective:
    """A surrogate as LightGBM calls it: f(preds, Dataset) in `lgb.train`, f(y, preds, weight, group) elsewhere."""

    curved: Curved

    def __call__(
        self, first: Any, second: Any, weight: AnyArray | None = None, group: AnyArray | None = None
    ) -> tuple[Floats, Floats]:
        """Return gradient and curvature for LightGBM."""
        if hasattr(second, "get_group"):
            y, scores, weight, group = second.get_label(), first, second.get_weight(), second.get_group()
        else:
            y, scores = first, second
        ptr = np.array([0, len(y)]) if group is None else boundaries(group)
        return self.curved(scores, y, ptr, per_query_weight(weight, ptr))


def lightgbm_objective(surrogate: Surrogate, **options: Any) -> LightGBMObjective:
    """Return the surrogate as a LightGBM objective, for `lgb.train` and for `LGBMRanker(objective=...)` alike.

    `options` are those of `Curved`: how curvature is estimated where a surrogate has none in closed form.

    >>> import numpy as np, toprank as tr
    >>> objective = tr.interop.lightgbm_objective(tr.surrogates.ListNet())
    >>> grad, hess = objective(np.array([1.0, 0.0]), np.zeros(2), None, np.array([2]))
    >>> grad.round(4).tolist(), hess.tolist()
    ([-0.2311, 0.2311], [0.25, 0.25])
    """
    return LightGBMObjective(Curved(surrogate, **options))


@dataclass(frozen=True, eq=False)
class LightGBMModel(Model):
    """The sum of trees of a LightGBM booster."""

    booster: Any

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return int(self.booster.num_feature())

    def scores(self, X: Matrix) -> Floats:
        """Return one score per row."""
        return np.asarray(self.booster.predict(X), dtype=np.float64)


class LightGBMRanker(Ranker):
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

    def __init__(
        self,
        surrogate: Surrogate | None = None,
        measure: str | Measure = "ndcg@10",
        *,
        rounds: int = 100,
        eta: float = 0.1,
        patience: int = 20,
        params: dict[str, Any] | None = None,
        random_state: int = 0,
        verbose: bool = False,
        missing: Missing = "error",
    ) -> None:
        self.surrogate = surrogate
        self.measure = measure
        self.rounds = rounds
        self.eta = eta
        self.patience = patience
        self.params = params
        self.random_state = random_state
        self.verbose = verbose
        self.missing = missing

    @property
    def booster_(self) -> Any:
        """The LightGBM booster."""
        if "model_" not in vars(self):
            raise AttributeError("LightGBMRanker has no booster_: it is not fitted")
        return self.model_.booster  # type: ignore[attr-defined]

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        try:
            import lightgbm as lgb
        except ImportError:
            raise MissingExtraError("lightgbm", extra="trees", purpose="LightGBMRanker") from None
        from ..measures import measure as parse_measure

        check_count(rounds=self.rounds, patience=self.patience)
        check_positive(eta=self.eta)
        parsed = parse_measure(self.measure)
        train = _dataset(lgb, data)
        history: dict[str, Any] = {}
        callbacks: list[Callable[..., Any]] = [lgb.record_evaluation(history)]
        if valid is not None:
            callbacks.append(lgb.early_stopping(self.patience, verbose=self.verbose))
        if self.verbose:
            callbacks.append(lgb.log_evaluation())
        params = {
            "learning_rate": self.eta,
            "verbosity": -1,
            "seed": self.random_state,
            "deterministic": True,
            "force_row_wise": True,
            "metric": "None",
            "feature_pre_filter": False,
            **(self.params or {}),
            "objective": lightgbm_objective(self.surrogate or ListNet(), random_state=self.random_state),
        }

        def reached(scores: AnyArray, part: Any) -> tuple[str, float, bool]:
            ptr = boundaries(part.get_group())
            return str(parsed), parsed.mean(scores, np.asarray(part.get_label(), dtype=np.float64), ptr), True

        booster = lgb.train(
            params,
            train,
            num_boost_round=self.rounds,
            valid_sets=None if valid is None else [_dataset(lgb, valid, train)],
            valid_names=None if valid is None else ["valid"],
            feval=reached,
            callbacks=callbacks,
        )
        self.model_ = LightGBMModel(booster)
        self.trace_ = {"valid": np.array(next(iter(history["valid"].values())))} if valid is not None else {}
        self.n_iter_ = booster.current_iteration()


def _dataset(lgb: Any, data: QueryDataset, reference: Any = None) -> Any:
    weight = None if data.query_weight is None else np.repeat(data.query_weight, data.lengths)
    X = data.X.tocsr() if data.is_sparse else data.X
    return lgb.Dataset(
        X, label=data.y, group=data.lengths, weight=weight, reference=reference, params={"verbosity": -1}
    )
