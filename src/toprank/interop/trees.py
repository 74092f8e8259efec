"""What the boosted trees of other packages share here: parameters, the model, and the fit around the booster."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..data.dataset import QueryDataset
from ..data.validation import Missing, check_count, check_positive
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..rankers.base import Ranker
from ..rankers.models import Model, TreeModel
from ..surrogates.base import Surrogate
from ..surrogates.listwise import ListNet
from .tree_files import read_trees


@dataclass(frozen=True, eq=False)
class BoosterModel(Model):
    """The sum of trees of another package's booster."""

    booster: Any

    def as_value(self) -> TreeModel:
        """Return the trees without the package: what a file holds, and what is exported."""
        return read_trees(self.booster).model


class TreeRanker(Ranker):
    """Boosted trees that minimise any surrogate of the library: F ← F − eta H⁻¹ g, tree by tree.

    `params` go to the package as they are. With a validation set in `fit_queries`, boosting stops after `patience`
    rounds without a better `measure` on it, and the best round is kept. The booster is in `booster_`; save it with its
    own `save_model`.
    """

    model: ClassVar[type[BoosterModel]]

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
        """The booster of the other package."""
        model = vars(self).get("model_")
        if not isinstance(model, BoosterModel):
            raise AttributeError(f"{type(self).__name__} has no booster_: it is not fitted")
        return model.booster

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        check_count(rounds=self.rounds, patience=self.patience)
        check_positive(eta=self.eta)
        booster, history = self._boost(data, valid, self.surrogate or ListNet(), parse_measure(self.measure))
        self.model_ = self.model(booster)
        self.trace_ = {} if valid is None else {"valid": np.array(next(iter(history["valid"].values())))}
        self.n_iter_ = self._rounds(booster)

    @abstractmethod
    def _boost(
        self, data: QueryDataset, valid: QueryDataset | None, surrogate: Surrogate, measure: Measure
    ) -> tuple[Any, Mapping[str, Any]]:
        """Return the booster, cut at its best round, and what it reached on the part "valid" round by round."""

    @abstractmethod
    def _rounds(self, booster: Any) -> int:
        """Return how many rounds the booster holds."""
