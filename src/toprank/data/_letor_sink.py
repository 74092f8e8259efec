"""Where the rows of a LETOR file go: blocks are collected, in memory or on disk, and then written into whole arrays."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeAlias

import numpy as np

from .._typing import AnyArray, Ints
from ..errors import InputError
from . import _memory, _rows_kernels
from ._letor_chunk import Block, Chunk, Rules, decode_ids
from ._text import text_array
from .grouping import group_runs
from .mapped import save_array

DENSE_FROM = 0.25
"""X is dense if the file writes at least this part of its cells. Below, CSR is smaller and faster."""


Places: TypeAlias = "slice | Ints"


class Spool(Protocol):
    """Arrays that are given back once, in the order in which they came."""

    def add(self, *arrays: AnyArray) -> None:
        """Keep copies of some arrays."""

    def __iter__(self) -> Iterator[list[AnyArray]]: ...


class Store(Protocol):
    """A place for the arrays of a data set."""

    one_width: bool
    """Whether all text of an array must have the same width."""

    def spool(self) -> Spool:
        """Return a new spool."""

    def put(self, name: str, array: AnyArray) -> None:
        """Keep a whole array."""

    def create(self, name: str, dtype: Any, *shape: int) -> None:
        """Make an array that is filled later."""

    def open(self, name: str) -> AnyArray:
        """Return an array to be filled, and to be let go after each block."""


class MemorySpool:
    """Arrays in memory that goes back to the system as soon as they were given back."""

    def __init__(self) -> None:
        self._kept: deque[list[AnyArray]] = deque()
        self._size = 0

    def add(self, *arrays: AnyArray) -> None:
        self._size += sum(array.nbytes for array in arrays)
        if self._size > _memory.physical_memory():
            raise MemoryError
        self._kept.append(_copies(arrays))

    def __iter__(self) -> Iterator[list[AnyArray]]:
        while self._kept:
            yield self._kept.popleft()


def _copies(arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """Copy arrays into a piece of memory that the system takes back when they are gone; the heap would keep it."""
    ends = np.cumsum([-(-array.nbytes // 16) * 16 for array in arrays]).tolist()
    try:
        memory = mmap.mmap(-1, max(1, ends[-1]), **_PRIVATE)
    except OSError:  # more than the system grants
        raise MemoryError from None
    copies = []
    for array, start in zip(arrays, [0, *ends[:-1]], strict=True):
        copies.append(np.ndarray(array.shape, array.dtype, memory, start))
        copies[-1][...] = array
    return copies


_PRIVATE: dict[str, int] = {}
if hasattr(mmap, "MAP_ANONYMOUS"):
    _PRIVATE["flags"] = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)


class MemoryStore:
    """Arrays in memory, by their names."""

    one_width = False

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}

    def spool(self) -> Spool:
        return MemorySpool()

    def put(self, name: str, array: AnyArray) -> None:
        self.arrays[name] = array

    def create(self, name: str, dtype: Any, *shape: int) -> None:
        if np.prod(shape, dtype=float) * np.dtype(dtype).itemsize > _memory.physical_memory():
            raise MemoryError
        self.arrays[name] = np.empty(shape, dtype=dtype)

    def open(self, name: str) -> AnyArray:
        return self.arrays[name]


class FileSpool:
    """Arrays in an open file."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._counts: list[int] = []

    def add(self, *arrays: AnyArray) -> None:
        for array in arrays:
            np.lib.format.write_array(self._file, array, allow_pickle=False)
        self._counts.append(len(arrays))

    def __iter__(self) -> Iterator[list[AnyArray]]:
        self._file.seek(0)
        for count in self._counts:
            yield [np.lib.format.read_array(self._file, allow_pickle=False) for _ in range(count)]


