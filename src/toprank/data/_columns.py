"""Where tables come from: files and frames of any make, seen as named columns that are not read yet."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import AnyArray
from ..errors import InputError, MissingExtraError, ParseError
from ._text import open_bytes

METADATA = b"toprank"
"""Key under which a Parquet file of ours notes what its columns are."""

_BLOCK_ROWS = 1 << 13
"""Rows that the plain CSV reader holds as Python text at a time."""


@dataclass(frozen=True)
class Column:
    """One column, not yet read: whatever the table, this is what the reader needs to know."""

    name: str
    kind: str
    numeric: bool
    missing: Callable[[], AnyArray]
    """Mask of the empty cells."""
    values: Callable[[], AnyArray]


def open_columns(source: Any) -> tuple[dict[str, Column], dict[str, Any]]:
    """Return the columns by name, and what `write_parquet` noted about them."""
    stored: dict[str, Any] = {}
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        suffixes = [suffix.lower() for suffix in path.suffixes]
        if suffixes[-1:] in ([".parquet"], [".pq"]):
            table = _read_parquet(path)
            columns = _frame_columns(table)
            stored = json.loads((table.schema.metadata or {}).get(METADATA, b"{}"))
        elif ".csv" in suffixes or ".tsv" in suffixes:
            columns = _read_csv(path, "\t" if ".tsv" in suffixes else ",")
        else:
            raise InputError(f"{path}: a table is .parquet, .csv or .tsv (LETOR text is read by read_letor)")
    else:
        columns = _frame_columns(source)
    return {column.name: column for column in columns}, stored


def _read_parquet(path: Path) -> Any:
    pa, pq = require_pyarrow("reading Parquet"), require_pyarrow("reading Parquet", "pyarrow.parquet")
    if not path.exists():
        raise InputError(f"{path} cannot be read: No such file or directory")
    try:
        return pq.read_table(path)  # a folder of Parquet files is one table
    except (pa.ArrowInvalid, OSError) as error:
        raise ParseError(f"not a readable Parquet file: {error}", file=str(path)) from None


def _read_csv(path: Path, delimiter: str) -> list[Column]:
    """Read with Arrow where it is installed, else with the standard library: the same table, slower."""
    with open_bytes(path) as file:
        try:
            pa, pa_csv = require_pyarrow("reading CSV"), require_pyarrow("reading CSV", "pyarrow.csv")
        except MissingExtraError:
            return _plain_csv(io.TextIOWrapper(file, encoding="utf-8", newline=""), delimiter, str(path))
        layout = pa_csv.ParseOptions(delimiter=delimiter)
        empty = pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
        try:
            return _frame_columns(pa_csv.read_csv(file, parse_options=layout, convert_options=empty))
        except pa.ArrowInvalid as error:
            raise ParseError(f"not a readable CSV file: {error}", file=str(path)) from None


def _plain_csv(lines: Iterable[str], delimiter: str, file: str) -> list[Column]:
    reader = csv.reader(lines, delimiter=delimiter)
    names = next(reader, None)
    if not names:
        raise ParseError("not a readable CSV file: no header row", file=file)
    blocks: list[list[AnyArray]] = [[] for _ in names]
    while rows := list(islice(reader, _BLOCK_ROWS)):
        wrong = next((i for i, row in enumerate(rows) if len(row) != len(names)), None)
        if wrong is not None:
            line = reader.line_num - len(rows) + wrong + 1
            raise ParseError(f"expected {len(names)} columns, got {len(rows[wrong])}", file=file, line=line)
        for block, cells in zip(blocks, zip(*rows, strict=True), strict=True):
            block.append(np.array(cells))
    return [
        _array_column(name, _typed(np.concatenate(block or [np.empty(0)])))
        for name, block in zip(names, blocks, strict=True)
    ]


def _typed(cells: AnyArray) -> AnyArray:
    """Return whole numbers, numbers (an empty cell is NaN) or text: the first that fits."""
    with suppress(ValueError):
        return cells.astype(np.int64)
    with suppress(ValueError):
        return np.where(cells == "", "nan", cells).astype(np.float64)
    return cells


def _array_column(name: str, values: AnyArray) -> Column:
    return Column(
        name=name,
        kind="String" if values.dtype.kind == "U" else values.dtype.name,
        numeric=values.dtype.kind in "if",
        missing=lambda: np.isnan(values) if values.dtype.kind == "f" else values.astype(str) == "",
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
    except DuplicateError as error:
        raise InputError(f"column names must differ: {' '.join(str(error).split())}") from None


def _series_column(series: Any) -> Column:
    import narwhals as nw

    return Column(
        name=str(series.name),
        kind=str(series.dtype),
        numeric=series.dtype.is_numeric() or series.dtype == nw.Boolean,
        missing=lambda: series.is_null().to_numpy(),
        values=lambda: series.to_numpy(),
    )


def require_pyarrow(purpose: str, module: str = "pyarrow") -> Any:
    """Import Arrow, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError("pyarrow", extra="parquet", purpose=purpose) from None
