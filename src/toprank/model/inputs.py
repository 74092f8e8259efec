"""The one door for columns: how rows of any data set become the rows that a scoring function sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

import numpy as np

from .._typing import Ints
from ..data.csr import is_sparse
from ..data.dataset import QueryDataset
from ..data.lazy import LazyRows
from ..data.matching import match_columns
from ..data.preparation import Knotted, Step, steps_of
from ..data.remote import RemoteMatrix
from ..data.validation import as_feature_names
from ..errors import InputError
from .missing import Missing, MissingRule

AT_ONCE = 1 << 28
"""Rows that take up to so many bytes when prepared are prepared once and kept."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a model wants of a row before its function sees it: the features, the missing cells, the preparation.

    Parameters
    ----------
    n_features : how many features a row has as it comes.
    names : their names; None where nobody gave them any.
    missing : what stands in for missing cells.
    steps : the preparation, one step of `data.preparation` after the other, with what it learned; words such as "log"
        name those that learn nothing.

    >>> inputs = Inputs(2, ("bm25", "age"), steps=("query",))
    >>> data = QueryDataset.from_arrays([[9.0, 1.0], [8.0, 3.0]], [0, 1], feature_names=["age", "bm25"])
    >>> inputs.apply(data).X.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    n_features: int
    names: tuple[str, ...] | None = None
    missing: MissingRule = field(default_factory=MissingRule)
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", steps_of(self.steps))
        as_feature_names(self.names, self.n_features)
        if self.missing.fill is not None and len(self.missing.fill) != self.n_features:
            raise InputError(
                f"{len(self.missing.fill)} values are to fill missing cells of {self.n_features} features: each needs "
                "one"
            )

        width = self.filled_width
        for step in self.steps:
            if isinstance(step, Knotted) and step.width != width:
                raise InputError(f"{step.words[0]} was learned on {step.width} columns, and there are {width}")
            width = step.n_outputs(width)

    @classmethod
    def fit(
        cls, data: QueryDataset, missing: Missing | Literal["native"] = "error", prepare: str | Sequence[str] = ""
    ) -> Inputs:
        """Return what a model that learns from these rows will want of all others."""
        made = cls(data.n_features, data.feature_names, MissingRule.learned(missing, data.X))
        steps = steps_of(prepare)
        if any(step.learns for step in steps):
            data = made._filled(data)
        found: list[Step] = []
        for step in steps:
            found.append(step.fit(data, _Chain(tuple(found))))
        return cls(made.n_features, made.names, made.missing, tuple(found))

    @property
    def filled_width(self) -> int:
        """How many columns there are before the first step: the features and where they are missing."""
        return self.n_features + len(self.missing.indicated)

    @property
    def n_outputs(self) -> int:
        """How many columns the scoring function sees."""
        return reduce(lambda width, step: step.n_outputs(width), self.steps, self.filled_width)

    @property
    def words(self) -> tuple[str, ...]:
        """The preparation in words, as the parameter `prepare` has it."""
        return tuple(word for step in self.steps for word in step.words)

    @property
    def needs_queries(self) -> bool:
        """Whether it matters which rows belong to one query."""
        return any(step.needs_queries for step in self.steps)

    @property
    def widens(self) -> bool:
        """Whether the scoring function sees more columns than there are features and indicators."""
        return any(step.widens for step in self.steps)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each feature: its own, or f1, f2, … where nobody gave it one."""
        return self.names or tuple(f"f{j}" for j in range(1, self.n_features + 1))

    @property
    def filled_labels(self) -> tuple[str, ...]:
        """A name for each column before the first step."""
        return (*self.labels, *(f"{self.labels[j]} is missing" for j in self.missing.indicated))

    @property
    def output_labels(self) -> tuple[str, ...]:
        """A name for each column that the scoring function sees."""
        names = self.filled_labels
        for step in self.steps:
            names = step.labels(names)
        return names

    @property
    def origins(self) -> Ints:
        """The filled-in column that each column of the scoring function is made of, by its place in `filled_labels`."""
        found: Ints = np.arange(self.filled_width, dtype=np.int64)
        for step in self.steps:
            found = step.origins(found)
        return found

    def apply(self, data: QueryDataset, who: str = "the model") -> QueryDataset:
        """Return the data set as the scoring function sees it; `who` names the model in messages."""
        return self.prepared(self.matched(data, who))

    def matched(self, data: QueryDataset, who: str = "the model") -> QueryDataset:
        """Return the data set with the columns that the model wants, in its order, by the rule of `match_columns`."""
        return match_columns(data, self.n_features, self.names, who, stacklevel=4)

    def prepared(self, data: QueryDataset) -> QueryDataset:
        """Return a data set whose columns are the model's, filled in and prepared; itself where nothing is to do."""
        data = self._filled(data)
        if is_sparse(data.X) and any(step.widens and step.fills(data.X) for step in self.steps):
            raise InputError(
                "+rank and +standard fill a sparse X, and this learner needs all rows at once: take +minmax, or pass "
                "X.toarray() if it fits"
            )
        return _Chain(self.steps)(data)

    def prepared_lazily(self, data: QueryDataset) -> QueryDataset:
        """Do what `prepared` does, for those who read X by lists: where there are more columns, they are no copy.

        Few rows are prepared at once all the same, which saves time; the scores are the same to the bit.
        """
        if not self.widens or isinstance(data.X, RemoteMatrix):
            return self.prepared(data)
        data, width = self._filled(data), self.n_outputs
        lazy = LazyRows(data, _Chain(self.steps), width)
        if 8 * data.n_docs * width <= AT_ONCE:
            lazy.keep_rows_in_memory()
        return data._with(X=lazy, feature_names=None, mapped=None)

    def _filled(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with its missing cells filled in and indicators behind, or itself."""
        if data.has_missing and self.missing.kind == "error":
            self.missing.check_none_missing(data, self.names)
        if self.missing.indicated or (data.has_missing and self.missing.kind == "fill"):
            data = data.with_X(self.missing.filled(data.X), self.filled_labels if self.names else None)
        if data.has_missing and self.missing.native and any(step.widens for step in self.steps):
            raise InputError(
                f'prepare="{",".join(self.words)}" puts columns beside the features, and missing cells (NaN) have no '
                'place in them: fit with missing="zero" or "median", or leave the preparation out, which trees do not '
                "need"
            )
        return data


@dataclass(frozen=True)
class _Chain:
    """Steps, one after the other; a value, since other processes are sent it."""

    steps: tuple[Step, ...]

    def __call__(self, data: QueryDataset) -> QueryDataset:
        return reduce(lambda seen, step: step.apply(seen), self.steps, data)
