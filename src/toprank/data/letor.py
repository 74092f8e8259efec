"""LETOR / SVMlight text: `label qid:id feature:value … #docid = id`, one document a line."""

from __future__ import annotations

import os
import shutil
import warnings
from dataclasses import replace
from operator import add
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .._typing import AnyArray, Matrix
from ..errors import InputError
from . import validation
from ._text import TextSource, create_bytes, name_of, open_bytes
from .csr import csr_of, dense
from .dataset import QueryDataset
from .ids import id_text
from .mapped import drafting, open_queries, save_queries, write_header
from .source import Source

_BLOCK_VALUES = 1 << 15


def read_letor(
    path: TextSource,
    *,
    dense: bool | None = None,
    dtype: npt.DTypeLike = np.float32,
    n_features: int | None = None,
    zero_based: bool | None = None,
    one_list: bool = False,
    threads: int | None = None,
) -> QueryDataset:
    """Read judged queries from LETOR / SVMlight text.

    A line is `label [qid:id] [feature:value …] [#comment]`, with blanks or tabs between its parts. Labels and values
    are decimal numbers; each value is the double nearest to its text, rounded once more to `dtype` if that is float32.
    Indices may come in any order but none twice; what a line does not write is 0. Lines without a label (blank, or
    only a comment) do not count. Without `qid:` the file is one list, and a warning says so unless `one_list` is True;
    but where every comment is a whole number and some come again, they are the query ids (Yandex's
    `grade feature:value … # query`). Query ids are text, as written:
    007 is not 7. Rows of a query that do not stand together are brought together; `data.order` tells where they were.
    A comment `#docid = ID …`, or one of a single word, gives the document's id; others are ignored.

    `path` is a file name, `-` for standard input, or an open binary file; `.gz`, `.bz2`, `.xz` and `.zst` are unpacked.
    `dense` asks for a dense or a CSR matrix; None takes CSR if the file writes less than a quarter of all cells.
    `n_features` sets the width of X, else the largest index does. `zero_based` says whether the first feature has index
    0; None finds out by looking for a 0. `threads` is the number of threads (None: one per core, at most 8); it never
    changes the result.

    >>> import io
    >>> text = b"2 qid:1 1:0.5 2:3 #docid = a\\n0 qid:1 2:1.5 #docid = b\\n1 qid:7 1:1\\n"
    >>> data = read_letor(io.BytesIO(text))
    >>> data.X.tolist(), data.y.tolist(), data.query_ids.tolist(), data.doc_ids.tolist()
    ([[0.5, 3.0], [0.0, 1.5], [1.0, 0.0]], [2.0, 0.0, 1.0], ['1', '7'], ['a', 'b', ''])
    >>> read_letor(io.BytesIO(b"1 qid:1 1:0.5\\n0 qid:1 1=0.5\\n"))
    Traceback (most recent call last):
    ...
    toprank.errors.ParseError: <stream>:2:9: expected feature:value, found '1=0.5'
    """
    data, has_queries = _read(path, dense, dtype, n_features, zero_based, threads)
    if not (has_queries or one_list):
        _warn_of_one_list(path, data)
    return data


def _read(
    path: TextSource,
    dense: bool | None,
    dtype: npt.DTypeLike,
    n_features: int | None,
    zero_based: bool | None,
    threads: int | None,
    **chunk_size: int,
) -> tuple[QueryDataset, bool]:
    """Return the data, and whether the file says which lines belong to one query."""
    from ._letor_chunk import read_chunks
    from ._letor_sink import MemoryStore, Sink

    rules = line_rules(path, dense, dtype, n_features, zero_based)
    store = MemoryStore()
    sink = Sink(rules, store)
    try:
        with open_bytes(path) as stream:
            for chunk in read_chunks(stream, rules, threads=_count_threads(threads), **chunk_size):
                sink.add(chunk)
        sink.finish(dense)
    except MemoryError:
        raise InputError(f"{rules.name} does not fit in memory: pass dense=False, or use stream_letor") from None
    arrays: dict[str, Any] = store.arrays
    if "X" not in arrays:
        values, columns, indptr = (arrays.pop(name) for name in ("values", "indices", "indptr"))
        arrays["X"] = csr_of(values, columns, indptr, sink.n_features)
    source = Source(name_of(path), "letor") if isinstance(path, str | os.PathLike) else None
    data = QueryDataset(source=source, **arrays)
    grouped = data if sink.has_queries else _grouped_by_comments(data)
    return grouped, sink.has_queries or grouped is not data


