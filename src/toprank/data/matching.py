"""Columns by name: the one rule by which a data set's columns are those that a model wants."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from .._suggest import did_you_mean
from ..errors import InputError
from .dataset import QueryDataset
from .remote import RemoteMatrix


def match_columns(
    data: QueryDataset, n_features: int, names: Sequence[str] | None, who: str, *, stacklevel: int = 3
) -> QueryDataset:
    """Return the data set with the columns that a model wants, in its order; `who` names the model in messages.

    Names on both sides: by name; other columns are left out, which a warning says, and a missing one is refused. No
    names on one side: by position, which a warning says.

    >>> data = QueryDataset.from_arrays([[9.0, 1.0]], [0], feature_names=["age", "bm25"])
    >>> match_columns(data, 2, ["bm25", "age"], "ListNet").X.tolist()
    [[1.0, 9.0]]
    """
    if names is not None and data.feature_names is not None:
        return _by_name(data, tuple(names), data.feature_names, who, stacklevel + 1)
    if data.n_features != n_features:
        raise InputError(
            f"the data set has {data.n_features} features, but {who} is expecting {n_features} features as input"
        )
    if names is not None or data.feature_names is not None:
        unnamed = "the data set" if data.feature_names is None else who
        warnings.warn(f"features are matched by position: {unnamed} has no names for them", stacklevel=stacklevel)
    return data


def _by_name(
    data: QueryDataset, wanted: tuple[str, ...], given: tuple[str, ...], who: str, stacklevel: int
) -> QueryDataset:
    if wanted == given:
        return data
    place = {name: column for column, name in enumerate(given)}
    absent = [name for name in wanted if name not in place]
    if absent:
        others = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
        raise InputError(
            f"the data set has no feature {absent[0]!r}{others}{did_you_mean(absent[0], given)}, and {who} learned "
            "from it"
        )
    if isinstance(data.X, RemoteMatrix):
        at = next(j for j, name in enumerate(wanted) if given[j] != name)
        raise InputError(
            f"feature {at} is {given[at]!r} in the data set but was {wanted[at]!r} during fit: name the features in "
            "the model's order where the files are read"
        )
    extra = [name for name in given if name not in wanted]
    if extra:
        listed = ", ".join(map(repr, extra[:5])) + (f" and {len(extra) - 5} more" if len(extra) > 5 else "")
        warnings.warn(
            f"{who} did not learn from {listed}: left out, and the other features are matched by name",
            stacklevel=stacklevel,
        )
    return data.with_columns(np.array([place[name] for name in wanted]))
