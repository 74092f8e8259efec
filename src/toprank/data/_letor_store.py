"""What the lines of a LETOR file add up to: counts, ids and labels, and features in memory that grow in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._typing import AnyArray, Ints, Matrix
from ..errors import InputError
from . import _rows_kernels as kernels
from ._growing import GrowingArray, mostly_empty
from ._letor_chunk import Chunk, Rules
from ._text import text_array
from .csr import csr_of
from .grouping import group_runs

DENSE_FROM = 0.25
"""X is dense if the file writes at least this part of its cells. Below, CSR is smaller and faster."""

_BACK_TO_DENSE = 0.5
"""While reading, a sparse X becomes dense from here on: twice as high, so that it does not go to and fro."""
_BLOCK = 1 << 24


class LineTotals:
    """What the lines say apart from their features: counts, labels, query ids and document ids."""

    def __init__(self, rules: Rules, new_array: Callable[[str, Any], Any]) -> None:
        self.rules = rules
        self.rows = self.written = self.top_index = 0
        self.zero_index = rules.zero_based is True
        self.has_qid: bool | None = None
        self.labels = new_array("labels", np.float64)
        self.id_text, self.id_lengths = new_array("id_text", np.uint8), new_array("id_lengths", np.int32)
        self.longest_id = 0
        self.ids_are_ascii = True
        self._starts, self._ids = GrowingArray(np.int64), GrowingArray(np.int64)
        self._names: dict[int, str] = {}

    @property
    def base(self) -> int:
        """The index of the first feature, as far as the lines have told."""
        return 0 if self.zero_index else 1

    @property
    def width(self) -> int:
        """Number of features."""
        return self.rules.n_features or max(0, self.top_index - self.base + 1)

    @property
    def too_wide(self) -> bool:
        """Whether the lines have more features than the caller allows, counted from 0."""
        return self.top_index - self.base >= self.width > 0

    @property
    def density(self) -> float:
        """Part of the cells that the file writes, be it as 0."""
        return self.written / max(1, self.rows * self.width)

    def add(self, chunk: Chunk) -> None:
        """Count a chunk in, or raise what is wrong with it."""
        chunk.check(self.has_qid)
        parsed = chunk.parsed
        if parsed.rows == 0:
            return
        self.has_qid = parsed.has_qid
        self._names |= {self._starts.size + run: name for run, name in chunk.run_names.items()}
        self._starts.append(chunk.runs[:, 0] + self.rows)
        self._ids.append(chunk.runs[:, 1])
        if parsed.id_bytes:
            self._add_ids(chunk)
        self.labels.append(chunk.labels, chunk.fraction)
        self.rows += parsed.rows
        self.written += parsed.entries
        self.top_index = max(self.top_index, parsed.top_index)
        self.zero_index |= parsed.zero_index

    def _add_ids(self, chunk: Chunk) -> None:
        self._fill_ids(self.rows)
        self.id_lengths.append(chunk.id_lengths, chunk.fraction)
        self.id_text.append(chunk.id_text, chunk.fraction)
        longest = int(chunk.id_lengths.max())
        if not chunk.id_text.tobytes().isascii():
            self.ids_are_ascii = False
            longest = max(map(len, _decoded(chunk.id_text, chunk.id_lengths)))
        self.longest_id = max(self.longest_id, longest)

    def _fill_ids(self, rows: int) -> None:
        """Note that the rows up to here that are not counted yet have no id."""
        while self.id_lengths.size < rows:
            self.id_lengths.append(np.zeros(min(_BLOCK, rows - self.id_lengths.size), dtype=np.int32))

    def finish(self) -> tuple[Ints, AnyArray, Ints | None]:
        """Check the whole and group its rows: `(ptr, query_ids, order)` as `group_rows` gives them."""
        name = self.rules.name
        if self.rows == 0:
            raise InputError(f"{name} holds no data: not one line with a label")
        if self.width == 0:
            raise InputError(f"{name} holds no features: lines need feature:value pairs, or pass n_features")
        if self.too_wide:
            raise InputError(f"{name} has features 0 to {self.top_index}: n_features={self.width} is too small")
        if self.longest_id:
            self._fill_ids(self.rows)
        if not self.has_qid:
            return np.array([0, self.rows], dtype=np.int64), np.array(["0"]), None
        heads, starts = self._ids.take(), self._starts.take()
        heads = text_array([self._names.get(run) or str(head) for run, head in enumerate(heads.tolist())])
        first = np.concatenate(([True], heads[1:] != heads[:-1]))  # a query may go on in the next chunk
        return group_runs(heads[first], starts[first], self.rows)

    def doc_ids(self) -> AnyArray | None:
        """Return all ids from memory, or None if there are none; a few very long ones do not make all wide."""
        if not self.longest_id:
            return None
        raw, lengths = self.id_text.take(), self.id_lengths.take()
        if self.longest_id <= 32 + 4 * len(raw) / self.rows:
            return self.as_text(raw, lengths)
        result = np.empty(self.rows, dtype=object)
        result[:] = _decoded(raw, lengths)
        return result

    def as_text(self, raw: AnyArray, lengths: AnyArray) -> AnyArray:
        """Return document ids as an array of text of one width."""
        width = self.longest_id
        if not self.ids_are_ascii:
            return np.array(_decoded(raw, lengths), dtype=f"U{width}")
        points = np.empty((len(lengths), width), dtype=np.uint32)
        kernels.spread_text(raw, lengths, points)
        return points.view(f"U{width}")[:, 0]


class MemoryRows:
    """Features in memory: dense while that is what the file is like, else CSR."""

    def __init__(self, totals: LineTotals, dense: bool | None) -> None:
        self._totals, self._asked = totals, dense
        self._dense: bool | None = None
        self._dtype = totals.rules.dtype
        self._rows = self._width = self._base = 0
        self._flat = GrowingArray(self._dtype)
        self._values, self._columns = GrowingArray(self._dtype), GrowingArray(np.int32)
        self._lengths = GrowingArray(np.int32)

    def add(self, chunk: Chunk) -> None:
        """Take the entries of a chunk that is counted in the totals."""
        if self._totals.rows == self._rows or self._totals.too_wide:
            return
        self._choose_form(DENSE_FROM if self._dense in (None, True) else _BACK_TO_DENSE)
        if self._dense:
            rows = self._flat.extend(len(chunk.lengths) * self._width, chunk.fraction)
            kernels.fill_rows(rows, self._width, self._base, chunk.values, chunk.columns, chunk.lengths)
        else:
            chunk.drop_zeros()
            self._values.append(chunk.values, chunk.fraction)
            self._columns.append(chunk.columns, chunk.fraction)
            self._lengths.append(chunk.lengths, chunk.fraction)
        self._rows = self._totals.rows

    def _choose_form(self, dense_from: float) -> None:
        """Make the rows so far dense or sparse, wide enough, and counted from the right index."""
        dense = self._totals.density >= dense_from if self._asked is None else self._asked
        if dense:
            check_dense(self._totals)
            if not self._dense:
                self._to_dense()
            self._widen(self._totals.width, self._totals.base)
        elif self._dense:
            self._to_sparse()
        self._dense = dense

    def _widen(self, width: int, base: int) -> None:
        if (width, base) != (self._width, self._base):
            self._flat.extend((width - self._width) * self._rows)
            kernels.widen_rows(self._flat.whole(), self._rows, self._width, width, self._base - base)
            self._width, self._base = width, base

    def _to_dense(self) -> None:
        """Copy from the last rows to the first, giving back their memory: never are both forms there as a whole."""
        self._width, self._base = self._totals.width, self._totals.base
        flat = self._flat.extend(self._rows * self._width, fraction=1.0)
        lengths = self._lengths.take()
        step = self._block_rows()
        for start in range((self._rows - 1) // step * step, -1, -step):
            first = self._values.size - int(lengths[start : start + step].sum())
            values, columns = self._values.whole()[first:], self._columns.whole()[first:]
            block = flat[start * self._width :]
            kernels.fill_rows(block, self._width, self._base, values, columns, lengths[start : start + step])
            del values, columns  # or the memory could not be given back
            self._values.cut(first)
            self._columns.cut(first)

    def _to_sparse(self) -> None:
        lengths = self._lengths.extend(self._rows)
        lengths[:] = 0
        kernels.count_entries(self._flat.whole(), self._width, lengths)
        total = int(lengths.sum(dtype=np.int64))
        values, columns = self._values.extend(total, fraction=1.0), self._columns.extend(total, fraction=1.0)
        step = self._block_rows()
        for start in range((self._rows - 1) // step * step, -1, -step):
            stop = total
            total -= int(lengths[start : start + step].sum(dtype=np.int64))
            block = self._flat.whole()[start * self._width :]
            kernels.take_entries(block, self._width, self._base, values[total:stop], columns[total:stop])
            self._flat.cut(start * self._width)

    def _block_rows(self) -> int:
        return max(1, _BLOCK // max(1, self._width * self._dtype.itemsize))

    def finish(self, order: Ints | None) -> Matrix:
        """Return X with its rows in the order of the queries."""
        self._choose_form(DENSE_FROM)
        if self._dense:
            X = self._flat.take().reshape(self._rows, self._width)
            if order is not None:
                kernels.reorder_rows(X, order, np.zeros(len(order), dtype=bool), np.empty_like(X[0]))
            return X
        lengths = self._lengths.take()
        ends = ends_of(lengths)
        values, columns = self._values.take(), self._columns.take()
        if order is not None:
            values = gathered(values, ends, order, len(values))
            columns = gathered(columns, ends, order, len(columns))
            ends = ends_of(lengths[order])
        columns -= self._totals.base
        indptr = np.concatenate((np.zeros(1, dtype=ends.dtype), ends))
        return csr_of(values, columns, indptr, self._totals.width)


def _decoded(raw: AnyArray, lengths: AnyArray) -> list[str]:
    """Return the texts that stand one behind the other."""
    data, stops = raw.tobytes(), np.cumsum(lengths, dtype=np.int64).tolist()
    return [data[stop - n : stop].decode() for stop, n in zip(stops, lengths.tolist(), strict=True)]


def ends_of(lengths: AnyArray) -> AnyArray:
    """Return where each run ends, in 32 bits if they are enough."""
    total = int(lengths.sum(dtype=np.int64))
    return np.cumsum(lengths, dtype=np.int32 if total < 2**31 else np.int64)


def gathered(source: AnyArray, ends: AnyArray, order: Ints, total: int) -> AnyArray:
    """Return the runs of `source` that `order` lists, `total` values in all."""
    out = np.empty(total, dtype=source.dtype)
    kernels.gather(source, ends, order, out)
    return out


def check_dense(totals: LineTotals) -> None:
    """Refuse a dense array that is large and all but empty, before it is made."""
    size = totals.rows * totals.width * totals.rules.dtype.itemsize
    if mostly_empty(size, totals.written):
        raise InputError(
            f"{totals.rules.name}: {totals.rows} rows of {totals.width} features hold {totals.written} values: as a "
            f"dense array they would take {size / 1e9:.1f} GB, pass dense=False"
        )


def check_ids(totals: LineTotals) -> None:
    """Refuse document ids of which one is so long that a mapped array, all of one width, would be all but empty."""
    size = 4 * totals.rows * totals.longest_id
    if mostly_empty(size, totals.id_text.size):
        raise InputError(
            f"{totals.rules.name}: a document id of {totals.longest_id} letters among {totals.rows} rows would take "
            f"{size / 1e9:.1f} GB in a folder: shorten it, or use read_letor"
        )