def _warn_of_one_list(path: TextSource, data: QueryDataset) -> None:
    warnings.warn(
        f"{name_of(path)} has no qid: its {data.n_docs:,} lines are one query, as if all answered one question; write "
        "qid:ID behind each grade, or say one_list=True",
        stacklevel=3,
    )


def _grouped_by_comments(data: QueryDataset) -> QueryDataset:
    """Group one list by its comments, if they are numbers that come again: no document stands twice in a list."""
    ids = data.doc_ids
    distinct = [] if ids is None else np.unique(ids).tolist()
    numbers = all(word.isdecimal() and word.isascii() for word in distinct)
    if ids is None or len(distinct) == len(ids) or not numbers:
        return data
    return replace(QueryDataset.from_arrays(data.X, data.y, ids), source=data.source)


def stream_letor(
    path: TextSource,
    folder: str | os.PathLike[str],
    *,
    dense: bool | None = None,
    dtype: npt.DTypeLike = np.float32,
    n_features: int | None = None,
    zero_based: bool | None = None,
    one_list: bool = False,
    threads: int | None = None,
) -> QueryDataset:
    """Read LETOR text of any size into a folder of mapped arrays, and open it with `open_queries`.

    Takes what `read_letor` takes and gives the same data. Memory holds some MB and the query ids, whatever the size of
    the file (and one number per row if the rows of a query do not stand together). The folder must be new and appears
    when it is whole; meanwhile a draft beside it takes up to twice its size on disk.

    >>> import io, tempfile
    >>> from pathlib import Path
    >>> data = stream_letor(io.BytesIO(b"1 qid:3 1:0.5\\n0 qid:3 1:0.25\\n"), Path(tempfile.mkdtemp()) / "queries")
    >>> data.X.tolist(), data.query_ids.tolist()
    ([[0.5], [0.25]], ['3'])
    """
    from ._letor_chunk import read_chunks
    from ._letor_sink import FolderStore, Sink

    rules = line_rules(path, dense, dtype, n_features, zero_based)
    with open_bytes(path) as stream, drafting(folder) as draft, FolderStore(draft) as store:
        sink = Sink(rules, store)
        for chunk in read_chunks(stream, rules, threads=_count_threads(threads)):
            sink.add(chunk)
        sink.finish(dense)
        write_header(draft, n_features=sink.n_features)
    data = open_queries(folder)
    if sink.has_queries:
        return data
    if (grouped := _grouped_by_comments(data)) is data:
        if not one_list:
            _warn_of_one_list(path, data)
        return data
    shutil.rmtree(folder)
    return open_queries(save_queries(grouped, folder))


def line_rules(path: TextSource, dense: Any, dtype: Any, n_features: Any, zero_based: Any) -> Any:
    """Return what the lines of a file may hold, after a look at what the caller asks for."""
    from ._letor_chunk import Rules

    validation.check_choice((None, True, False), dense=dense, zero_based=zero_based)
    if n_features is not None:
        validation.check_count(n_features=n_features)
    try:
        chosen = np.dtype(dtype)
    except TypeError:
        chosen = np.dtype(object)
    if chosen not in (np.float32, np.float64):
        raise InputError(f"dtype must be float32 or float64, got {dtype!r}")
    return Rules(name_of(path), chosen, n_features, None if zero_based is None else bool(zero_based))


def _count_threads(threads: int | None) -> int:
    if threads is None:
        return min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    validation.check_count(threads=threads)
    return threads


