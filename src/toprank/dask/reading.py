"""Files that workers read: Parquet by row groups, LETOR text by byte ranges, wherever fsspec finds them."""

from __future__ import annotations

import io
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .._typing import AnyArray, Floats, Ints
from ..data import csr, letor, tables
from ..data._columns import METADATA, read_notes
from ..data._text import PACKED
from ..data.dataset import PER_ROW, QueryDataset
from ..data.grouping import bounds_of
from ..data.splits import joined
from ..data.validation import Missing
from ..errors import InputError, naming, needed
from .placing import checked, placed
from .workers import Request, Workers

RANGE_BYTES = 1 << 26
"""Bytes of LETOR text that are parsed at a time."""


@dataclass(frozen=True)
class Piece:
    """What a worker found in a piece of a file: everything but the features."""

    file: str
    source: Any
    """How the piece is found again: the sizes of its row groups, or its range of bytes."""
    data: QueryDataset | None
    """Grades, ids and weights, with features that do not count; None where no row begins in the piece."""
    stored: int = 0
    width: int = 0


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
    workers = checked(client, parts, timeout)
    needed("pyarrow", "reading Parquet")
    fs, files = _find(path, storage_options, ".parquet")
    roles = {"label": label, "qid": qid, "doc_id": doc_id, "query_weight": query_weight}
    roles["doc_weight"] = doc_weight
    scan = partial(_scan_table, fs, roles=roles, features=features, exclude=tuple(exclude), missing=missing)
    found = _scanned(workers, scan, [(file,) for file in files])
    columns, roles, unnamed = found[0].source[1:]
    for other in found[1:]:
        _compare(found[0].file, columns, other.file, other.source[1])
    names = [name for name in columns if name not in roles.values() and name not in exclude]
    names = list(features) if features is not None else names
    single = all(columns[name] == "float" for name in names)
    beside = _joined(found)

    def read(first: int, last: int, start: int, stop: int) -> Callable[[], QueryDataset]:
        pieces = [(piece.file, piece.source[0], a, b) for piece, a, b in _pieces_of(found, start, stop)]
        return partial(_read_table, fs, pieces, roles, names, missing, unnamed)

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
    found = [piece for piece in _scanned(workers, partial(_scan_letor, fs, options), ranges) if piece.data is not None]
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
        pieces = [(piece.file, *piece.source, a, b) for piece, a, b in _pieces_of(found, start, stop)]
        return partial(_read_letor, fs, options, pieces)

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
        return Request(workers.client.map(scan, *zip(*calls, strict=True), pure=False))

    return workers.results(ask, lambda attempt: None)


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


