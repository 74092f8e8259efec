"""Two classes out of any labels that a caller has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from .._typing import AnyArray, ArrayLike, Floats
from ..errors import InputError
from . import validation
from .dataset import QueryDataset


@dataclass(frozen=True)
class TwoClasses:
    """Which labels are positive: one of a pair, one against all the rest, or every grade above 0.

    >>> coding = TwoClasses.of(["ham", "spam", "ham"])
    >>> coding, coding.encode(["spam", "ham"]).tolist()
    (TwoClasses(kind='pair', negative='ham', positive='spam'), [1.0, 0.0])
    >>> TwoClasses.of([1, 4, 7], pos_label=4).encode([4, 5]).tolist()
    [1.0, 0.0]
    """

    kind: Literal["pair", "rest", "grades"]
    negative: Any
    positive: Any

    @classmethod
    def of(cls, y: ArrayLike, pos_label: Any = None, classes: ArrayLike | None = None) -> TwoClasses:
        """Read the coding from the labels: of two, the larger is positive, unless `pos_label` names it.

        More than two labels are grades if they are numbers that start at 0, and otherwise need `pos_label`. `classes`
        declares both labels where y (the first rows of a stream, say) need not hold them.
        """
        labels = _column(y)
        if classes is not None:
            declared = _distinct(_column(classes))
            if len(declared) != 2:
                raise InputError(f"classes must be the two labels, got {len(declared)}")
            return _pair(declared, pos_label)
        if pos_label is not None and not (labels == pos_label).any():
            raise InputError(f"pos_label {pos_label!r} is not among the labels of y")
        distinct = _distinct(labels)
        if len(distinct) == 2:
            return _pair(distinct, pos_label)
        if pos_label is not None and len(distinct) > 2:
            return cls("rest", False, _scalar(pos_label))
        if len(distinct) > 2 and labels.dtype.kind in "fiu" and distinct[0] == 0:
            return cls("grades", 0, 1)
        if len(distinct) == 1:
            raise InputError(
                f"y has one class only ({_scalar(distinct[0])!r}): both are needed, or classes=[one, other] in "
                "partial_fit (of which the larger is positive, unless pos_label names it)"
            )
        raise InputError(f"y has {len(distinct)} labels: name the positive one with pos_label")

    @classmethod
    def of_first_rows(cls, y: ArrayLike, pos_label: Any, classes: ArrayLike | None) -> TwoClasses:
        """Read the coding from the first rows of a stream, which may hold one class: 0 and 1 need no declaration."""
        labels = _column(y)
        if classes is None and labels.dtype.kind in "fiub" and np.isin(labels, (0, 1)).all():
            zero_one = np.array([0, 1]).astype(labels.dtype)
            return _pair(zero_one, pos_label)
        if classes is None and pos_label is not None:
            return cls("rest", False, _scalar(pos_label))
        return cls.of(y, pos_label, classes)

    @property
    def classes(self) -> AnyArray:
        """Negative and positive label; False and True where one label stands against all the rest."""
        return np.array([False, True] if self.kind == "rest" else [self.negative, self.positive])

    def encode(self, y: ArrayLike) -> Floats:
        """Return 1 for positive and 0 for negative rows; a label that is neither is refused, by its row."""
        labels = _column(y)
        if self.kind == "grades":
            grades = validation.as_labels(labels)
            validation.check_grades(grades)
            return (grades > 0).astype(np.float64)
        positive = labels == self.positive
        if self.kind == "pair":
            unknown = ~(positive | (labels == self.negative))
            if np.any(unknown):
                row = int(np.flatnonzero(unknown)[0])
                raise InputError(
                    f"y has the label {_scalar(labels[row])!r} in row {row}: known are {self.negative!r} and "
                    f"{self.positive!r}"
                )
        return np.asarray(positive, dtype=np.float64)

    def recode(self, data: QueryDataset) -> QueryDataset:
        """Return the data set with labels 0 and 1; X is shared."""
        return replace(data, y=self.encode(data.y), mapped=None)


def _column(y: ArrayLike) -> AnyArray:
    """Return labels as one dimension; numbers are checked to be finite, others not to be missing."""
    if y is None:
        raise InputError("y is missing: requires y to be passed, but the target y is None")
    labels = np.asarray(y)
    if labels.dtype.kind == "c":
        raise InputError("Complex data not supported: labels must be real")
    if labels.dtype.kind == "f":
        check_one_label(labels)
        return validation.as_labels(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    check_one_label(labels)
    if labels.dtype.kind == "O":
        plain = np.array(labels.tolist())
        if plain.shape == labels.shape and plain.dtype.kind in "fiub":
            return _column(plain)
        for row, label in enumerate(labels):
            if label is None or label != label:
                raise InputError(f"y is missing ({label}) in row {row}")
    return labels


def check_one_label(labels: AnyArray) -> None:
    """Refuse several labels for a row."""
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise InputError(f"y has {labels.shape[1]} labels for each row, where one is needed")
    if labels.ndim not in (1, 2):
        raise InputError(f"y must have one dimension, got shape {labels.shape}")


@dataclass(frozen=True, eq=False)
class Indicator:
    """Several labels a row: a column of 0 and 1 for each, 1 where the row has it; dense or sparse.

    >>> Indicator.of([[1, 0], [1, 1]]).column(1).tolist(), Indicator.of([1, 0])
    ([0.0, 1.0], None)
    """

    columns: Any

    @classmethod
    def of(cls, y: Any) -> Indicator | None:
        """Return the labels of a y with several columns, or a sparse one; None for one label a row."""
        if validation.is_sparse(y):
            columns: Any = y.tocsc()
            values = columns.data
        else:
            columns = values = np.asarray(y)
            if columns.ndim != 2 or columns.shape[1] == 1:
                return None
        if columns.shape[1] == 0:
            raise InputError(f"y has no labels: its shape is {columns.shape}")
        known = np.isin(values, (0, 1)) if values.dtype.kind in "biuf" else np.zeros(values.shape, dtype=bool)
        if not known.all():
            label = _scalar(values[~known][0])
            raise InputError(f"y has several labels a row, so it must hold 0 and 1 alone, and it holds {label!r}")
        return cls(columns)

    @property
    def count(self) -> int:
        """How many labels there are."""
        return int(self.columns.shape[1])

    def column(self, label: int) -> Floats:
        """Return 1 for the rows that have the label, 0 for the others."""
        found = self.columns[:, [label]]
        dense: AnyArray = found.toarray() if validation.is_sparse(found) else found
        return dense.ravel().astype(np.float64)


def _distinct(labels: AnyArray) -> AnyArray:
    """Return the distinct labels, ascending; two numbers are found without sorting."""
    if labels.dtype.kind in "fiub" and len(labels):
        low, high = labels.min(), labels.max()
        if ((labels == low) | (labels == high)).all():
            return np.array([low]) if low == high else np.array([low, high])
    try:
        return np.unique(labels)
    except TypeError:
        raise InputError("y mixes labels of different types: make them all text or all numbers") from None


def _pair(distinct: AnyArray, pos_label: Any) -> TwoClasses:
    low, high = (_scalar(label) for label in distinct)
    if pos_label is None or pos_label == high:
        return TwoClasses("pair", low, high)
    if pos_label == low:
        return TwoClasses("pair", high, low)
    raise InputError(f"pos_label {pos_label!r} is not one of the labels {low!r} and {high!r}")


def _scalar(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label
