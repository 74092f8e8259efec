"""Files that workers read: which files, what is in them, and which rows of them each part has."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._typing import AnyArray, Ints
from ..data import letor
from ..data._text import PACKED
from ..data.dataset import PER_ROW, QueryDataset
from ..data.grouping import bounds_of
from ..data.splits import joined
from ..data.validation import Missing, check_choice
from ..errors import InputError, naming, needed
from .pieces import Piece, read_letor_part, read_table_part, scan_letor, scan_table
from .placing import checked, placed
from .unchanged import check_marks
from .workers import Request, Workers

_TEXT_TABLES = frozenset((".csv", ".tsv", ".xlsx"))
RANGE_BYTES = 1 << 26
"""Bytes of LETOR text that are parsed at a time."""


def read_table(
    path: str | Sequence[str],
    client: Any,
    label: str = "label",
    qid: str = "query",
    *,
    doc_id: str | None = None,
    query_weight: str | None = None,
    doc_weight: str | None = None,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    missing: Missing = "error",
    storage_options: dict[str, Any] | None = None,
    parts: int | None = None,
    mapped: bool | None = None,
    timeout: float = 120.0,
) -> QueryDataset:
    """Read Parquet files on the workers of a Dask cluster: a name with * in it, a list of names, on any file system.

    `path` and `storage_options` are as in `dask.dataframe.read_parquet` ("s3://bucket/train/*.parquet"); columns are
    as in `toprank.read_table`. The files are one table in the order of their names. A query may go on in the next
    file; one that comes back later is refused, and so are files without rows or with other columns or types. `parts`,
    `mapped` and `timeout` are as in `place`.
    """
    check_choice(("error", "zero"), missing=missing)
    workers = checked(client, parts, timeout)
    needed("pyarrow", "reading Parquet")
    fs, files = _find(path, storage_options, ".parquet")
    text = next((file for file in files if _TEXT_TABLES & set(PurePath(file).suffixes)), None)
    if text is not None:
        raise InputError(
            f"{text}: a cluster reads Parquet and LETOR text: turn the table into Parquet first (toprank convert "
            "TABLE TABLE.parquet)"
        )
    roles = {"label": label, "qid": qid, "doc_id": doc_id, "query_weight": query_weight}
    roles["doc_weight"] = doc_weight
    scan = partial(scan_table, fs, roles=roles, features=features, exclude=tuple(exclude), missing=missing)
    found = _scanned(workers, scan, [(file,) for file in files])
    columns, roles, names, unnamed = found[0].source[1:]
    for other in found[1:]:
        _compare(found[0].file, columns, other.file, other.source[1])
    single = all(columns[name] == "float" for name in names)
    beside = _joined(found)

    def read(first: int, last: int, start: int, stop: int) -> Callable[[], QueryDataset]:
        pieces = [(piece.without_data(), a, b) for piece, a, b in _pieces_of(found, start, stop)]
        return partial(read_table_part, fs, pieces, roles, names, missing, unnamed)

    return placed(
        workers, read, n_features=len(names), dtype=np.float32 if single else np.float64, row_values=len(names),
        parts=parts, mapped=mapped, feature_names=None if unnamed else names, **beside,
    )  # fmt: skip


def read_letor(
    path: str | Sequence[str],
    client: Any,
    *,
    dense: bool | None = None,
    dtype: DTypeLike = np.float32,
    n_features: int | None = None,
    zero_based: bool = False,
    storage_options: dict[str, Any] | None = None,
    parts: int | None = None,
    mapped: bool | None = None,
    timeout: float = 120.0,
) -> QueryDataset:
    """Read LETOR text on the workers of a Dask cluster, some MB at a time; a compressed file is one piece.

    `path` and `storage_options` are as in `read_table` there, the rest as in `toprank.read_letor`, but that every line
    names its query (`qid:`), that indices count from 1 unless `zero_based` says otherwise, and that a query which comes
    back later is refused.
    """
    workers = checked(client, parts, timeout)
    letor.line_rules("path", dense, dtype, n_features, zero_based)  # refuses options that cannot be
    fs, files = _find(path, storage_options, "")
    ranges: list[tuple[str, int, int | None]] = []
    for file in files:
        with naming(file, Exception):  # every file system has errors of its own, and not all can travel
            size = fs.size(file)
        if size == 0:
            raise InputError(f"{file} is empty: remove it, or write it again")
        if size is None or file.endswith(PACKED):  # a server may not say how long it is
            ranges.append((file, 0, None))
        else:
            ranges += [(file, a, a + RANGE_BYTES) for a in range(0, size, RANGE_BYTES)]
    options: dict[str, Any] = {"dtype": np.dtype(dtype), "zero_based": zero_based}
    found = [piece for piece in _scanned(workers, partial(scan_letor, fs, options), ranges) if piece.data is not None]
    for file in files:
        if not any(piece.file == file for piece in found):
            raise InputError(f"{file} holds no rows: remove it, or write it again")
    width = n_features or max(piece.width for piece in found)
    beside = _joined(found)
    n_docs, stored = int(beside["ptr"][-1]), sum(piece.stored for piece in found)
    if dense is None:
        dense = stored >= n_docs * width / 4
    options |= {"dense": dense, "n_features": width}

    def read(first: int, last: int, start: int, stop: int) -> Callable[[], QueryDataset]:
        pieces = [(piece.without_data(), a, b) for piece, a, b in _pieces_of(found, start, stop)]
        return partial(read_letor_part, fs, options, pieces)

    return placed(
        workers, read, n_features=width, dtype=dtype, row_values=width if dense else stored / n_docs,
        parts=parts, mapped=mapped, **beside,
    )  # fmt: skip


def _find(path: str | Sequence[str], options: dict[str, Any] | None, suffix: str) -> tuple[Any, list[str]]:
    """Return the file system and the files, in order of their names."""
    import fsspec

    with naming(str(path), Exception):
        fs, _, files = fsspec.get_fs_token_paths(path, storage_options=options)
        if len(files) == 1 and fs.isdir(files[0]):
            files = [file for file in fs.ls(files[0], detail=False) if file.endswith(suffix)]
        missing = next((file for file in files if not fs.exists(file)), None)
    if not files:
        raise InputError(f"no file is named {path}")
    if missing is not None:
        raise InputError(f"{missing} cannot be read: there is no such file")
    return fs, list(files)


def _scanned(workers: Workers, scan: Callable[..., Piece], calls: list[tuple[Any, ...]]) -> list[Piece]:
    def ask() -> Request:
        return Request(workers.client.map(workers.task(scan), *zip(*calls, strict=True), pure=False))

    found: list[Piece] = workers.results(ask, lambda attempt: None)
    return same_files(found)


def same_files(found: list[Piece]) -> list[Piece]:
    """Return pieces, after a look whether those of one file saw the same file."""
    first: dict[str, Piece] = {}
    for piece in found:
        check_marks(piece.file, first.setdefault(piece.file, piece).marks, piece.marks)
    return found


def _pieces_of(found: list[Piece], start: int, stop: int) -> list[tuple[Piece, int, int]]:
    """Return the pieces that hold rows start:stop, and which rows of each."""
    ends = np.cumsum([0, *(piece.data.n_docs for piece in found if piece.data is not None)]).tolist()
    low, high = bisect_right(ends, start) - 1, bisect_left(ends, stop)
    return [(found[i], max(start, ends[i]) - ends[i], min(stop, ends[i + 1]) - ends[i]) for i in range(low, high)]


def _joined(found: list[Piece]) -> dict[str, Any]:
    """Put what was found in all pieces together: a query at the end of one may go on in the next."""
    parts = [piece.data for piece in found if piece.data is not None]
    ids = joined([part.query_ids for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    first = np.cumsum([0, *(part.n_queries for part in parts)])
    new = np.ones(len(ids), dtype=bool)
    for at in first[1:-1]:
        new[at] = ids[at] != ids[at - 1]
    ptr = np.append(bounds_of(lengths)[:-1][new], lengths.sum()).astype(np.int64)
    query_ids = ids[new]
    if len(set(query_ids.tolist())) < len(query_ids):
        _refuse_repeated(query_ids, np.flatnonzero(new), first, [piece.file for piece in found])
    weights = None
    if parts[0].query_weight is not None:
        given = np.concatenate([part.query_weight for part in parts if part.query_weight is not None])
        weights = given[new]
        uneven = given != np.repeat(weights, np.diff(np.append(np.flatnonzero(new), len(ids))))
        if uneven.any():
            raise InputError(f"query {ids[uneven.argmax()]!r} has two weights: it must be the same in all its rows")
    per_row = {name: joined([vars(part)[name] for part in parts]) for name in PER_ROW}
    return {"ptr": ptr, "query_ids": query_ids, "query_weight": weights, **per_row}


def _refuse_repeated(ids: AnyArray, runs: Ints, first: Ints, files: list[str]) -> None:
    seen: dict[Any, str] = {}
    for query, run in zip(ids.tolist(), runs.tolist(), strict=True):
        file = files[int(np.searchsorted(first, run, "right")) - 1]
        if query in seen:
            again = "further down" if seen[query] == file else f"in {file}"
            raise InputError(f"query {query!r} is in {seen[query]} and comes back {again}: bring its rows together")
        seen[query] = file


def _compare(one: str, columns: dict[str, str], other: str, others: dict[str, str]) -> None:
    for name in (*columns, *others):
        if name not in columns or name not in others:
            has, lacks = (other, one) if name not in columns else (one, other)
            raise InputError(f"{lacks} has no column {name!r}, which {has} has: all files need the same columns")
        if columns[name] != others[name]:
            raise InputError(
                f"column {name!r} is {columns[name]} in {one} and {others[name]} in {other}: write it with one type"
            )
