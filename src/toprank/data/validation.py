"""The only place that checks arrays and numbers that a caller gave. (What only a file or a ranker can know is checked
there.)

Each function takes one thing as people have it (lists, frames, sparse matrices, any id type) and returns it as the
kernels want it (C-order float32/float64 or canonical CSR, float64 labels, int64 pointers), or raises `InputError`
with one line that names the row, the column or the query. Nothing is copied that is already in shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, get_args

import numpy as np

from .._typing import AnyArray, ArrayLike, Floats, Ints, Matrix, Seed
from ..errors import InputError
from .csr import as_csr, dense
from .csr import is_sparse as is_sparse
from .remote import RemoteMatrix

Missing = Literal["error", "zero", "keep"]
"""What a reader does with missing cells: refuse them, take them for 0, or keep them for the rule of a model."""


def as_matrix(X: Any, *, feature_names: Sequence[str] | None = None, missing: Missing = "error") -> Matrix:
    """Return X as C-order float32/float64 or canonical CSR, with every value finite.

    >>> as_matrix([[1, 2], [3, 4]]).dtype
    dtype('float64')
    >>> as_matrix([[1.0, float("nan")]], feature_names=["bm25", "age"])
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: X has NaN in row 0, column 1 ('age'): fill it in, or pass missing="zero"
    """
    return as_matrix_with_gaps(X, feature_names=feature_names, missing=missing)[0]


def as_matrix_with_gaps(
    X: Any, *, feature_names: Sequence[str] | None = None, missing: Missing = "keep"
) -> tuple[Matrix, bool]:
    """Return what `as_matrix` does, and whether it still has missing cells (NaN): only with missing="keep".

    >>> as_matrix_with_gaps([[1.0, float("nan")]])
    (array([[ 1., nan]]), True)
    """
    return _finite(as_rows(X), feature_names, missing)


def as_rows(X: Any) -> Matrix:
    """Return X in the form that `as_matrix` gives it, without reading its values."""
    return X if isinstance(X, RemoteMatrix) else as_csr(X) if is_sparse(X) else _as_dense(X)


def check_collected(X: Any) -> None:
    """Refuse a frame whose rows are not computed yet."""
    if type(X).__name__ == "LazyFrame":
        raise InputError("a LazyFrame holds no rows yet: call .collect() on it (toprank.read_table takes it as it is)")


def _as_dense(X: Any) -> AnyArray:
    check_collected(X)
    array = _unmasked(X, "X")
    if array.dtype == object and hasattr(X, "to_numpy"):  # a frame with empty cells (pandas' NA) among its numbers
        with suppress(TypeError, ValueError):
            array = X.to_numpy(dtype=np.float64, na_value=np.nan)
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: X must be real")
    if array.ndim != 2:
        raise InputError(
            f"X must have two dimensions (documents × features), got shape {array.shape}. Reshape your data with "
            "X.reshape(-1, 1) for one feature or X.reshape(1, -1) for one document"
        )
    if array.dtype not in (np.float32, np.float64):
        try:
            array = array.astype(np.float64)
        except ValueError as error:
            raise InputError(f"X must hold numbers: {_text_column(X, array) or error}") from None
        except TypeError as error:  # scikit-learn's contract: not a number at all is a TypeError
            raise TypeError(f"X must hold numbers: {error}") from None
    return np.ascontiguousarray(array)


def _text_column(X: Any, array: AnyArray) -> str:
    """Name the first column that holds text, with how many values it has and what to do; "" where there is none."""
    for j in range(array.shape[1]):
        try:
            array[:, j].astype(np.float64)
        except (TypeError, ValueError):
            names = getattr(X, "columns", None)
            cells = array[:, j].tolist()
            found = distinct_text(cells)
            return "" if not found else f"{_name_column(j, None if names is None else list(names))} holds {found}"
    return ""


def distinct_text(cells: Sequence[Any]) -> str:
    """Say how many different words the cells of a column hold, and how they become numbers; "" where there is none.

    >>> distinct_text(["red", "blue", None, "red", "2"])
    "text, 2 different values ('red', 'blue'): encode them as numbers (a column of 0 and 1 for each, as
    pandas.get_dummies makes them), or leave the column out"
    """
    words = list(dict.fromkeys(c for c in cells if isinstance(c, str) and c.strip() and not is_number(c)))
    if not words:
        return ""
    shown = ", ".join(map(repr, words[:3])) + (", …" if len(words) > 3 else "")
    what = f"{len(words):,} different values" if len(words) > 1 else "1 value"
    if len(words) > MOST_ENCODED:
        return f"text, {what} ({shown}), too many for a column each: leave the column out, or count its words"
    way = "a column of 0 and 1 for each, as pandas.get_dummies makes them"
    return f"text, {what} ({shown}): encode them as numbers ({way}), or leave the column out"


MOST_ENCODED = 50
"""Values of a column of text up to which a column for each of them is a way to make numbers of it."""


def _finite(matrix: Matrix, feature_names: Sequence[str] | None, missing: Missing) -> tuple[Matrix, bool]:
    check_choice(get_args(Missing), missing=missing)
    values = matrix.data if is_sparse(matrix) else dense(matrix)
    if _squares_are_finite(values) or _sum_is_finite(values):
        return matrix, False
    bad = ~np.isfinite(values) if missing == "error" else np.isinf(values)
    if bad.any():
        raise InputError(_name_cell(matrix, int(np.flatnonzero(bad)[0]), feature_names))
    if missing == "zero" and np.isnan(values).any():
        matrix = matrix.copy()
        filled = matrix.data if is_sparse(matrix) else matrix
        filled[np.isnan(filled)] = 0
    return matrix, missing == "keep" and bool(np.isnan(values).any())


def _name_cell(matrix: Any, flat: int, feature_names: Sequence[str] | None) -> str:
    if is_sparse(matrix):
        row = int(np.searchsorted(matrix.indptr, flat, side="right")) - 1
        column, value = int(matrix.indices[flat]), matrix.data[flat]
    else:
        row, column = (int(i) for i in np.unravel_index(flat, matrix.shape))
        value = matrix[row, column]
    what, remedy = ("NaN", 'fill it in, or pass missing="zero"') if np.isnan(value) else ("infinity", "clip or drop it")
    return f"X has {what} in row {row}, {_name_column(column, feature_names)}: {remedy}"


def _name_column(column: int, feature_names: Sequence[str] | None) -> str:
    return f"column {column}" + ("" if feature_names is None else f" ({feature_names[column]!r})")


def as_labels(y: ArrayLike, n_docs: int | None = None) -> Floats:
    """Return one finite float64 label per document.

    >>> as_labels([0, 1, 2])
    array([0., 1., 2.])
    >>> as_labels([0, 1], n_docs=3)
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: y has 2 labels for 3 documents
    """
    if y is None:
        raise InputError("y is missing: requires y to be passed, but the target y is None")
    labels = _real_numbers(y, "y")
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InputError(f"y must have one dimension, got shape {labels.shape}")
    try:
        labels = labels.astype(np.float64, copy=False)
    except (ValueError, TypeError):
        bad = next((i for i, v in enumerate(labels) if not is_number(v)), 0)
        raise InputError(f"y must hold numbers: row {bad} is {labels[bad]!r}") from None
    if n_docs is not None and len(labels) != n_docs:
        raise InputError(f"y has {len(labels)} labels for {n_docs} documents")
    if not _sum_is_finite(labels):
        remedy = "every document needs a finite grade"
        _refuse_first(~np.isfinite(labels), lambda i: f"y has {labels[i]} in row {i}: {remedy}")
    return np.ascontiguousarray(labels)


def check_grades(y: Floats, place: Callable[[int], str] = "row {}".format) -> None:
    """Refuse negative labels where labels are grades.

    >>> check_grades(np.array([1.0, -1.0]))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: y has the negative grade -1 in row 1: grades start at 0 (map -1/+1 labels to 0/1)
    """
    remedy = "grades start at 0 (map -1/+1 labels to 0/1)"
    _refuse_first(y < 0, lambda i: f"y has the negative grade {y[i]:g} in {place(i)}: {remedy}")


def check_largest_grade(y: Floats, largest: float, remedy: str, place: Callable[[int], str] = "row {}".format) -> None:
    """Refuse grades above the largest that a measure takes.

    >>> check_largest_grade(np.array([1.0, 5.0]), 4, "err takes grades up to max_grade=4, set it higher")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: y has the grade 5 in row 1: err takes grades up to max_grade=4, set it higher
    """
    _refuse_first(y > largest, lambda i: f"y has the grade {y[i]:g} in {place(i)}: {remedy}")


def check_informative(informative: AnyArray, n_docs: int | None = None, also: str = "") -> None:
    """Refuse data in which no query has documents of different grade.

    >>> check_informative(np.array([False, False]))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: no query is informative: in each of them all documents have the same grade
    """
    if not informative.any():
        only = " (one sample, and a single document has no order)" if n_docs == 1 else ""
        raise InputError(f"no query is informative{only}: in each of them all documents have the same grade{also}")


LARGEST_GRADE = 1000.0
"""The largest grade: the gains 2^grade − 1 of eight million documents still add up to a number."""

LARGEST = 1e150
"""The squares of larger features do not fit into a number."""


def check_magnitude(
    X: Matrix, feature_names: Sequence[str] | None = None, place: Callable[[int], str] | None = None
) -> None:
    """Refuse features whose squares do not fit into a number, by their column; one pass, without a temporary array.

    `place` says where a row of X stands.

    >>> check_magnitude(np.array([[1.0, 1e200]]), ["age", "views"])
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: X has 1e+200 in column 1 ('views'): numbers beyond 1e+150 overflow, scale the column down
    """
    values = X.data if is_sparse(X) else X.reshape(-1)
    if values.dtype == np.float32:  # whose largest number is 3.4e38
        return
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.dot(values, values)):
            return
        heights = abs(X).max(axis=0).toarray() if is_sparse(X) else np.maximum(X.max(axis=0), -X.min(axis=0))
    heights = heights.ravel()
    if (heights > LARGEST).any():
        column = int(heights.argmax())
        values = X[:, [column]].toarray().ravel() if is_sparse(X) else dense(X)[:, column]
        where = "" if place is None else f", {place(int(np.abs(values).argmax()))}"
        raise InputError(
            f"X has {heights[column]:.6g} in {_name_column(column, feature_names)}{where}: numbers beyond {LARGEST:g} "
            "overflow, scale the column down"
        )


UNEVEN = 1e4
"""From here on the ranges of features differ by orders of magnitude."""


def unevenness(X: Matrix) -> float:
    """Return how many times larger the largest column is than the median one, max |x| of each, by 4,096 rows.

    >>> unevenness(np.array([[1.0, 2.0, 4e6, 0.0], [1.0, -2.0, 0.0, 0.0]]))
    2000000.0
    """
    part = X[:: max(1, X.shape[0] >> 12)] if X.shape[0] else X
    if is_sparse(part):  # only of the columns that hold something
        columns, place = np.unique(part.indices, return_inverse=True)
        heights = np.zeros(len(columns))
        np.maximum.at(heights, place, np.abs(part.data))
    else:
        heights = np.abs(part).max(axis=0, initial=0.0).astype(np.float64)
    heights = heights[heights > 0]
    return float(heights.max() / np.median(heights)) if len(heights) else 1.0


def as_scores(scores: ArrayLike, n_docs: int | None = None) -> Floats:
    """Return one float64 score per document; NaN has no place in an order, so it is refused."""
    wanted = f"scores must be numbers, one per document, or a fitted model, got {type(scores).__name__}"
    array = _floats(scores, "scores", wanted)
    if array.ndim != 1:
        raise InputError(f"scores must have one dimension, got shape {array.shape}")
    if n_docs is not None and len(array) != n_docs:
        raise InputError(f"scores has {len(array)} values for {n_docs} documents")
    if not _sum_is_finite(array):  # infinite scores are allowed
        _refuse_first(np.isnan(array), lambda i: f"scores has NaN in row {i}: a NaN has no place in an order")
    return array


def as_vector(values: Any, n_features: int, name: str) -> Floats:
    """Return one finite weight per feature.

    >>> as_vector([1.0], 2, "the comparator")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: the comparator must have 2 weights, got shape (1,)
    """
    array = _floats(values, name, f"{name} must hold {n_features} numbers, got {type(values).__name__}")
    if array.shape != (n_features,):
        raise InputError(f"{name} must have {n_features} weights, got shape {array.shape}")
    _refuse_first(~np.isfinite(array), lambda i: f"{name} has {array[i]} as weight {i}: weights must be finite")
    return array


def as_ptr(ptr: ArrayLike, n_docs: int) -> Ints:
    """Return query boundaries: 0 = ptr[0] ≤ ptr[1] ≤ … ≤ ptr[-1] = n_docs."""
    array = np.asarray(ptr)
    if array.ndim != 1 or len(array) < 1 or array.dtype.kind not in "iu":
        raise InputError("ptr must be a one-dimensional array of integers, one longer than the number of queries")
    array = np.ascontiguousarray(array, dtype=np.int64)
    if array[0] != 0 or array[-1] != n_docs or (np.diff(array) < 0).any():
        raise InputError(f"ptr must rise from 0 to the number of documents ({n_docs}), got {array[0]} to {array[-1]}")
    return array


def as_query_weight(query_weight: ArrayLike | None, n_queries: int) -> Floats | None:
    """Return one finite weight ≥ 0 per query, or None for equal weights."""
    return None if query_weight is None else _weights(query_weight, n_queries, "query_weight", "query")


def as_doc_weight(doc_weight: ArrayLike | None, n_docs: int) -> Floats | None:
    """Return one finite weight ≥ 0 per document, or None for equal weights."""
    return None if doc_weight is None else _weights(doc_weight, n_docs, "doc_weight", "document")


def as_sample_weight(sample_weight: ArrayLike, n_docs: int) -> Floats:
    """Return one finite weight ≥ 0 per row, as scikit-learn hands it on."""
    return _weights(sample_weight, n_docs, "sample_weight", "document")


def as_weights(values: ArrayLike, name: str) -> Floats:
    """Return what holds numbers as an array of them, whatever its shape."""
    return _floats(values, name, f"{name} must hold numbers: {{}}")


def _weights(values: ArrayLike, count: int, name: str, what: str) -> Floats:
    weight = as_weights(values, name)
    if weight.shape != (count,):
        raise InputError(f"{name} must have one weight per {what} ({count}), got shape {weight.shape}")
    place = "in row" if what == "document" else "for query"
    bad = ~(np.isfinite(weight) & (weight >= 0))
    _refuse_first(bad, lambda i: f"{name} has {weight[i]} {place} {i}: weights are finite and not negative")
    return weight


def as_qid(qid: Any, n_docs: int) -> AnyArray:
    """Return one query id per document, none of them missing.

    >>> as_qid([7, float("nan")], 2)
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: qid is missing (NaN) in row 1
    """
    ids = _as_written(qid)
    if ids.ndim != 1 or len(ids) != n_docs:
        raise InputError(f"qid must have one id per document ({n_docs}), got shape {ids.shape}")
    none: Any = False
    if ids.dtype.kind == "O":
        none = np.array([v is None for v in ids], dtype=bool)
        odd = np.array([type(v).__hash__ is None for v in ids], dtype=bool)
        _refuse_first(odd, lambda i: f"qid is a {type(ids[i]).__name__} in row {i}: an id is text, a number or a date")
    if ids.dtype.kind in "mMfO":
        missing = np.asarray(ids != ids, dtype=bool) | none
        _refuse_first(missing, lambda i: f"qid is missing ({'NaN' if ids.dtype.kind == 'f' else ids[i]}) in row {i}")
    return ids


def _as_written(qid: Any) -> AnyArray:
    """Return ids as an array that keeps 1 and "1" apart, which numpy would make the same text."""
    ids = _unmasked(qid, "qid")
    if ids.dtype.kind in "US" and isinstance(qid, (list, tuple)) and len({type(one) for one in qid}) > 1:
        ids = np.empty(len(qid), dtype=object)
        ids[:] = qid
    return ids


def as_query_ids(query_ids: ArrayLike, n_queries: int) -> AnyArray:
    """Return one id per query."""
    return _ids(query_ids, n_queries, "query_ids", "query")


def as_order(order: ArrayLike | None, n_docs: int) -> Ints | None:
    """Return the caller's row behind each of ours, every row once, or None for the same order."""
    if order is None:
        return None
    rows = np.asarray(order)
    if rows.shape == (n_docs,) and rows.dtype.kind in "iu":
        rows = rows.astype(np.int64, copy=False)
        seen = np.zeros(n_docs, dtype=bool)
        seen[rows[(rows >= 0) & (rows < n_docs)]] = True
        if seen.all():
            return rows
    raise InputError(f"order must hold each row of {n_docs} documents once")


