"""Tables from files and from data frames of any package, as named columns that are not read yet."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._typing import AnyArray
from ..errors import InputError, MissingExtraError, ParseError, needed
from ._memory import physical_memory
from ._text import MOST_UNPACKED, ByteStream, name_of, open_bytes, text_array
from .ids import id_text
from .source import Source, line_of

METADATA = b"toprank"
"""Key under which a Parquet file of ours notes what its columns are."""

PARQUET, TEXT_TABLES, EXCEL = (".parquet", ".pq"), (".csv", ".tsv"), (".xlsx",)
"""The suffixes of tables."""

_LEAST_CELL = 4
"""Bytes of memory that a cell takes at least: float32."""

_MOST_TIMES = 2000
"""A Parquet file whose cells take more than this many times its size, and more than `MOST_UNPACKED`, is refused."""

_BLOCK_ROWS = 1 << 13
"""Rows that the plain CSV reader holds as Python text at a time."""


@dataclass(frozen=True)
class Column:
    """One column, not yet read: what the reader needs to know of it, whatever the table."""

    name: str
    kind: str
    numeric: bool
    missing: Callable[[], AnyArray]
    """Mask of the empty cells."""
    values: Callable[[], AnyArray]
    place: Callable[[int], str] = "row {}".format
    """Where in the source a row stands: a line of a file counts from 1, a row of a frame from 0."""

    def filled(self) -> AnyArray:
        """Return the values of a column in which no cell may be empty."""
        empty = np.asarray(self.missing(), dtype=bool)
        if empty.any():
            raise InputError(
                f"column {self.name!r} is empty in {self.place(int(empty.argmax()))}: give every row a value"
            )
        return np.asarray(self.values())

    def ids(self) -> AnyArray:
        """Return query or document ids, which are text whatever the table keeps them in."""
        cells = self.filled()
        if cells.dtype == object:
            odd = next((row for row, cell in enumerate(cells.tolist()) if type(cell).__hash__ is None), None)
            if odd is not None:
                raise InputError(
                    f"column {self.name!r} holds {cells[odd]!r} in {self.place(odd)}: an id is text, a number or a date"
                )
        return id_text(cells)


def open_columns(
    source: Any, sep: str | None = None, *, as_written: Collection[str] = ()
) -> tuple[dict[str, Column], dict[str, Any], Source]:
    """Return the columns by name, what `write_parquet` noted, and the source; `sep` parts the cells of a text table.

    The columns `as_written` of a text table hold ids: their cells stay text, whatever they look like.
    """
    stored: dict[str, Any] = {}
    origin = Source()
    if sep is not None and len(sep) != 1:
        raise InputError(f"sep must be one character, got {sep!r}")
    if isinstance(source, ByteStream) or is_text_table(source):
        name = name_of(source)
        with nullcontext(source) if isinstance(source, ByteStream) else open_bytes(source) as stream:
            head = stream.peek(1 << 16)
            mark = sep or separator(head) or ","
            _check_header(head, mark, name)
            try:
                columns = _read_csv(stream, name, mark, as_written)
            except ParseError:
                if not isinstance(source, ByteStream) and name != "<stdin>":
                    with open_bytes(source) as again:  # the plain reader knows the line
                        _plain_csv(again, mark, name, as_written)
                raise
        origin = Source(name, "csv", mark)
        columns = [replace(column, place=lambda row: line_of(name, row, "csv", mark)) for column in columns]
    elif isinstance(source, (str, os.PathLike)):
        path = Path(source)
        origin = Source(str(path))
        if path.suffix.lower() in EXCEL:
            columns = _read_excel(path)
            return {column.name: column for column in columns}, stored, origin
        if path.suffix.lower() not in PARQUET:
            raise InputError(f"{path}: a table is .parquet, .csv, .tsv or .xlsx (LETOR text is read by read_letor)")
        columns, notes = _read_parquet(path)
        stored = read_notes(notes.get(METADATA, b"{}"), str(path))
        columns = [replace(column, place=lambda row: f"row {row + 1}") for column in columns]
    else:
        columns = _frame_columns(source)
    return {column.name: column for column in columns}, stored, origin


def _check_header(head: bytes, delimiter: str, file: str) -> None:
    """Refuse two columns of one name, of which only one could be found again."""
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode(errors="replace").rstrip("\r")
    with suppress(csv.Error):
        _check_names(next(csv.reader([line], delimiter=delimiter), []), file)


def _check_names(names: Sequence[str], file: str) -> None:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ParseError(f"two columns are called {twice!r}: rename one of them", file=file, line=1)


def _read_excel(path: Path) -> list[Column]:
    """Read the first sheet of a workbook, whose first row has the names."""
    openpyxl = needed("openpyxl", "reading Excel files")
    if not path.exists():
        raise InputError(f"{path} cannot be read: No such file or directory")
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        rows = list(book.worksheets[0].iter_rows(values_only=True))
        book.close()
    except Exception as error:  # it parses archives and XML of any contents
        raise ParseError(f"not a readable Excel file: {' '.join(str(error).split())}", file=str(path)) from None
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    if not rows:
        raise ParseError("the first sheet is empty", file=str(path))
    names = ["" if cell is None else str(cell) for cell in rows[0]]
    while names and not names[-1]:
        names.pop()
    _check_names(names, str(path))
    return [_excel_column(name, [row[j] if j < len(row) else None for row in rows[1:]]) for j, name in enumerate(names)]


def _excel_column(name: str, cells: list[Any]) -> Column:
    empty = np.array([cell is None or cell == "" for cell in cells], dtype=bool)
    numeric = all(isinstance(cell, int | float) for cell in cells if cell is not None and cell != "")
    values = np.empty(len(cells), dtype=object)
    values[:] = cells
    if numeric and not empty.any():
        values = np.array(cells)
    elif numeric:
        values = np.array([np.nan if cell is None or cell == "" else cell for cell in cells], dtype=np.float64)
    dates = any(isinstance(cell, date) for cell in cells)
    kind = "Datetime" if dates else values.dtype.name if numeric else "String"
    return Column(name, kind, numeric, lambda: empty, lambda: values, lambda row: f"row {row + 2}")


def is_text_table(source: Any) -> bool:
    """Say whether a name is that of a text table, be it compressed; standard input is taken for one."""
    suffixes = Path(source).suffixes if isinstance(source, (str, os.PathLike)) else []
    return (isinstance(source, str) and source == "-") or any(suffix.lower() in TEXT_TABLES for suffix in suffixes)


def separator(head: bytes) -> str | None:
    """Return what stands between the names in the first line of a text table; None if it does not look like one.

    >>> separator(b"query;label;x"), separator(b"query,label,x"), separator(b"2 qid:1 1:0.5 #a, b; c")
    (';', ',', None)
    """
    line = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode(errors="replace")
    if line.startswith("qid:"):  # LETOR text without grades
        return None
    with suppress(ValueError, IndexError):
        float(line.split()[0])  # a label, or a table without names: no text table has a number for a name
        return None
    return next((mark for mark in ("\t", ";", ",") if mark in line), None)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of a file's columns, from its schema or its first line alone."""
    file = Path(path)
    if file.suffix.lower() in PARQUET and file.is_file():
        pa, pq = (needed(module, "reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
        with _naming(file, pa):
            return [str(name) for name in pq.read_schema(file).names]
    if is_text_table(path):
        with open_bytes(path) as stream:
            head = stream.readline()
        return next(csv.reader([head.decode("utf-8-sig", "replace")], delimiter=separator(head) or ","), [])
    return list(open_columns(path)[0])


def read_notes(raw: bytes, file: str) -> dict[str, Any]:
    """Return what `write_parquet` noted, checked: the file may come from anywhere."""
    kinds = {"named": bool, "sparse": bool, "doc_id": str, "query_weight": str, "doc_weight": str}
    try:
        notes = json.loads(raw)
    except (ValueError, RecursionError):
        notes = None
    if not isinstance(notes, dict) or any(not isinstance(v, kinds.get(k, object)) for k, v in notes.items()):
        raise ParseError(f"the note {METADATA.decode()!r} about its columns is damaged", file=file)
    return notes


def _read_parquet(path: Path) -> tuple[list[Column], dict[bytes, bytes]]:
    """Return columns that are read from the file one at a time, when they are asked for, and the notes about them."""
    pa, pq = (needed(module, "reading Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    if not path.exists():
        raise InputError(f"{path} cannot be read: No such file or directory")
    with _naming(path, pa):
        if not path.is_file():
            table = pq.read_table(path)  # a folder of Parquet files is one table
            return _frame_columns(table), table.schema.metadata or {}
        about = pq.read_metadata(path)
        # A few bytes can stand for any number of equal rows, so the size is looked at before it is made.
        size, held = about.num_rows * about.num_columns * _LEAST_CELL, f"{about.num_rows} rows of {about.num_columns}"
        if size > physical_memory():
            raise InputError(f"{path} holds {held} columns: more than fits in memory")
        if size > max(MOST_UNPACKED, _MOST_TIMES * path.stat().st_size):
            raise InputError(
                f"{path} holds {held} columns, which take more than {_MOST_TIMES} times its size and "
                f"{MOST_UNPACKED >> 20} MB: if that is as it should be, write it again without compression and "
                "dictionaries"
            )
        file = pq.ParquetFile(path)
        schema = file.schema_arrow

    @lru_cache(maxsize=1)
    def read(name: str) -> Column:
        with _naming(path, pa):
            return _frame_columns(file.read(columns=[name]))[0]

    def read_later(column: Column) -> Column:
        name = column.name
        return replace(column, missing=lambda: read(name).missing(), values=lambda: read(name).values())

    with _naming(path, pa):
        columns = _frame_columns(schema.empty_table())
        if any("." in column.name for column in columns) or any(pa.types.is_nested(kind) for kind in schema.types):
            return _frame_columns(file.read()), schema.metadata or {}  # a name could mean a part of another column
    return [read_later(column) for column in columns], schema.metadata or {}


@contextmanager
def _naming(path: Path, pa: Any) -> Iterator[None]:
    """Turn what Arrow raises into one line that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, KeyError, IndexError, UnicodeDecodeError, MemoryError) as error:
        raise ParseError(f"not a readable Parquet file: {error}", file=str(path)) from None


def _read_csv(stream: BinaryIO, name: str, delimiter: str, as_written: Collection[str]) -> list[Column]:
    """Read with Arrow where it is installed, else with the standard library: the same table, slower."""
    try:
        pa, pa_csv = (needed(module, "reading CSV") for module in ("pyarrow", "pyarrow.csv"))
    except MissingExtraError:
        return _plain_csv(stream, delimiter, name, as_written)
    cells = pa_csv.ParseOptions(delimiter=delimiter)
    empty = pa_csv.ConvertOptions(
        null_values=[""], strings_can_be_null=True, column_types=dict.fromkeys(as_written, pa.string())
    )
    try:
        return _frame_columns(pa_csv.read_csv(stream, parse_options=cells, convert_options=empty))
    except pa.ArrowException as error:
        raise ParseError(f"not a readable CSV file: {error}", file=name) from None


def _plain_csv(stream: BinaryIO, delimiter: str, file: str, as_written: Collection[str]) -> list[Column]:
    lines = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        return _plain_columns(reader, file, as_written)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ParseError(f"not a readable CSV file: {error}", file=file, line=reader.line_num + 1) from None
    finally:
        lines.detach()  # the caller closes it


def _plain_columns(reader: Any, file: str, as_written: Collection[str]) -> list[Column]:
    names = next(reader, None)
    if not names:
        raise ParseError("not a readable CSV file: no header row", file=file)
    blocks: list[list[AnyArray]] = [[] for _ in names]
    filled = ((reader.line_num, row) for row in reader if row)  # a blank line is no row, as Arrow sees it
    while rows := list(islice(filled, _BLOCK_ROWS)):
        for line, row in rows:
            if len(row) != len(names):
                raise ParseError(f"expected {len(names)} columns, got {len(row)}", file=file, line=line)
        for block, cells in zip(blocks, zip(*(row for _, row in rows), strict=True), strict=True):
            block.append(text_array(list(cells)))
    columns = zip(names, map(_joined, blocks), strict=True)
    return [_array_column(name, cells if name in as_written else _typed(cells)) for name, cells in columns]


def _joined(blocks: list[AnyArray]) -> AnyArray:
    """Put the blocks of a column together; if one is far wider than the others, as objects."""
    wide = max((block.dtype.itemsize for block in blocks), default=0)
    if wide * sum(map(len, blocks)) > 2 * sum(block.nbytes for block in blocks):
        blocks = [block.astype(object) for block in blocks]
    return np.concatenate(blocks or [np.empty(0)])


def _typed(cells: AnyArray) -> AnyArray:
    """Return whole numbers, numbers (an empty cell is NaN) or text: the first that fits."""
    with suppress(ValueError, OverflowError):
        return cells.astype(np.int64)
    with suppress(ValueError):
        return np.where(cells == "", "nan", cells).astype(np.float64)
    return cells


def _array_column(name: str, values: AnyArray) -> Column:
    return Column(
        name=name,
        kind="String" if values.dtype.kind in "UO" else values.dtype.name,
        numeric=values.dtype.kind in "if",
        missing=lambda: np.isnan(values) if values.dtype.kind == "f" else np.asarray(values == "", dtype=bool),
        values=lambda: values,
    )


def _frame_columns(source: Any) -> list[Column]:
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(source)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        return [_series_column(series) for series in frame.iter_columns()]
    except TypeError:
        raise InputError(
            f"cannot read a table from {type(source).__name__}: give a path or a pandas, polars or Arrow table"
        ) from None
    except UnicodeDecodeError:
        raise InputError("column names must be UTF-8 text") from None
    except DuplicateError as error:
        raise InputError(f"column names must differ: {' '.join(str(error).split())}") from None


def _series_column(series: Any) -> Column:
    import narwhals as nw

    return Column(
        name=str(series.name),
        kind=str(series.dtype),
        numeric=series.dtype.is_numeric() or series.dtype == nw.Boolean,
        missing=lambda: series.is_null().to_numpy(),
        values=lambda: _values(series),
    )


def _values(series: Any) -> AnyArray:
    """Return a column as an array; numbers that numpy has no type for (128 bits) as Python's own."""
    if "128" not in str(series.dtype):
        return np.asarray(series.to_numpy())
    result = np.empty(len(series), dtype=object)
    result[:] = series.to_list()
    return result
