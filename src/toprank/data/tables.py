"""Judged queries from tables: Parquet, CSV, pandas, polars and Arrow, one row per document."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from .._suggest import did_you_mean
from .._typing import AnyArray, Ints, Matrix
from ..errors import InputError, naming, needed
from . import validation
from ._columns import METADATA, Column, open_columns
from ._memory import physical_memory
from ._text import create_bytes
from .csr import as_csr, dense
from .dataset import QueryDataset
from .grouping import bounds_of, group_rows, in_order
from .ids import id_text

_BLOCK_ROWS, _BLOCK_COLUMNS = 4096, 16
"""X is filled in blocks: each of its cache lines is written once, and few columns are held at a time."""

_EMPTY = "the table is empty: at least one row (a document) is required"


def read_table(
    source: Any,
    label: str | None = "label",
    qid: str | None = "query",
    *,
    doc_id: str | None = None,
    query_weight: str | None = None,
    doc_weight: str | None = None,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    sep: str | None = None,
    missing: validation.Missing = "error",
) -> QueryDataset:
    """Read a table with one document per row: a Parquet or CSV file, or a pandas, polars or Arrow table.

    `label`, `qid`, `doc_id`, `query_weight` and `doc_weight` name columns (columns `doc_id`, `doc_weight` and `weight`
    are taken as such, the last with a warning); `label=None` means that nothing is graded (all 0; a column `label` is
    no feature), `qid=None` that all rows are one list, and a weight must be the same in all rows of its query. Query
    and document ids are text, as written in a text table (`007` is not `7`), and numbers of other tables become their
    text. The
    features are the columns of `features`, or else all remaining ones but those of `exclude`. X is float32 if every
    feature is, else float64, and is assembled once, already grouped by query. CSV may be compressed (.gz, .bz2, .xz,
    .zst); between its cells stands `sep`, or else the tab, semicolon or comma of its first line. Parquet files of
    `write_parquet` also say which columns hold document ids and weights.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "train.csv")
    ...     _ = path.write_text("query,label,bm25,age\\nq1,1,2.5,10\\nq2,0,1.5,20\\nq1,0,0.5,30\\n")
    ...     data = read_table(path)
    >>> data.feature_names, data.query_ids.tolist(), data.X.tolist()
    (('bm25', 'age'), ['q1', 'q2'], [[2.5, 10.0], [0.5, 30.0], [1.5, 20.0]])
    """
    validation.check_choice(get_args(validation.Missing), missing=missing)
    ids = {name for name in (qid, doc_id or "doc_id") if name is not None and name not in (features or ())}
    columns, stored, origin = open_columns(source, sep, as_written=ids)
    with naming(origin.file) if origin.file is not None else nullcontext():
        if not columns:
            raise InputError("the table has no columns")
        if label is None and "label" in columns and qid != "label":
            exclude = [*exclude, "label"]
        named = {"label": label, "qid": qid, "doc_id": doc_id, "query_weight": query_weight, "doc_weight": doc_weight}
        roles, features, left_out = column_roles(columns, stored, named, features, exclude)
        column = {role: columns[name] for role, name in roles.items()}
        chosen = [columns[name] for name in features]
        _check_numeric(chosen)
        labels = np.zeros(len(chosen[0].values())) if label is None else _numbers(column["label"])
        if not len(labels):
            raise InputError(_EMPTY)
        gaps: dict[str, int] = {}
        ptr, query_ids, order = group_rows(None if qid is None else column["qid"].ids(), len(labels))
        X = _assemble(chosen, len(labels), order, missing, gaps, sparse=stored.get("sparse", False))
        return QueryDataset(
            X=X,
            y=in_order(labels, order),
            ptr=ptr,
            query_ids=id_text(query_ids),
            feature_names=tuple(features) if stored.get("named", True) else None,
            doc_ids=in_order(column["doc_id"].ids(), order) if "doc_id" in roles else None,
            query_weight=_per_query(column["query_weight"], ptr, order) if "query_weight" in roles else None,
            doc_weight=in_order(_numbers(column["doc_weight"]), order) if "doc_weight" in roles else None,
            order=order,
            has_missing=missing == "keep" and bool(sum(gaps.values())),
            source=replace(
                origin, left_out=left_out, missing_cells={name: count for name, count in gaps.items() if count}
            ),
        )


_IDS = (
    "query",
    "query_id",
    "queryid",
    "qid",
    "document",
    "document_id",
    "documentid",
    "doc",
    "doc_id",
    "docid",
    "docno",
    "id",
)
"""Names of columns that are ids and no features, unless they are named among them."""

_MEANING = {
    "label": "grade",
    "qid": "query id",
    "doc_id": "document id",
    "query_weight": "weight of the queries",
    "doc_weight": "weight of the documents",
}


def column_roles(
    columns: Collection[str],
    notes: Mapping[str, Any],
    named: Mapping[str, str | None],
    features: Sequence[str] | None,
    exclude: Sequence[str],
) -> tuple[dict[str, str], list[str], dict[str, str]]:
    """Return which column has which role, the columns that are features, and those that are neither with the reason.

    `named` are the roles as the caller gave them, None where he did not; `notes` is what `write_parquet` noted.
    """
    roles = dict(named)
    for role in ("doc_id", "query_weight"):
        roles[role] = notes.get(role) if roles[role] is None else roles[role]
    chosen = (*(features or ()), *exclude)
    free = [name for name in columns if name not in (*roles.values(), *chosen)]
    if roles["doc_id"] is None and "doc_id" in free:
        roles["doc_id"] = "doc_id"
    roles["doc_weight"] = roles["doc_weight"] or _weight_column(free, bool(notes))
    found = {role: name for role, name in roles.items() if name is not None}
    for name in (*found.values(), *chosen):
        if name not in columns:
            known = ", ".join(map(repr, list(columns)[:20]))
            raise InputError(f"the table has no column {name!r}{did_you_mean(name, columns)}: its columns are {known}")
    for role, name in found.items():
        if name in (features or ()):
            raise InputError(f"column {name!r} is the {_MEANING[role]}, and cannot be a feature")
    others = [name for name in columns if name not in found.values()]
    if features is None:
        left_out = {name: "excluded" if name in exclude else "an id" for name in others if _is_left_out(name, exclude)}
        features = [name for name in others if name not in left_out]
    else:
        left_out = {name: "not among the features" for name in others if name not in features}
    if not features:
        ids = [name for name, why in left_out.items() if why == "an id"]
        but = f" ({ids[0]!r} looks like an id: name it among the features to use it as one)" if ids else ""
        raise InputError(f"no feature column is left beside {', '.join(map(repr, found.values()))}{but}")
    return found, list(features), left_out


def _is_left_out(name: str, exclude: Sequence[str]) -> bool:
    return name in exclude or name.lower() in _IDS


def _weight_column(free: Collection[str], ours: bool) -> str | None:
    """Return the column of the documents' weights among those that were not said to be something else.

    A column `weight` may as well be a feature, so a warning says how it is read; tables of `write_parquet` say it.
    """
    found = next((name for name in ("doc_weight",) + ("weight",) * (not ours) if name in free), None)
    if found == "weight":
        warnings.warn(
            "column 'weight' is read as the weights of the documents: name it among the features to use it as one, "
            "exclude it to ignore it, or call it doc_weight to say so",
            UserWarning,
            stacklevel=4,
        )
    return found


def write_parquet(data: QueryDataset, path: str | Path) -> Path:
    """Write a data set as a Parquet table that `read_table` reads back the same; the file appears whole or not at all.

    Columns: `query`, `label`, then `doc_id`, `query_weight` and `doc_weight` if any, then the features (`f1`, `f2`, …
    where they have no names). Other programs can read the file; the roles of the columns are in its metadata.

    >>> import tempfile
    >>> data = QueryDataset.from_arrays(np.ones((2, 3), dtype=np.float32), [0, 1], qid=["a", "a"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(read_table(write_parquet(data, Path(folder, "data.parquet"))))
    QueryDataset(1 queries, 2 documents, 3 features, float32)
    """
    pa, pq = (needed(module, "writing Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    target = Path(path)
    names = data.feature_names or tuple(f"f{j}" for j in range(1, data.n_features + 1))
    roles: dict[str, AnyArray] = {"query": np.repeat(id_text(data.query_ids), data.lengths), "label": data.y}
    if data.doc_ids is not None:
        roles["doc_id"] = id_text(data.doc_ids)
    if data.query_weight is not None:
        roles["query_weight"] = np.repeat(data.query_weight, data.lengths)
    if data.doc_weight is not None:
        roles["doc_weight"] = data.doc_weight
    clash = next((name for name in names if name in roles), None)
    if clash is not None:
        raise InputError(f"a feature is called {clash!r}, a name the table needs for itself: rename the feature")
    about: dict[str, Any] = {"named": data.feature_names is not None, "sparse": data.is_sparse}
    about |= {role: role for role in ("doc_id", "query_weight", "doc_weight") if role in roles}
    arrays = {name: pa.array(values) for name, values in roles.items()}
    value = pa.from_numpy_dtype(data.X.dtype)
    fields = [*((name, array.type) for name, array in arrays.items()), *((name, value) for name in names)]
    schema = pa.schema(fields, metadata={METADATA: json.dumps(about).encode()})
    step = max(1, (1 << 24) // len(fields))
    with create_bytes(target) as file, pq.ParquetWriter(file, schema) as writer:
        for a in range(0, data.n_docs, step):
            block = dense(data.X[a : a + step]).T
            parts = [array.slice(a, step) for array in arrays.values()]
            parts += [pa.array(np.ascontiguousarray(column)) for column in block]
            writer.write_table(pa.Table.from_arrays(parts, schema=schema))
    return target


_DECIMAL_COMMA = re.compile(r"\s*[-+]?[0-9]+(,[0-9]+)?(e[-+]?[0-9]+)?\s*", re.IGNORECASE)
_DATE = re.compile(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?")


def _check_text(column: Column) -> None:
    """Say what to do with a column of text, where it holds dates, decimal commas, or numbers for the most part."""
    cells = column.values().tolist()
    words = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    if column.kind.startswith(("Date", "Time", "Duration", "datetime")) or (
        words and all(map(_DATE.fullmatch, words[:100]))
    ):
        raise InputError(
            f"column {column.name!r} holds dates, and features and grades are numbers: exclude it, or turn it into a "
            "number, such as its age in days"
        )
    comma = next((row for row, cell in enumerate(cells) if isinstance(cell, str) and "," in cell), None)
    if comma is not None and all(map(_DECIMAL_COMMA.fullmatch, words)):
        raise InputError(
            f"column {column.name!r} holds {cells[comma]!r} in {column.place(comma)}: a decimal comma, where numbers "
            "have a point; write the table again (pandas reads it with decimal=',')"
        )
    text = [
        row
        for row, cell in enumerate(cells)
        if isinstance(cell, str) and cell.strip() and not validation.is_number(cell)
    ]
    if text and len(text) < len(cells) / 2:
        raise InputError(f"column {column.name!r} holds {cells[text[0]]!r} in {column.place(text[0])}: not a number")


def _check_numeric(columns: list[Column]) -> None:
    text = [column for column in columns if not column.numeric]
    for column in text:
        _check_text(column)
    if text and not len(columns[0].values()):
        raise InputError(_EMPTY)
    if text:
        names = ", ".join(f"{column.name!r} ({column.kind})" for column in text[:10]) + ", …" * (len(text) > 10)
        what, them, one = ("s", "them", "one") if len(text) > 1 else ("", "it", "it")
        raise InputError(
            f"column{what} {names} cannot be {'features' if what else 'a feature'}, since features are numbers: "
            f"exclude {them}, or name {one} as the document id{_held(text[:3])}"
        )


def _held(text: list[Column]) -> str:
    """Say what columns of text hold, for those who want them as features after all."""
    found = [(column.name, validation.distinct_text(column.values().tolist())) for column in text]
    return "".join(f". {name!r} holds {words}" for name, words in found if words)


def _numbers(column: Column) -> AnyArray:
    if not column.numeric:
        _check_text(column)
        cells = column.filled().tolist()
        first = f"{cells[0]!r} in {column.place(0)}" if len(cells) else column.kind
        raise InputError(f"column {column.name!r} must hold numbers, it holds {first}")
    return column.filled().astype(np.float64)


def _per_query(column: Column, ptr: Ints, order: Ints | None) -> AnyArray:
    rows = in_order(_numbers(column), order)
    first: AnyArray = rows[ptr[:-1]]
    uneven = rows != np.repeat(first, np.diff(ptr))
    if uneven.any():
        at = int(uneven.argmax())
        raise InputError(
            f"column {column.name!r} must be the same in all rows of a query: "
            f"{column.place(at if order is None else int(order[at]))} differs"
        )
    return first


def _assemble(
    columns: list[Column],
    n_rows: int,
    order: Ints | None,
    missing: validation.Missing,
    gaps: dict[str, int],
    *,
    sparse: bool,
) -> Matrix:
    """Copy the columns into one C-order array with rows grouped by query: the only copy of X; count empty cells."""
    dtype = np.float32 if all(column.kind.lower() == "float32" for column in columns) else np.float64
    if sparse:
        return _assemble_csr(columns, n_rows, order, missing, gaps, dtype)
    size = n_rows * len(columns) * np.dtype(dtype).itemsize
    if size > physical_memory():
        raise InputError(
            f"{n_rows} rows of {len(columns)} features take {size / 1e9:.1f} GB: more than this machine has"
        )
    X = np.empty((n_rows, len(columns)), dtype=dtype)
    for start in range(0, len(columns), _BLOCK_COLUMNS):
        block = [_finite(column, missing, gaps) for column in columns[start : start + _BLOCK_COLUMNS]]
        for a in range(0, n_rows, _BLOCK_ROWS):
            rows = slice(a, a + _BLOCK_ROWS) if order is None else order[a : a + _BLOCK_ROWS]
            for j, values in enumerate(block, start):
                X[a : a + _BLOCK_ROWS, j] = values[rows]
    return X


def _assemble_csr(
    columns: list[Column],
    n_rows: int,
    order: Ints | None,
    missing: validation.Missing,
    gaps: dict[str, int],
    dtype: type,
) -> Matrix:
    from scipy.sparse import csc_array

    dense = (in_order(_finite(column, missing, gaps), order) for column in columns)
    stored: list[tuple[AnyArray, AnyArray]] = [
        (rows := np.flatnonzero(values), values[rows].astype(dtype)) for values in dense
    ]
    indices, values = (np.concatenate(parts) for parts in zip(*stored, strict=True))
    indptr = bounds_of([len(rows) for rows, _ in stored])
    return as_csr(csc_array((values, indices, indptr), shape=(n_rows, len(columns))))


def _finite(column: Column, missing: validation.Missing, gaps: dict[str, int]) -> AnyArray:
    """Return the numbers of a feature and count its empty cells; what is not finite is named by column and row."""
    values = np.asarray(column.values())
    if values.dtype.kind not in "iufb":  # decimals, or numbers that a frame keeps as objects
        values, cells = np.full(len(values), np.nan), values
        held = ~np.asarray(column.missing(), dtype=bool)
        values[held] = cells[held].astype(np.float64)
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return values
    infinite, empty = np.isinf(values), np.isnan(values)
    if infinite.any():
        raise InputError(
            f"column {column.name!r} is infinite in {column.place(int(infinite.argmax()))}: clip or drop it"
        )
    if missing == "error":
        place = column.place(int(empty.argmax()))
        raise InputError(
            f"column {column.name!r} is empty in {place}: fill it in, or say what stands in for it (--missing zero, "
            'median or indicator on the command line; missing="zero" or "keep" in Python)'
        )
    gaps[column.name] = int(empty.sum())
    return values if missing == "keep" else np.where(empty, 0, values)