def as_feature_names(names: Sequence[str] | None, n_features: int) -> tuple[str, ...] | None:
    """Return one distinct name per feature, or None."""
    if names is None:
        return None
    result = tuple(str(name) for name in names)
    if len(result) != n_features:
        raise InputError(f"feature_names has {len(result)} names for {n_features} features")
    if len(set(result)) != len(result):
        twice = next(name for name in result if result.count(name) > 1)
        raise InputError(f"feature_names has {twice!r} more than once")
    return result


def as_doc_ids(doc_ids: ArrayLike | None, n_docs: int) -> AnyArray | None:
    """Return one id per document, or None."""
    return None if doc_ids is None else _ids(doc_ids, n_docs, "doc_ids", "document")


def _ids(values: ArrayLike, count: int, name: str, what: str) -> AnyArray:
    ids = np.asarray(values)
    if ids.shape != (count,):
        raise InputError(f"{name} must have one id per {what} ({count}), got shape {ids.shape}")
    return ids


def check_positive(**values: float) -> None:
    """Refuse a hyper-parameter that is not a finite number above 0, by its name.

    >>> check_positive(eta=-1)
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: eta must be a number above 0, got -1
    """
    _check_each(values, lambda value: _is_real(value) and 0 < value < np.inf, "a number above 0")


