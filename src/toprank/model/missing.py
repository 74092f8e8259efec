"""What a model does with missing cells: the rule is chosen before learning, its values are learned, both are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from .._typing import AnyArray, Floats, Matrix
from ..data.csr import is_sparse
from ..data.dataset import QueryDataset
from ..data.remote import RemoteMatrix
from ..data.validation import check_choice
from ..errors import InputError

Missing: TypeAlias = Literal["error", "zero", "median", "indicator"]
"""The rules that a ranker can be given, by the word that its parameter `missing` takes."""
RULES: tuple[Missing, ...] = ("error", "zero", "median", "indicator")
NOT_ON_A_CLUSTER = (
    'missing="{}" is learned from all rows in one memory, and on a cluster they lie on the workers: take '
    'missing="zero" (--missing zero), or learn on one machine (without --dask)'
)


@dataclass(frozen=True, eq=False)
class MissingRule:
    """What stands in for a missing cell (NaN).

    Parameters
    ----------
    kind : "error" refuses missing cells; "fill" puts `fill` there; "native" leaves them to the scoring function, which
        has a side of its own for them (trees).
    fill : one value per feature, for "fill".
    indicated : the features that get a column of their own behind all features: 1 where the cell is missing, else 0.

    >>> rule = MissingRule.learned("median", np.array([[1.0], [3.0], [np.nan], [9.0]]))
    >>> rule.fill.tolist(), rule.words
    ([3.0], 'missing values are filled in, feature by feature')
    >>> rule.filled(np.array([[np.nan], [2.0]])).tolist()
    [[3.0], [2.0]]
    """

    kind: Literal["error", "fill", "native"] = "error"
    fill: Floats | None = None
    indicated: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_choice(("error", "fill", "native"), kind=self.kind)
        if (self.kind == "fill") != (self.fill is not None):
            raise InputError("a rule that fills missing cells needs one value per feature, and no other rule has any")
        if self.fill is not None and (np.ndim(self.fill) != 1 or not np.isfinite(self.fill).all()):
            raise InputError("what fills missing cells must be a list of finite numbers, one per feature")
        width = 0 if self.fill is None else len(self.fill)
        if any(not 0 <= feature < width for feature in self.indicated):
            raise InputError("a missing cell can only be indicated for a feature that is filled")

    @classmethod
    def learned(cls, missing: Missing | Literal["native"], X: Matrix) -> MissingRule:
        """Return the rule that a word names, with what it takes from the rows that are learned from.

        "median" is that of a feature's own values (0 where it has none), "indicator" the same with an indicator column
        for each feature that has a missing cell here. "native" leaves missing cells to trees, and is for them alone.
        """
        check_choice((*RULES, "native"), missing=missing)
        if missing == "error":
            return cls()
        if missing == "native":
            return cls("native")
        if missing == "zero":
            return cls("fill", np.zeros(X.shape[1]))
        if isinstance(X, RemoteMatrix):
            raise InputError(NOT_ON_A_CLUSTER.format(missing))
        columns = [_stored_column(X, j) for j in range(X.shape[1])]
        fill = np.array([_median(values, absent) for values, absent in columns], dtype=X.dtype).astype(np.float64)
        gaps = tuple(j for j, (values, _) in enumerate(columns) if np.isnan(values).any())
        return cls("fill", fill, gaps if missing == "indicator" else ())

    @property
    def native(self) -> bool:
        """Whether a missing cell is left to the scoring function."""
        return self.kind == "native"

    @property
    def words(self) -> str:
        """The rule in a few words."""
        if self.kind == "native":
            return "missing values go the way that each split has for them"
        if self.fill is None:
            return "missing values are refused"
        if not self.fill.any() and not self.indicated:
            return "missing values count as 0"
        return "missing values are filled in, feature by feature"

    def fill_value(self, feature: int) -> float | None:
        """Return what stands in for a missing value of a feature, or None where it is refused or has a side."""
        return None if self.fill is None else float(self.fill[feature])

    def filled(self, X: Matrix) -> Matrix:
        """Return X with its missing cells filled in, and the indicator columns behind; a copy only where it must."""
        if self.fill is None:
            return X
        gaps = np.isnan(X.data if is_sparse(X) else X)
        indicators = [_indicator(X, gaps, feature) for feature in self.indicated]
        if gaps.any():
            X = _with_filled_cells(X, gaps, self.fill)
        if not indicators:
            return X
        if is_sparse(X):
            from scipy.sparse import csr_array, hstack

            wide: Matrix = csr_array(hstack([X, csr_array(np.column_stack(indicators))], format="csr"))
            return wide
        return np.column_stack([X, *indicators])

    def check_none_missing(self, data: QueryDataset, names: tuple[str, ...] | None) -> None:
        """Refuse missing cells, by the row, the query and the feature of the first one."""
        values: AnyArray = data.X.data if is_sparse(data.X) else np.asarray(data.X)
        gaps = np.flatnonzero(np.isnan(values.reshape(-1)))
        if not len(gaps):
            return
        if is_sparse(data.X):
            row = int(np.searchsorted(data.X.indptr, gaps[0], side="right")) - 1
            column = int(data.X.indices[gaps[0]])
        else:
            row, column = divmod(int(gaps[0]), data.n_features)
        query = data.query_ids[int(np.searchsorted(data.ptr, row, side="right")) - 1]
        caller_row = row if data.order is None else int(data.order[row])
        name = f"column {column}" + ("" if names is None else f" ({names[column]!r})")
        raise InputError(
            f"X has NaN in {data.place(caller_row)}, {name}, query {query}, and the model refuses missing "
            'values: fill it in, or fit with missing="zero", "median" or "indicator" (--missing on the command line)'
        )


def fill_missing(data: QueryDataset, missing: Missing) -> QueryDataset:
    """Return a data set whose missing cells are filled in by a rule that is learned from the data set itself.

    >>> data = QueryDataset.from_arrays([[1.0], [np.nan]], [0, 1], feature_names=["age"], missing="keep")
    >>> filled = fill_missing(data, "indicator")
    >>> filled.feature_names, filled.X.tolist()
    (('age', 'age is missing'), [[1.0, 0.0], [1.0, 1.0]])
    """
    if not data.has_missing:
        return data
    rule = MissingRule.learned(missing, data.X)
    if rule.kind == "error":
        rule.check_none_missing(data, data.feature_names)
    names = data.feature_names
    if names is not None:
        names = (*names, *(f"{names[j]} is missing" for j in rule.indicated))
    return data.with_X(rule.filled(data.X), names)


def _stored_column(X: Matrix, column: int) -> tuple[Floats, int]:
    """Return the values of a column that are stored, and how many zeros are not."""
    if not is_sparse(X):
        return np.asarray(X[:, column], dtype=np.float64), 0
    values = np.asarray(X.data[X.indices == column], dtype=np.float64)
    return values, X.shape[0] - len(values)


def _median(values: Floats, absent_zeros: int) -> float:
    known = values[~np.isnan(values)]
    known = np.concatenate([known, np.zeros(absent_zeros)]) if absent_zeros else known
    return float(np.median(known)) if len(known) else 0.0


def _indicator(X: Matrix, gaps: AnyArray, feature: int) -> AnyArray:
    """Return 1 in each row whose cell of a feature is missing, else 0."""
    if not is_sparse(X):
        return gaps[:, feature].astype(X.dtype)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[gaps & (X.indices == feature)]
    found = np.zeros(X.shape[0], dtype=X.dtype)
    found[rows] = 1
    return found


def _with_filled_cells(X: Any, gaps: AnyArray, fill: Floats) -> Matrix:
    filled: Any = X.copy()
    if is_sparse(X):
        filled.data[gaps] = fill[X.indices[gaps]]
    else:
        filled[gaps] = fill[np.nonzero(gaps)[1]]
    return filled  # type: ignore[no-any-return]
