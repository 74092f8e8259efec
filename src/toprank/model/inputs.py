"""The one door for columns: how rows of any data set become the rows that a scoring function sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..data.dataset import QueryDataset
from ..data.matching import match_columns
from ..data.validation import as_feature_names
from ..errors import InputError
from .missing import Missing, MissingRule


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a model wants of a row before its function sees it: the features, the missing cells, the preparation.

    Parameters
    ----------
    n_features : how many features a row has as it comes.
    names : their names; None where nobody gave them any.
    missing : what stands in for missing cells.
    steps : the preparation, one step after the other ("log", "query", "standard").

    >>> inputs = Inputs(2, ("bm25", "age"), steps=("query",))
    >>> data = QueryDataset.from_arrays([[9.0, 1.0], [8.0, 3.0]], [0, 1], feature_names=["age", "bm25"])
    >>> inputs.apply(data).X.tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """

    n_features: int
    names: tuple[str, ...] | None = None
    missing: MissingRule = field(default_factory=MissingRule)
    steps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        as_feature_names(self.names, self.n_features)
        if self.missing.fill is not None and len(self.missing.fill) != self.n_features:
            raise InputError(
                f"{len(self.missing.fill)} values are to fill missing cells of {self.n_features} features: each needs "
                "one"
            )

    @classmethod
    def fit(
        cls, data: QueryDataset, missing: Missing | Literal["native"] = "error", prepare: str | Sequence[str] = ""
    ) -> Inputs:
        """Return what a model that learns from these rows will want of all others."""
        rule = MissingRule.learned(missing, data.X)
        return cls(data.n_features, data.feature_names, rule, _steps_of(prepare))

    @property
    def n_outputs(self) -> int:
        """How many columns the scoring function sees."""
        return self.n_features + len(self.missing.indicated)

    @property
    def needs_queries(self) -> bool:
        """Whether it matters which rows belong to one query."""
        return any(step != "log" for step in self.steps)

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each feature: its own, or f1, f2, … where nobody gave it one."""
        return self.names or tuple(f"f{j}" for j in range(1, self.n_features + 1))

    @property
    def output_labels(self) -> tuple[str, ...]:
        """A name for each column that the scoring function sees."""
        return (*self.labels, *(f"{self.labels[j]} is missing" for j in self.missing.indicated))

    def apply(self, data: QueryDataset, who: str = "the model") -> QueryDataset:
        """Return the data set as the scoring function sees it; `who` names the model in messages."""
        return self.prepared(self.matched(data, who))

    def matched(self, data: QueryDataset, who: str = "the model") -> QueryDataset:
        """Return the data set with the columns that the model wants, in its order, by the rule of `match_columns`."""
        return match_columns(data, self.n_features, self.names, who, stacklevel=4)

    def prepared(self, data: QueryDataset) -> QueryDataset:
        """Return a data set whose columns are the model's, filled in and prepared; itself where nothing is to do."""
        if data.has_missing and self.missing.kind == "error":
            self.missing.check_none_missing(data, self.names)
        if self.missing.indicated or (data.has_missing and self.missing.kind == "fill"):
            data = data.with_X(self.missing.filled(data.X), self.output_labels if self.names else None)
        if not self.steps:
            return data
        if data.has_missing and self.missing.native and self.needs_queries:
            raise InputError(
                f'prepare="{",".join(self.steps)}" scales features within a query, which missing cells (NaN) leave '
                'open: fit with missing="zero" or "median", or leave the scaling out, which trees do not need'
            )
        from ..data.transforms import prepared

        return prepared(data, self.steps)


def _steps_of(prepare: str | Sequence[str]) -> tuple[str, ...]:
    if not prepare:
        return ()
    from ..data.transforms import steps_of

    return steps_of(prepare)