def check_not_negative(**values: float) -> None:
    """Refuse a hyper-parameter that is not a finite number ≥ 0, by its name."""
    _check_each(values, lambda value: _is_real(value) and 0 <= value < np.inf, "a number not below 0")


def check_finite(**values: float) -> None:
    """Refuse a hyper-parameter that is not a finite number, by its name."""
    _check_each(values, lambda value: _is_real(value) and -np.inf < value < np.inf, "a finite number")


def check_fraction(**values: float) -> None:
    """Refuse a hyper-parameter that is not a number between 0 and 1, both excluded, by its name."""
    _check_each(values, lambda value: _is_real(value) and 0 < value < 1, "a number between 0 and 1")


def check_share(**values: float) -> None:
    """Refuse a hyper-parameter that is not a number from 0 to 1, by its name."""
    _check_each(values, lambda value: _is_real(value) and 0 <= value <= 1, "a share between 0 and 1")


def check_count(**values: int) -> None:
    """Refuse a hyper-parameter that is not a whole number ≥ 1, by its name."""
    _check_each(values, lambda value: is_whole(value) and bool(value >= 1), "a whole number of at least 1")


def is_whole(value: Any) -> bool:
    """Say whether this is a whole number, and no truth value."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def as_generator(random_state: Seed) -> np.random.Generator:
    """Return the generator of a seed; a generator stays what it is, and None is another one each time."""
    seed = random_state
    if seed is not None and not isinstance(seed, np.random.Generator | np.random.RandomState):
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        _check_each({"random_state": seed}, lambda seed: whole and seed >= 0, "a whole number not below 0")
    return np.random.default_rng(seed)


def as_seed(random_state: Seed) -> int:
    """Return the number that a seed is, or one that a generator draws.

    >>> as_seed(7), as_seed(np.random.RandomState(0)) == as_seed(np.random.RandomState(0))
    (7, True)
    """
    rng = as_generator(random_state)
    return int(random_state) if isinstance(random_state, int | np.integer) else int(rng.integers(2**31))


def check_choice(choices: Sequence[object], **values: object) -> None:
    """Refuse a hyper-parameter that is not one of the choices, by its name.

    >>> check_choice(("avg", "max"), variant="mean")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: variant must be one of 'avg', 'max', got 'mean'
    """
    _check_each(values, choices.__contains__, f"one of {', '.join(map(repr, choices))}")


def _check_each(values: Mapping[str, Any], good: Callable[[Any], bool], wanted: str) -> None:
    for name, value in values.items():
        if not good(value):
            raise InputError(f"{name} must be {wanted}, got {value!r}")


def _unmasked(values: Any, what: str) -> AnyArray:
    """Return values as an array; masked cells are refused, since numpy would take the numbers behind the mask."""
    if np.ma.is_masked(values):
        raise InputError(f"{what} has masked cells: fill them in with .filled(...), or leave them out")
    try:
        return np.asarray(values)
    except Exception as error:  # rows of unequal length, or a package that cannot make an array of what it holds
        raise InputError(f"{what} cannot be read as an array: {error}") from None


def _real_numbers(values: Any, what: str) -> AnyArray:
    """Return values as an array that is no complex one, whose imaginary part would be dropped, and holds no dates."""
    array = _unmasked(values, what)
    if array.dtype.kind in "cmMV":
        raise InputError(f"{what} must hold real numbers, it holds {array.dtype}")
    return array


def _floats(values: Any, what: str, otherwise: str) -> Floats:
    """Return values in float64; `otherwise` is said of what holds no numbers, with the error in place of {}."""
    array = _real_numbers(values, what)
    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(otherwise.format(error)) from None


def _sum_is_finite(values: AnyArray) -> bool:
    """Say whether the sum is finite, and with it every term: no temporary array."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


def _squares_are_finite(values: AnyArray) -> bool:
    """Say the same of the squares, which BLAS adds up twice as fast; its threads then wait busily, so only of X."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.vdot(values, values)))


def _is_real(value: Any) -> bool:
    """Say whether this is a number itself, and not a text that could be read as one."""
    return not isinstance(value, (str, bytes)) and is_number(value)


def is_number(value: Any) -> bool:
    """Say whether this is a number, or a text that can be read as one."""
    with suppress(TypeError, ValueError):
        return not isinstance(value, bool) and isinstance(float(value), float)
    return False


def _refuse_first(bad: AnyArray, message: Callable[[int], str]) -> None:
    if bad.any():
        raise InputError(message(int(np.flatnonzero(bad)[0])))
