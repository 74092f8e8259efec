"""Weights of queries, however they come: by id, one per query, or one per row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats, Ints
from ..errors import InputError


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
    try:
        values = np.asarray(given)
    except Exception:  # a package cannot make an array of what it holds: the check of weights says so
        return given
    if values.ndim != 1 or len(values) != n_docs or n_docs == n_queries:
        return given
    rows = values if order is None else values[order]
    first = rows[ptr[:-1]]
    uneven = np.flatnonzero(rows != np.repeat(first, np.diff(ptr)))
    if len(uneven):
        query = query_ids[int(np.searchsorted(ptr, uneven[0], side="right")) - 1]
        raise InputError(
            f"the weights of rows must be the same in all rows of a query, and those of query {query} differ: lists "
            "are weighed as a whole (documents by doc_weight)"
        )
    return first


def _by_id(weights: Mapping[Any, Any], query_ids: AnyArray) -> Floats:
    """Return the weights of these queries; ids of files are text, so 7 and "7" are one id."""
    by_text = {str(query): weight for query, weight in weights.items()}
    queries = query_ids.tolist()
    unknown = next((query for query in queries if str(query) not in by_text), None)
    if unknown is not None:
        raise InputError(f"query_weight has no weight for query {unknown}")
    return np.array([by_text[str(query)] for query in queries], dtype=np.float64)
