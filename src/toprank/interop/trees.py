"""What the boosted trees of other packages share here: parameters, the model, and the fit around the booster."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from .._typing import Floats
from ..data.dataset import QueryDataset
from ..data.validation import check_count, check_positive
from ..measures import measure as parse_measure
from ..measures.base import Measure
from ..model.functions import ScoringFunction
from ..rankers.base import Ranker, parameters
from ..surrogates.base import Surrogate
from .tree_files import read_trees


@dataclass(frozen=True, eq=False)
class BoosterFunction(ScoringFunction):
    """The sum of trees of another package's booster."""

    booster: Any

    def as_value(self) -> ScoringFunction:
        """Return the trees without the package: what a file holds, and what is exported."""
        return read_trees(self.booster).function


@dataclass(frozen=True)
class Boosted:
    """A booster that was trained, cut at its best round, and how that came about."""

    booster: Any
    rounds: int
    valid: Floats
    """The mean measure on the validation queries after each round; empty without them."""

    def rising(self, patience: int) -> bool:
        """Say whether the best round is one of the last: it was not patience that ended the training."""
        return len(self.valid) - 1 - int(np.argmax(self.valid)) < patience


@parameters
class TreeRanker(Ranker):
    """Boosted trees of another package: at most `rounds` of them.

    With a validation set in `fit_queries`, boosting stops after `patience` rounds without a better `measure` on it, and
    the best round is kept. The booster is in `booster_`; save it with its own `save_model`.

    Missing cells (NaN) reach the trees as they are (`missing="native"`): each split learns a side for them. With the
    other rules they are refused or filled in before, as for every ranker.
    """

    model: ClassVar[type[BoosterFunction]]
    needs_all_rows: ClassVar[bool] = True

    missing: Literal["error", "zero", "median", "indicator", "native"] = "native"  # type: ignore[assignment]

    rounds: int = 100
    eta: float = 0.1
    patience: int = 20
    random_state: int = 0
    capped_: bool = field(init=False)
    """Whether `rounds` ended the fit while the measure was still rising: more might have been better."""

    @property
    def booster_(self) -> Any:
        """The booster of the other package."""
        model = vars(self).get("function_")
        if not isinstance(model, BoosterFunction):
            raise AttributeError(f"{type(self).__name__} has no booster_: it is not fitted")
        return model.booster

    def _fit(self, data: QueryDataset, valid: QueryDataset | None, executor: Executor | None) -> None:
        check_count(rounds=self.rounds, patience=self.patience)
        check_positive(eta=self.eta)
        found = self._boost(data, valid, parse_measure(self.measure))
        self.function_ = self.model(found.booster)
        self.trace_ = {} if valid is None else {"valid": found.valid}
        self.n_iter_ = found.rounds
        self.capped_ = valid is not None and len(found.valid) == self.rounds and found.rising(self.patience)

    @abstractmethod
    def _boost(self, data: QueryDataset, valid: QueryDataset | None, measure: Measure) -> Boosted:
        """Return the booster, cut at its best round, and what it reached on the validation queries round by round."""


@parameters
class SurrogateTrees(TreeRanker):
    """Boosted trees that minimise any surrogate of the library: F ← F − eta H⁻¹ g, tree by tree.

    `params` go to the package as they are.
    """

    surrogate: Surrogate | None = field(default=None, kw_only=False)
    measure: str | Measure = "ndcg@10"
    params: dict[str, Any] | None = None
    verbose: bool = False
