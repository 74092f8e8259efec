"""What runs on workers: scanning and reading pieces of files, Parquet by row groups and LETOR text by byte ranges."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._typing import AnyArray, Floats
from ..data import csr, letor, tables
from ..data._columns import METADATA, read_notes
from ..data.dataset import QueryDataset
from ..data.splits import joined
from ..data.validation import Missing
from ..errors import InputError, naming, needed
from .unchanged import Marks, check_marks, digest, footer_digest, marks_of, unchanged


@dataclass(frozen=True)
class Piece:
    """What a worker found in a piece of a file: everything but the features."""

    file: str
    source: Any
    """How the piece is found again: the sizes of its row groups, or its range of bytes."""
    marks: Marks
    """What the file system said of the file."""
    digest: str
    """That of the range of bytes, or of the end of a Parquet file."""
    data: QueryDataset | None
    """Grades, ids and weights, with features that do not count; None where no row begins in the piece."""
    stored: int = 0
    width: int = 0

    def without_data(self) -> Piece:
        """Return what is needed to read it again."""
        return replace(self, data=None)


def scan_table(
    fs: Any, file: str, *, roles: dict[str, Any], features: Any, exclude: tuple[str, ...], missing: Missing
) -> Piece:
    """Read everything but the features of a Parquet file; runs on a worker."""
    pa, pq = (needed(module, "reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    with naming(file):
        marks = marks_of(fs, file)
        with naming(file, Exception), fs.open(file, "rb") as stream:
            parquet = pq.ParquetFile(stream)
            end = footer_digest(stream)
            schema = parquet.schema_arrow
            groups = [parquet.metadata.row_group(i).num_rows for i in range(parquet.num_row_groups)]
            if not sum(groups):
                raise InputError(f"{file} holds no rows: remove it, or write it again")
            notes = read_notes((schema.metadata or {}).get(METADATA, b"{}"), file)
            if notes.get("sparse"):
                raise InputError(f"{file} was written from sparse features: read LETOR text, or place the data")
            columns = {name: str(kind) for name, kind in zip(schema.names, schema.types, strict=True)}
            named, left, _ = tables.column_roles(columns, notes, roles, features, exclude)
            text = next((name for name in left if not _numeric(pa, schema.field(name).type)), None)
            if text is not None:
                raise InputError(f"column {text!r} of {file} is {columns[text]}, not a number: exclude it")
            table = parquet.read(columns=[*dict.fromkeys(named.values())])
        check_marks(file, marks, marks_of(fs, file))
        stand_in = table.append_column("\0", pa.array(np.zeros(len(table), dtype=np.float32)))
        given: dict[str, Any] = {role: named.get(role) for role in ("doc_id", "query_weight", "doc_weight")}
        data = tables.read_table(stand_in, named["label"], named["qid"], features=["\0"], **given)
    source = (groups, columns, named, left, not notes.get("named", True))
    return Piece(file, source, marks, end, _contiguous(data, file))


def _numeric(pa: Any, kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind))


def _contiguous(data: QueryDataset, file: str) -> QueryDataset:
    """Refuse a query whose rows do not stand together."""
    if data.order is not None:
        query = data.qid[int(np.flatnonzero(np.diff(data.order) != 1)[0])].tolist()
        raise InputError(f"query {query!r} is in {file} and comes back further down: bring its rows together")
    return data


def read_table_part(
    fs: Any,
    pieces: list[tuple[Piece, int, int]],
    roles: dict[str, str],
    names: list[str],
    missing: Missing,
    unnamed: bool,
) -> QueryDataset:
    """Read a part out of the row groups that hold its rows; runs on a worker."""
    pa, pq = (needed(module, "reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    found = []
    for piece, start, stop in pieces:
        groups = piece.source[0]
        ends = np.cumsum([0, *groups])
        chosen = [i for i in range(len(groups)) if ends[i] < stop and start < ends[i + 1]]
        with unchanged(fs, piece.file, piece.marks), naming(piece.file, Exception), fs.open(piece.file, "rb") as stream:
            check_marks(piece.file, {"footer": piece.digest}, {"footer": footer_digest(stream)})
            wanted = [*dict.fromkeys((*roles.values(), *names))]
            table = pq.ParquetFile(stream).read_row_groups(chosen, columns=wanted)
        found.append(table.slice(start - int(ends[chosen[0]]), stop - start))
    given: dict[str, Any] = {role: roles.get(role) for role in ("doc_id", "query_weight", "doc_weight")}
    given |= {"label": roles["label"], "qid": roles["qid"], "features": names, "missing": missing}
    try:
        data = tables.read_table(pa.concat_tables(found), **given)
    except InputError:
        for (piece, start, _), table in zip(pieces, found, strict=True):
            with naming(f"{piece.file}, counting rows from {start}"):
                tables.read_table(table, **given)
        raise
    return data._with(feature_names=None) if unnamed else data


class _Bytes(io.BytesIO):
    name = ""


def _lines(fs: Any, file: str, start: int, stop: int | None) -> bytes:
    """Return the lines that begin in a range of bytes."""
    with naming(file, Exception), fs.open(file, "rb", compression="infer" if stop is None else None) as stream:
        if start:
            stream.seek(start - 1)
            stream.readline()
        body = stream.read() if stop is None else stream.read(max(0, stop - stream.tell()))
        if body and not body.endswith(b"\n"):
            body += stream.readline()
    return bytes(body)


def _parsed(body: bytes, file: str, start: int, stop: int | None, **options: Any) -> QueryDataset | None:
    """Parse lines, of which `file` and the range of bytes say where they are from."""
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


def scan_letor(fs: Any, options: dict[str, Any], file: str, start: int, stop: int | None) -> Piece:
    """Read everything but the features of a range of bytes; runs on a worker."""
    marks = marks_of(fs, file)
    body = _lines(fs, file, start, stop)
    check_marks(file, marks, marks_of(fs, file))
    data = _parsed(body, file, start, stop, dense=False, **options)
    found = Piece(file, (start, stop), marks, digest(body), None)
    if data is None:
        return found
    bare = data.with_X(np.zeros((data.n_docs, 1), dtype=np.float32))
    return replace(found, data=bare, stored=round(data.row_values * data.n_docs), width=data.n_features)


def read_letor_part(fs: Any, options: dict[str, Any], pieces: list[tuple[Piece, int, int]]) -> QueryDataset:
    """Read a part out of ranges of bytes; runs on a worker."""
    from scipy.sparse import vstack

    found: list[tuple[Any, Floats, AnyArray, AnyArray | None]] = []
    for piece, start, stop in pieces:
        with unchanged(fs, piece.file, piece.marks):
            body = _lines(fs, piece.file, *piece.source)
        check_marks(piece.file, {"checksum": piece.digest}, {"checksum": digest(body)})
        data = _parsed(body, piece.file, *piece.source, **options)
        assert data is not None
        ids = None if data.doc_ids is None else data.doc_ids[start:stop]
        found.append((csr.rows(data.X, start, stop), data.y[start:stop], data.qid[start:stop], ids))
    X, y, query, doc_ids = zip(*found, strict=True)
    rows = X[0] if len(X) == 1 else np.concatenate(X) if options["dense"] else vstack(X, format="csr")
    return QueryDataset.from_arrays(rows, np.concatenate(y), joined(query), doc_ids=joined(doc_ids))
