"""Reading and writing any format: the name of the file says which."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..errors import InputError, ParseError
from ._columns import EXCEL, PARQUET, TEXT_TABLES, separator
from ._text import ByteStream, PieceFile, open_bytes, without_packing
from .dataset import QueryDataset
from .validation import Missing


def read(
    path: str | os.PathLike[str],
    *,
    label: str | None = "label",
    qid: str = "query",
    doc_id: str | None = None,
    doc_weight: str | None = None,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    sep: str | None = None,
    dtype: DTypeLike = np.float32,
    missing: Missing = "error",
) -> QueryDataset:
    """Read judged queries: LETOR text (plain or compressed), Parquet, CSV or a mapped folder; `-` is text, or CSV.

    The names of columns, `exclude` and `sep` are about tables (`read_table`); the other formats know their own. With
    `label=None` lines of LETOR text may begin with `qid:`, and a table needs no grades: all are 0. `dtype` is what the
    values of text are stored as; tables and folders keep what they hold. `missing="zero"` fills the empty cells of a
    table.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "train.txt")
    >>> _ = file.write_text("1 qid:7 1:0.5\\n0 qid:7 1:0.1\\n")
    >>> read(file)
    QueryDataset(1 queries, 2 documents, 1 features, float32)
    """
    from .letor import read_letor
    from .tables import read_table

    table = partial(
        read_table,
        label=label,
        qid=qid,
        doc_id=doc_id,
        doc_weight=doc_weight,
        features=features,
        exclude=exclude,
        sep=sep,
        missing=missing,
    )
    if os.fspath(path) == "-":
        with open_bytes(path) as stream:
            if sep is not None or separator(stream.peek(1 << 16)) is not None:
                return table(stream)
            return _read_letor(stream, label, dtype)
    source = Path(path)
    if source.is_dir():
        from .mapped import open_queries

        return open_queries(source)
    if is_table(source):
        return table(source)
    if _kind(source) in _OTHERS:
        raise InputError(
            f"{source}: toprank reads LETOR text, .csv, .tsv, .parquet and .xlsx, and folders of its own: write the "
            "table again as one of them"
        )
    try:
        if label is None:
            with open_bytes(path) as stream:
                return _read_letor(stream, label, dtype)
        return read_letor(path, dtype=dtype)
    except ParseError as error:
        if error.line != 1 or _kind(source) in ("", ".txt"):
            raise
        said = f"{error.said} ({_kind(source)} is read as LETOR text; tables are .csv, .tsv, .parquet and .xlsx)"
        raise ParseError(said, file=error.file, line=1, column=error.column, text=error.text) from None


_OTHERS = (
    ".json", ".jsonl", ".ndjson", ".xls", ".xlsm", ".ods", ".feather", ".arrow", ".ipc", ".orc", ".avro", ".h5",
    ".hdf5", ".pkl", ".pickle", ".npy", ".npz", ".db", ".sqlite", ".duckdb", ".zip", ".tar", ".html", ".pdf",
)  # fmt: skip
"""Formats that are no text with grades in front, whatever they hold."""


def _read_letor(stream: ByteStream, label: str | None, dtype: DTypeLike) -> QueryDataset:
    """Read LETOR text; where nothing is graded, lines may begin with `qid:`."""
    from .letor import read_letor

    if label is not None or stream.peek(4)[:4] != b"qid:":
        return read_letor(stream, dtype=dtype)
    try:
        return read_letor(io.BufferedReader(_GradedText(stream, stream.title), 1 << 20), dtype=dtype)
    except ParseError as error:  # in the file there is no grade in front
        place = None if error.column is None else max(1, error.column - len(_GradedText.GRADE))
        raise ParseError(error.said, file=error.file, line=error.line, column=place, text=error.text) from None


class _GradedText(PieceFile):
    """LETOR text with the grade 0 in front of every line that begins with `qid:`."""

    GRADE = b"0 "

    def __init__(self, text: ByteStream, name: str) -> None:
        self._text, self.name = text, without_packing(name)  # the text is unpacked already

    def next_piece(self, wanted: int) -> bytes | None:
        lines = self._text.readlines(wanted)
        return b"".join(self.GRADE + line if line.startswith(b"qid:") else line for line in lines) or None


def write(data: QueryDataset, path: str | os.PathLike[str]) -> None:
    """Write judged queries: Parquet by its suffix, a mapped folder for a name that ends in `/`, else LETOR text."""
    name = os.fspath(path)
    if name.endswith(("/", os.sep)):
        from .mapped import save_queries

        save_queries(data, name)
    elif _kind(name) in PARQUET:
        from .tables import write_parquet

        write_parquet(data, name)
    elif _kind(name) in (*TEXT_TABLES, *EXCEL):
        raise InputError(f"{name}: tables are written as Parquet, name the file .parquet (or .txt for LETOR text)")
    else:
        from .letor import write_letor

        write_letor(data, name)


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    dtype: DTypeLike = np.float32,
    change: Callable[[QueryDataset], QueryDataset] | None = None,
    **columns: Any,
) -> None:
    """Read one format and write another; LETOR text goes to a mapped folder in a stream, whatever its size.

    `columns` are what `read` takes for tables. `change` is applied between reading and writing, except to such a
    stream (LETOR text has no missing cells to fill).
    """
    name = os.fspath(target)
    is_text = not Path(source).is_dir() and not is_table(source) and columns.get("sep") is None
    if is_text and name.endswith(("/", os.sep)):
        from .letor import stream_letor

        stream_letor(source, name, dtype=dtype)
    else:
        data = read(source, dtype=dtype, **columns)
        write(data if change is None else change(data), target)


def is_table(path: str | os.PathLike[str]) -> bool:
    """Say whether the name is that of a table."""
    return _kind(path) in (*PARQUET, *TEXT_TABLES, *EXCEL)


def _kind(path: str | os.PathLike[str]) -> str:
    """Return the suffix that tells the format, in front of a suffix of compression."""
    return Path(without_packing(os.fspath(path))).suffix.lower()