def _scan_table(
    fs: Any, file: str, *, roles: dict[str, Any], features: Any, exclude: tuple[str, ...], missing: Missing
) -> Piece:
    """Read everything but the features of a Parquet file; runs on a worker."""
    pa, pq = (needed(module, "reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    with naming(file):
        with naming(file, Exception), fs.open(file, "rb") as stream:
            parquet = pq.ParquetFile(stream)
            schema = parquet.schema_arrow
            groups = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
            if not sum(groups):
                raise InputError(f"{file} holds no rows: remove it, or write it again")
            notes = read_notes((schema.metadata or {}).get(METADATA, b"{}"), file)
            if notes.get("sparse"):
                raise InputError(f"{file} was written from sparse features: read LETOR text, or place the data")
            columns = {name: str(kind) for name, kind in zip(schema.names, schema.types, strict=True)}
            named, left = tables.column_roles(columns, notes, roles, features, exclude)
            text = next((name for name in left if not _numeric(pa, schema.field(name).type)), None)
            if text is not None:
                raise InputError(f"column {text!r} of {file} is {columns[text]}, not a number: exclude it")
            table = parquet.read(columns=[*dict.fromkeys(named.values())])
        stand_in = table.append_column("\0", pa.array(np.zeros(len(table), dtype=np.float32)))
        given: dict[str, Any] = {role: named.get(role) for role in ("doc_id", "query_weight", "doc_weight")}
        data = tables.read_table(stand_in, named["label"], named["qid"], features=["\0"], **given)
    return Piece(file, (groups, columns, named, not notes.get("named", True)), _contiguous(data, file))


def _numeric(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _contiguous(data: QueryDataset, file: str) -> QueryDataset:
    """Refuse a query whose rows do not stand together."""
    if data.order is not None:
        query = data.qid[int(np.flatnonzero(np.diff(data.order) != 1)[0])].tolist()
        raise InputError(f"query {query!r} is in {file} and comes back further down: bring its rows together")
    return data


def _read_table(
    fs: Any, pieces: list[Any], roles: dict[str, str], names: list[str], missing: Missing, unnamed: bool
) -> QueryDataset:
    """Read a part out of the row groups that hold its rows; runs on a worker."""
    pa, pq = (needed(module, "reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    found = []
    for file, groups, start, stop in pieces:
        ends = np.cumsum([0, *groups])
        chosen = [i for i in range(len(groups)) if ends[i] < stop and start < ends[i + 1]]
        with naming(file, Exception), fs.open(file, "rb") as stream:
            wanted = [*dict.fromkeys((*roles.values(), *names))]
            table = pq.ParquetFile(stream).read_row_groups(chosen, columns=wanted)
        found.append(table.slice(start - int(ends[chosen[0]]), stop - start))
    given: dict[str, Any] = {role: roles.get(role) for role in ("doc_id", "query_weight", "doc_weight")}
    given |= {"label": roles["label"], "qid": roles["qid"], "features": names, "missing": missing}
    try:
        data = tables.read_table(pa.concat_tables(found), **given)
    except InputError:
        for (file, _, start, _), table in zip(pieces, found, strict=True):
            with naming(f"{file}, counting rows from {start}"):
                tables.read_table(table, **given)
        raise
    return data._with(feature_names=None) if unnamed else data


class _Bytes(io.BytesIO):
    name = ""


def _parsed(fs: Any, file: str, start: int, stop: int | None, **options: Any) -> QueryDataset | None:
    """Parse the lines that begin in a range of bytes."""
    with naming(file, Exception), fs.open(file, "rb", compression="infer" if stop is None else None) as stream:
        if start:
            stream.seek(start - 1)
            stream.readline()
        body = stream.read() if stop is None else stream.read(max(0, stop - stream.tell()))
        if body and not body.endswith(b"\n"):
            body += stream.readline()
    if not body.strip():
        return None
    if not start and body.startswith(b"PAR1"):
        raise InputError(
            f"{file} is Parquet and not LETOR text: name such files by their ending, as in 'train/*.parquet'"
        )
    if b"qid:" not in body:
        raise InputError(
            f"{file}: a line without qid: (after byte {start}), and without it queries cannot be told apart"
        )
    lines = _Bytes(body)
    lines.name = f"{file} (unpacked)" if stop is None else f"{file} after byte {start}" if start else file
    return _contiguous(letor.read_letor(lines, threads=1, **options), file)


def _scan_letor(fs: Any, options: dict[str, Any], file: str, start: int, stop: int | None) -> Piece:
    """Read everything but the features of a range of bytes; runs on a worker."""
    data = _parsed(fs, file, start, stop, dense=False, **options)
    if data is None:
        return Piece(file, (start, stop), None)
    bare = data.with_X(np.zeros((data.n_docs, 1), dtype=np.float32))
    return Piece(file, (start, stop), bare, round(data.row_values * data.n_docs), data.n_features)


def _read_letor(fs: Any, options: dict[str, Any], pieces: list[Any]) -> QueryDataset:
    """Read a part out of ranges of bytes; runs on a worker."""
    from scipy.sparse import vstack

    found: list[tuple[Any, Floats, AnyArray, AnyArray | None]] = []
    for file, low, high, start, stop in pieces:
        data = _parsed(fs, file, low, high, **options)
        assert data is not None
        ids = None if data.doc_ids is None else data.doc_ids[start:stop]
        found.append((csr.rows(data.X, start, stop), data.y[start:stop], data.qid[start:stop], ids))
    X, y, query, doc_ids = zip(*found, strict=True)
    rows = X[0] if len(X) == 1 else np.concatenate(X) if options["dense"] else vstack(X, format="csr")
    return QueryDataset.from_arrays(rows, np.concatenate(y), joined(query), doc_ids=joined(doc_ids))