def write_letor(data: QueryDataset, path: str | os.PathLike[str] | BinaryIO) -> None:
    """Write judged queries as LETOR text, compressed by the suffix of the name; the file appears whole or not at all.

    Numbers are the shortest that read back as the same bits, indices count from 1, document ids become `#docid = ID`.
    Dense data write every feature; sparse data only those that are not 0 (and the last one on the first line, so
    that the width is kept). `read_letor` with the same `dense` and `dtype` gives the same data again.

    >>> import io
    >>> out = io.BytesIO()
    >>> write_letor(QueryDataset.from_arrays([[0.1, 2.0]], [1], qid=[7], doc_ids=["d9"]), out)
    >>> out.getvalue()
    b'1 qid:7 1:0.1 2:2 #docid = d9\\n'
    """
    if data.doc_weight is not None:
        raise InputError("LETOR text has no place for doc_weight: write Parquet (toprank.write_parquet)")
    names = _id_words(data.query_ids, "query id", "#")
    query = data.query_of_rows
    step = max(1, int(_BLOCK_VALUES / max(1, data.row_values)))
    with create_bytes(path) as file:
        for start in range(0, data.n_docs, step):
            rows = slice(start, start + step)
            ends, features = _feature_words(data.X, rows)
            ids = [""] * len(ends) if data.doc_ids is None else _id_words(data.doc_ids[rows], "document id", "")
            lines = []
            first = 0
            for label, q, end, id_ in zip(_number_words(data.y[rows]), query[rows].tolist(), ends, ids, strict=True):
                comment = [f"#docid = {id_}"] if id_ else []
                lines.append(" ".join([label, f"qid:{names[q]}", *features[first:end], *comment]))
                first = end
            file.write("".join(f"{line}\n" for line in lines).encode())


def _feature_words(X: Matrix, rows: slice) -> tuple[list[int], list[str]]:
    """Return where each row ends, and the words `index:value` of all of them."""
    if not validation.is_sparse(X):
        block = dense(X)[rows]
        heads = [f"{index}:" for index in range(1, X.shape[1] + 1)] * len(block)
        ends = (np.arange(1, len(block) + 1) * X.shape[1]).tolist()
        return ends, list(map(add, heads, _number_words(block.reshape(-1))))
    bounds = X.indptr[rows.start : rows.stop + 1]
    values, columns = (part[bounds[0] : bounds[-1]] for part in (X.data, X.indices))
    stored = (values != 0) | np.signbit(values)
    ends = np.concatenate(([0], np.cumsum(stored)))[bounds[1:] - bounds[0]].tolist()
    heads = [f"{column + 1}:" for column in columns[stored].tolist()]
    words = list(map(add, heads, _number_words(values[stored])))
    if rows.start == 0 and heads[: ends[0]][-1:] != [f"{X.shape[1]}:"]:
        words.insert(ends[0], f"{X.shape[1]}:0")
        ends = [end + 1 for end in ends]
    return ends, words


def _number_words(values: AnyArray) -> list[str]:
    """Return the shortest decimals that are read back as the same bits; equal numbers are converted once."""
    if not np.isfinite(values).all():
        raise InputError("LETOR text has no place for NaN and infinity: fill them in first")
    bits, which = np.unique(values.view(f"u{values.itemsize}"), return_inverse=True)
    numbers = bits.view(values.dtype)
    words = numbers.astype(str).tolist() if numbers.dtype == np.float32 else map(repr, numbers.tolist())
    texts = np.array([word.removesuffix(".0") for word in words], dtype=object)
    return list(texts[which])


def _id_words(ids: AnyArray, what: str, forbidden: str) -> list[str]:
    """Return ids as text; refuse what a reader would cut or split."""
    words: list[str] = id_text(ids).tolist()
    try:
        joined = "\n".join(words).encode().decode()
    except UnicodeError as error:
        raise InputError(f"a {what} must be text: {error}") from None
    bad = f" \t\r\0{forbidden}"
    if any(letter in joined for letter in bad) or joined.count("\n") >= len(words) or (forbidden and "" in words):
        first = next(word for word in words if (forbidden and not word) or any(letter in word for letter in bad + "\n"))
        raise InputError(f"a {what} cannot be empty or hold blanks in LETOR text, got {first!r}")
    return words
