"""What rankers that go on learning share: how lists come in, steps by theory, what a file keeps of passes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias

from .._typing import ArrayLike
from ..data.dataset import QueryDataset
from ..data.preparation import steps_of as steps_of_preparation
from ..errors import InputError
from ..model.functions import ScoringFunction
from ..solvers.steps import Steps
from ..statistics.evaluation import checked_data_set
from .base import QueryWeight, Ranker, parameters
from .checking import check_even_features
from .watching import BestOnValidation

Average: TypeAlias = bool | Literal["auto"]


@parameters
class StreamRanker(Ranker):
    """A ranker that learns from more lists at any time: subclasses implement `_learn_more`."""

    def partial_fit(
        self, X: Any, y: ArrayLike, qid: ArrayLike | None = None, query_weight: QueryWeight | None = None
    ) -> Self:
        """Learn from one more list, or from several in the order in which their ids appear.

        Bad input raises before anything changes.
        """
        with self._learning_copy() as new:
            new._learn_more_from(new._grouped(X, y, qid, query_weight, reset=not self._has_learned))
        return self

    def partial_fit_queries(self, data: QueryDataset) -> Self:
        """Learn from more lists, in their order."""
        with self._learning_copy() as new:
            if not self._has_learned:
                new._note_features(data)
            new._learn_more_from(checked_data_set(data))
        return self

    def _learn_more_from(self, data: QueryDataset) -> None:
        """Learn from lists as they came."""
        first = not self._has_learned
        learns = next((step.words[0] for step in steps_of_preparation(self.prepare) if step.learns), None)
        if first and learns is not None:
            raise InputError(f'prepare="{learns}" learns its knots from all rows: call fit first, then partial_fit')
        seen = self._learnable(data, first=first)
        if first and self._depends_on_units and "scale" in vars(self) and vars(self)["scale"] is None:
            check_even_features(type(self).__name__, seen, steps=True)
        self._learn_more(seen)
        self._note_rows(data.X, data.ptr, first=first)

    @abstractmethod
    def _learn_more(self, data: QueryDataset) -> None:
        """Learn from checked lists, from where learning stands."""

    @property
    def _has_learned(self) -> bool:
        return "function_" in vars(self)

    def _count_lists(self, lists: int, first: bool) -> None:
        """Note that so many lists were learned from."""
        self.n_queries_in_ = lists + (0 if first else self.n_queries_in_)
        self.certificates_ = []  # they spoke of what was learned before


def choose_average(
    watch: BestOnValidation[Any], average: Average, model: Callable[[bool], ScoringFunction]
) -> tuple[float | None, bool]:
    """Return what is reached on the validation set, and whether by the averaged weights: "auto" tries both.

    `model` makes the model of the averaged weights, or of the last. Without a validation set nothing is reached.
    """
    kinds = (True, False) if average == "auto" else (bool(average),)
    if watch.valid is None:
        return None, False
    reached = {averaged: watch.value(model(averaged)) for averaged in kinds}
    best = max(kinds, key=lambda averaged: reached[averaged])
    return reached[best], best


def check_same_measure(before: str | None, now: str) -> None:
    """Refuse another measure in mid-stream: the totals of a stream are sums of one measure."""
    if before is not None and before != now:
        raise InputError(
            f"measure cannot change in mid-stream from {before} to {now}: totals_ would add up both; call fit to "
            "start anew"
        )


def by_theory(eta: float | str) -> bool:
    """Whether the step is to be what theory says."""
    return isinstance(eta, str) and eta.partition(":")[0] == "theory"


def steps_of(eta: float | str, found: float | None) -> Steps:
    """Return the steps that a parameter `eta` names; by theory, those that theory has found (1 where not yet)."""
    return Steps(1.0 if found is None else found) if by_theory(eta) else Steps.parse(eta)


def read_passes(content: dict[str, Any], rounds: float, *more: str) -> dict[str, Any]:
    """Return what a model file says of the passes that led to its state of so many rounds; `ValueError` if nonsense."""
    passes = {key: content[key] for key in ("epochs", "seed", "shuffle", *more)}
    passes |= {"measure": content["measure"]} if "measure" in content else {}
    # Every pass plays at least one list.
    sound = type(passes["epochs"]) is int and 1 <= passes["epochs"] <= max(1, rounds)
    if not sound or not passes["seed"].isdecimal() or len(passes["seed"]) > 999 or type(passes["shuffle"]) is not bool:
        raise ValueError("no such passes")
    return passes
