"""Weights of queries, however they come: by id, one per query, or one per row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..errors import InputError
from . import validation


def weight_of_queries(given: Any, query_ids: AnyArray, ptr: Ints, order: Ints | None) -> Any:
    """Return one weight per query, in the order of `query_ids`, from whatever a caller has.

    A mapping, or a Series whose index holds the query ids, is taken by id. As many values as rows are weights of rows,
    which must be the same in all rows of a query. As many values as queries are taken in their order of appearance.

    >>> ids, ptr = np.array(["b", "a"]), np.array([0, 2, 3])
    >>> weight_of_queries({"a": 1.0, "b": 2.0}, ids, ptr, None)
    array([2., 1.])
    >>> weight_of_queries([2.0, 2.0, 1.0], ids, ptr, None)
    array([2., 1.])
    """
    if given is None:
        return None
    n_docs, n_queries = int(ptr[-1]), len(query_ids)
    if isinstance(given, Mapping):
        return _by_id(dict(given), query_ids)
    if hasattr(given, "index") and hasattr(given, "to_dict"):  # a Series of pandas
        index = given.index.tolist()
        by_id = dict(zip(index, given.tolist(), strict=True))
        of_rows = len(index) == n_docs and (n_docs != n_queries or index == list(range(n_docs)))
        known = {str(query) for query in by_id}
        if not of_rows and len(by_id) == len(index) and all(str(query) in known for query in query_ids.tolist()):
            return _by_id(by_id, query_ids)
    values = validation.as_weights(given, "query_weight")
    if values.ndim != 1 or len(values) != n_docs or n_docs == n_queries:
        return values
    return _same_in_lists("query_weight", values, query_ids, ptr, order)


def weight_of_rows(given: Any, query_ids: AnyArray, ptr: Ints, order: Ints | None) -> Floats:
    """Return one weight per query from scikit-learn's `sample_weight`, which has one per row of the caller.

    >>> weight_of_rows([2.0, 1.0, 2.0], np.array(["b", "a"]), np.array([0, 2, 3]), np.array([0, 2, 1])).tolist()
    [2.0, 1.0]
    """
    values = validation.as_sample_weight(given, int(ptr[-1]))
    if not values.any():
        raise InputError("sample_weight is zero in all rows: no query has a weight, so there is nothing to go by")
    return _same_in_lists("sample_weight", values, query_ids, ptr, order)


def _same_in_lists(name: str, values: Floats, query_ids: AnyArray, ptr: Ints, order: Ints | None) -> Floats:
    """Return one weight per query from those of the caller's rows, which must be the same in all rows of a query."""
    rows = values if order is None else values[order]
    first = rows[ptr[:-1]]
    every = np.repeat(first, np.diff(ptr))
    uneven = np.flatnonzero((rows != every) & ~(np.isnan(rows) & np.isnan(every)))
    if len(uneven):
        query = query_ids[int(np.searchsorted(ptr, uneven[0], side="right")) - 1]
        raise InputError(
            f"{name} differs inside query {query}, and a query is weighed as a whole: give all its rows one weight, or "
            "weigh its documents by doc_weight (QueryDataset.from_arrays)"
        )
    return first


def _by_id(weights: Mapping[Any, Any], query_ids: AnyArray) -> Floats:
    """Return the weights of these queries; ids of files are text, so 7 and "7" are one id."""
    by_text = {str(query): weight for query, weight in weights.items()}
    queries = query_ids.tolist()
    unknown = next((query for query in queries if str(query) not in by_text), None)
    if unknown is not None:
        raise InputError(f"query_weight has no weight for query {unknown}")
    return validation.as_weights([by_text[str(query)] for query in queries], "query_weight")
