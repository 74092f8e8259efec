"""The lines of a LETOR file on disk: raw files that grow, then the arrays of a mapped data set, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .._typing import AnyArray, Ints
from . import _rows_kernels as kernels
from ._letor_chunk import Chunk, Rules
from ._letor_store import DENSE_FROM, LineTotals, check_dense, check_ids, ends_of, gathered
from .mapped import save_array, write_header

_BLOCK = 1 << 18


class FileArray:
    """Values that are appended to a file, and read again from its beginning."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.size = 0
        self._path, self._dtype = path, np.dtype(dtype)
        self._file = path.open("w+b")

    def append(self, block: AnyArray, fraction: float | None = None) -> None:
        """Add values."""
        self._file.write(np.ascontiguousarray(block, dtype=self._dtype).data)
        self.size += len(block)

    def read(self, start: int, count: int) -> AnyArray:
        """Return some of the values."""
        self._file.flush()
        return np.fromfile(self._path, self._dtype, count, offset=start * self._dtype.itemsize)

    def mapped(self) -> AnyArray:
        """Return all values, mapped."""
        self._file.flush()
        empty = np.empty(0, dtype=self._dtype)
        return np.memmap(self._path, self._dtype, "r", shape=(self.size,)) if self.size else empty

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Block(NamedTuple):
    """Some rows in the order of the queries."""

    labels: AnyArray
    lengths: AnyArray
    values: AnyArray
    columns: AnyArray
    id_lengths: AnyArray
    id_text: AnyArray


class DiskRows:
    """Everything the lines hold, in raw files of one folder."""

    def __init__(self, rules: Rules, folder: Path) -> None:
        self._files: dict[str, FileArray] = {}

        def new_array(name: str, dtype: Any) -> FileArray:
            self._files[name] = FileArray(folder / f"{name}.raw", dtype)
            return self._files[name]

        self.totals = LineTotals(rules, new_array)
        for name, dtype in (("lengths", np.int32), ("values", rules.dtype), ("columns", np.int32)):
            new_array(name, dtype)

    def add(self, chunk: Chunk) -> None:
        """Take a chunk."""
        self.totals.add(chunk)
        chunk.drop_zeros()
        for name in ("lengths", "values", "columns"):
            self._files[name].append(getattr(chunk, name))

    def close(self) -> None:
        """Close all files."""
        for file in self._files.values():
            file.close()

    def write(self, folder: Path, dense: bool | None) -> None:
        """Write the arrays that `open_queries` opens, holding no more than a block of them in memory."""
        totals = self.totals
        ptr, query_ids, order = totals.finish()
        dense = totals.density >= DENSE_FROM if dense is None else dense
        if dense:
            check_dense(totals)
        check_ids(totals)
        np.save(folder / "ptr.npy", ptr)
        save_array(folder, "query_ids", query_ids)
        if order is not None:
            np.save(folder / "order.npy", order)
        rows, entries = totals.rows, self._files["values"].size
        ends_type = np.int32 if entries < 2**31 else np.int64
        with ExitStack() as stack:

            def array(name: str, dtype: Any, *shape: int) -> BinaryIO:
                file = stack.enter_context((folder / f"{name}.npy").open("wb"))
                about = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": tuple(map(int, shape))}
                np.lib.format.write_array_header_1_0(file, about)
                return file

            y = array("y", np.float64, rows)
            if dense:
                X = array("X", totals.rules.dtype, rows, totals.width)
            else:
                values, indices = array("values", totals.rules.dtype, entries), array("indices", np.int32, entries)
                indptr, end = array("indptr", ends_type, rows + 1), 0
                indptr.write(np.zeros(1, dtype=ends_type).data)
            ids = array("doc_ids", f"U{totals.longest_id}", rows) if totals.longest_id else None
            row_values = totals.width if dense else totals.written // rows
            for block in self._blocks(order, step=max(1, _BLOCK // max(1, row_values))):
                y.write(block.labels.data)
                if dense:
                    flat = np.empty(len(block.labels) * totals.width, dtype=totals.rules.dtype)
                    kernels.fill_rows(flat, totals.width, totals.base, block.values, block.columns, block.lengths)
                    X.write(flat.data)
                else:
                    values.write(block.values.data)
                    indices.write((block.columns - np.int32(totals.base)).data)
                    ends = end + np.cumsum(block.lengths, dtype=ends_type)
                    end = ends[-1]
                    indptr.write(ends.data)
                if ids is not None:
                    ids.write(totals.as_text(block.id_text, block.id_lengths).tobytes())
        write_header(folder, n_features=totals.width)

    def _blocks(self, order: Ints | None, step: int) -> Iterator[Block]:
        """Read `step` rows at a time again: as the file had them, or from mapped files in another order."""
        arrays = self._files
        if order is None:
            entry = letter = 0
            for start in range(0, self.totals.rows, step):
                labels, lengths, id_lengths = (arrays[n].read(start, step) for n in ("labels", "lengths", "id_lengths"))
                entries, letters = (int(each.sum(dtype=np.int64)) for each in (lengths, id_lengths))
                values, columns = (arrays[name].read(entry, entries) for name in ("values", "columns"))
                yield Block(labels, lengths, values, columns, id_lengths, arrays["id_text"].read(letter, letters))
                entry, letter = entry + entries, letter + letters
            return
        mapped = {name: file.mapped() for name, file in arrays.items()}
        ends, id_ends = ends_of(mapped["lengths"]), ends_of(mapped["id_lengths"])
        for start in range(0, self.totals.rows, step):
            rows = order[start : start + step]
            lengths = mapped["lengths"][rows]
            id_lengths = mapped["id_lengths"][rows] if self.totals.longest_id else mapped["id_lengths"]
            entries, id_bytes = int(lengths.sum(dtype=np.int64)), int(id_lengths.sum(dtype=np.int64))
            yield Block(
                mapped["labels"][rows],
                lengths,
                gathered(mapped["values"], ends, rows, entries),
                gathered(mapped["columns"], ends, rows, entries),
                id_lengths,
                gathered(mapped["id_text"], id_ends, rows, id_bytes) if id_bytes else mapped["id_text"][:0],
            )
