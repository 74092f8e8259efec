"""Keeping the best on a validation set: the one place for every learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np

from .._typing import ArrayLike, Floats
from ..clicks.evaluation import choice_value
from ..data.dataset import QueryDataset, informative_queries
from ..data.grouping import group_rows
from ..data.validation import as_labels, as_query_weight, check_count
from ..data.weights import weight_of_rows
from ..errors import InputError
from ..measures.base import mean_value
from ..model.functions import ScoringFunction

T = TypeVar("T")


class Judge(Protocol):
    """What says how good scores are, query by query: a measure, or the precision at the top."""

    def per_query(self, scores: ArrayLike, y: ArrayLike, ptr: ArrayLike, *, doc_ids: ArrayLike | None = None) -> Floats:
        """Return the value of each query; NaN where it does not count."""


class BestOnValidation(Generic[T]):
    """Looks at a learner on its validation set, remembers the best look, and says when to stop.

    The value of a look is the mean of the judge over the queries, with their weights, ties settled by document ids
    where the judge says so; on clicks it is their value (`choice_value`). The first of equal looks is the best.
    `patience` looks in a row without a better one end the learning. Without a validation set nothing is kept, and
    `verbose` still prints.

    >>> import toprank as tr
    >>> valid = tr.QueryDataset.from_arrays([[0.0], [1.0]], [1, 0])
    >>> watch = BestOnValidation[str](tr.measure("ndcg"), valid, patience=1)
    >>> [watch.look(np.array(scores), lambda: name) for name, scores in (("a", [2.0, 1.0]), ("b", [1.0, 2.0]))]
    [False, True]
    >>> watch.best, watch.best_at, [round(value, 2) for value in watch.reached]
    ('a', 0, [1.0, 0.63])
    """

    def __init__(
        self, judge: Judge, valid: QueryDataset | None, patience: int | None = None, verbose: bool = False
    ) -> None:
        if patience is not None:
            check_count(patience=patience)
        if valid is not None:
            _check_can_choose(judge, valid)
        self.judge, self.valid, self.patience, self.verbose = judge, valid, patience, verbose
        self.reached: list[float] = []
        self.best: T | None = None
        self.best_at = -1

    def value(self, scores: Floats | ScoringFunction) -> float:
        """Return what scores, or a model, reach on the validation set."""
        assert self.valid is not None
        found = scores.scores(self.valid.X) if isinstance(scores, ScoringFunction) else scores
        return choice_value(self.judge, found, self.valid)

    def look(self, scores: Floats | ScoringFunction, keep: Callable[[], T], text: str = "") -> bool:
        """Note what is reached, keep what `keep` returns where that is the best so far; True where to stop."""
        return self.note(None if self.valid is None else self.value(scores), keep, text)

    def note(self, reached: float | None, keep: Callable[[], T], text: str = "") -> bool:
        """Do what `look` does with a value that is known already; None without a validation set."""
        if reached is not None:
            self.reached.append(reached)
            if self.best_at < 0 or reached > self.reached[self.best_at]:
                self.best, self.best_at = keep(), len(self.reached) - 1
            text += f"  {self.judge} {reached:.4f}"
        if self.verbose:
            print(text)
        return self.stopped

    @property
    def stopped(self) -> bool:
        """Whether patience has run out."""
        return self.patience is not None and len(self.reached) - 1 - self.best_at >= self.patience

    def trace(self) -> dict[str, Floats]:
        """Return the curve as `trace_` has it; empty without a validation set."""
        return {} if self.valid is None else {"valid": np.array(self.reached)}


def mean_on(judge: Judge, scores: Floats, data: QueryDataset) -> float:
    """Return the mean value over the queries of a data set, with its weights and document ids."""
    return mean_value(judge.per_query(scores, data.y, data.ptr, doc_ids=data.doc_ids), data.query_weight)


def mean_of_rows(
    judge: Judge, scores: Floats, y: ArrayLike, qid: ArrayLike | None, sample_weight: ArrayLike | None = None
) -> float:
    """Return the mean value over lists of rows in the caller's order, each list with the weight of its rows."""
    labels, weight = as_labels(y, len(scores)), None
    ptr, query_ids, order = group_rows(qid, len(scores))
    if sample_weight is not None:
        weight = as_query_weight(weight_of_rows(sample_weight, query_ids, ptr, order), len(query_ids))
    if order is not None:
        scores, labels = scores[order], labels[order]
    return mean_value(judge.per_query(scores, labels, ptr), weight)


def _check_can_choose(judge: Judge, valid: QueryDataset) -> None:
    """Refuse a validation set on which every order of the documents is worth the same."""
    if valid.doc_weight is not None:
        if not informative_queries(valid.doc_weight, valid.ptr).any():
            raise InputError(
                f"the validation set cannot choose: in none of its {valid.n_queries} queries do clicks weigh more for "
                "one document than for another"
            )
        return
    best, worst = (judge.per_query(y, valid.y, valid.ptr, doc_ids=valid.doc_ids) for y in (valid.y, -valid.y))
    weight = np.ones(valid.n_queries) if valid.query_weight is None else valid.query_weight
    if not ((best > worst) & (weight > 0)).any():
        raise InputError(
            f"the validation set cannot choose: in none of its {valid.n_queries} queries is one order better than "
            f"another by {judge} (relevant and other documents in one query are needed, and a weight above 0)"
        )