class FolderStore(ExitStack):
    """Arrays in files of a folder, as `open_queries` maps them; a block at a time is in memory.

    Spools are files without a name, which are gone when the store is closed.
    """

    one_width = True

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def spool(self) -> Spool:
        return FileSpool(self.enter_context(tempfile.TemporaryFile(dir=self._folder)))

    def put(self, name: str, array: AnyArray) -> None:
        save_array(self._folder, name, array)

    def create(self, name: str, dtype: Any, *shape: int) -> None:
        about = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
        with self._path(name).open("wb") as file:
            np.lib.format.write_array_header_1_0(file, about)
            _extend(file, int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize)

    def open(self, name: str) -> AnyArray:
        # A new map each time: what was written through the one before no longer counts as memory of this process.
        return np.asarray(np.load(self._path(name), mmap_mode="r+"))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.npy"


def _extend(file: BinaryIO, size: int) -> None:
    """Make a file longer by so many zeros that are on the disk: where it is full, writing to a map kills a process."""
    if hasattr(os, "posix_fallocate") and size:
        file.flush()
        os.posix_fallocate(file.fileno(), file.tell(), size)
        return
    zeros = bytes(1 << 20)
    for start in range(0, size, len(zeros)):
        file.write(zeros[: size - start])


class Sink:
    """Takes the chunks of a file one after the other, and makes the arrays of a data set of them."""

    def __init__(self, rules: Rules, store: Store) -> None:
        self._rules, self._store = rules, store
        self._labels, self._blocks = store.spool(), store.spool()
        self._rows = self._written = self._stored = self._top_index = 0
        self._has_index_zero = rules.zero_based is True
        self._query_starts: list[int] = []
        self._query_names: list[str] = []
        self._longest_id = self._id_bytes = 0
        self.has_queries = False

    @property
    def _base(self) -> int:
        """The index of the first feature."""
        return 0 if self._has_index_zero else 1

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._rules.n_features or max(0, self._top_index - self._base + 1)

    def add(self, chunk: Chunk) -> None:
        """Take a chunk."""
        if len(chunk.labels) == 0:
            return
        self.has_queries = chunk.has_queries
        for start, name in zip(chunk.query_starts, chunk.query_names, strict=True):
            if not self._query_names or name != self._query_names[-1]:  # a query may go on in the next chunk
                self._query_starts.append(self._rows + start)
                self._query_names.append(name)
        self._labels.add(chunk.labels, chunk.block.lengths)
        self._blocks.add(*chunk.block)
        self._rows += len(chunk.labels)
        self._written += chunk.written
        self._stored += int(chunk.block.lengths.sum(dtype=np.int64))
        self._top_index = max(self._top_index, chunk.top_index)
        self._has_index_zero |= chunk.has_index_zero
        self._longest_id = max(self._longest_id, chunk.longest_id)
        self._id_bytes += len(chunk.block.ids)

    def finish(self, dense: bool | None) -> None:
        """Write all arrays into the store: X or the parts of a CSR matrix, labels, and what says which query is where.

        Rows stand in the order of their queries. A block is in memory at a time, and gone when its rows are written.
        """
        self._check()
        rows, width, dtype, create = self._rows, self.n_features, self._rules.dtype, self._store.create
        dense = self._written >= DENSE_FROM * rows * width if dense is None else dense
        if dense:
            self._check_dense()
        id_type = self._id_type() if self._longest_id else None
        order = self._group()
        create("y", np.float64, rows)
        if dense:
            create("X", dtype, rows, width)
        else:
            create("values", dtype, self._stored)
            create("indices", np.int32, self._stored)
            create("indptr", np.int32 if self._stored < 2**31 else np.int64, rows + 1)
        if id_type is not None:
            create("doc_ids", id_type, rows)
        places = None
        if order is not None:
            places = np.empty_like(order)
            places[order] = np.arange(rows)
        self._write_labels(places, dense)
        self._write_blocks(places, dense)

    def _check(self) -> None:
        name, width = self._rules.name, self.n_features
        if self._rows == 0:
            raise InputError(f"{name} holds no data: not one line with a label")
        if width == 0:
            raise InputError(f"{name} holds no features: lines need feature:value pairs, or pass n_features")
        if self._top_index - self._base >= width:
            raise InputError(f"{name} has features 0 to {self._top_index}: n_features={width} is too small")

    def _check_dense(self) -> None:
        """Refuse a dense array that is large and all but empty, before it is made."""
        rows, width, written = self._rows, self.n_features, self._written
        size = rows * width * self._rules.dtype.itemsize
        if _memory.mostly_empty(size, written):
            raise InputError(
                f"{self._rules.name}: {rows} rows of {width} features hold {written} values: as a dense array they "
                f"would take {size / 1e9:.1f} GB, pass dense=False"
            )

    def _id_type(self) -> str | type[object]:
        """Return the type of an array of document ids: a few very long ones shall not make all wide."""
        longest, size = self._longest_id, 4 * self._rows * self._longest_id
        if not self._store.one_width:
            return object if longest > 32 + 4 * self._id_bytes / self._rows else f"U{longest}"
        if _memory.mostly_empty(size, self._id_bytes):
            raise InputError(
                f"{self._rules.name}: a document id of {longest} letters among {self._rows} rows would take "
                f"{size / 1e9:.1f} GB in a folder: shorten it, or use read_letor"
            )
        return f"U{longest}"

    def _group(self) -> Ints | None:
        """Write which rows belong to which query; return the order that brings them together, if there must be one."""
        order = None
        ptr, query_ids = np.array([0, self._rows], dtype=np.int64), np.array(["0"])
        if self.has_queries:
            starts = np.array(self._query_starts, dtype=np.int64)
            ptr, query_ids, order = group_runs(text_array(self._query_names), starts, self._rows)
        self._store.put("ptr", ptr)
        self._store.put("query_ids", query_ids)
        if order is not None:
            self._store.put("order", order)
        return order

    def _write_labels(self, places: Ints | None, dense: bool) -> None:
        at = 0
        for labels, lengths in self._labels:
            rows = _rows_at(at, len(labels), places)
            at += len(labels)
            self._store.open("y")[rows] = labels
            if not dense:
                self._store.open("indptr")[1:][rows] = lengths
        if not dense:
            indptr = self._store.open("indptr")
            indptr[0] = 0
            np.cumsum(indptr, dtype=indptr.dtype, out=indptr)

    def _write_blocks(self, places: Ints | None, dense: bool) -> None:
        at = 0
        write = self._write_dense if dense else self._write_sparse
        for parts in self._blocks:
            block = Block(*parts)
            rows = _rows_at(at, len(block.lengths), places)
            at += len(block.lengths)
            write(block, rows)
            if self._longest_id:
                self._store.open("doc_ids")[rows] = decode_ids(block.ids) if len(block.ids) else ""

    def _write_dense(self, block: Block, rows: Places) -> None:
        X, left, values = self._store.open("X"), int(block.first) - self._base, block.values
        if values.ndim == 1:
            values = np.zeros((len(block.lengths), X.shape[1] - left), dtype=X.dtype)
            _rows_kernels.fill_rows(values, int(block.first), block.lengths, block.values, block.columns)
        right = left + values.shape[1]
        X[rows, :left], X[rows, left:right], X[rows, right:] = 0, values, 0

    def _write_sparse(self, block: Block, rows: Places) -> None:
        values, columns = block.values, block.columns
        if values.ndim == 2:
            stored = (values != 0) | np.signbit(values)
            columns = (np.nonzero(stored)[1] + block.first).astype(np.int32)
            values = values[stored]
        store = self._store
        starts = store.open("indptr")[:-1][rows]
        columns = columns - np.int32(self._base)
        _rows_kernels.place_entries(starts, block.lengths, values, columns, store.open("values"), store.open("indices"))


def _rows_at(start: int, n: int, places: Ints | None) -> Places:
    """Return where n rows of the file go, from row `start` on."""
    return slice(start, start + n) if places is None else places[start : start + n]
