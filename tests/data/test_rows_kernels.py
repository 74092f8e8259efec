"""Kernels that copy rows must let go of the arrays: memory that cannot be released is lost."""

from __future__ import annotations

import io
import sys

import numpy as np

import toprank as tr
from toprank.data import _rows_kernels
from toprank.data._letor_chunk import Chunk, Rules, power_table


def references(*arrays: np.ndarray) -> list[int]:
    return [sys.getrefcount(array) for array in arrays]


def test_no_kernel_keeps_a_reference():
    values, columns = np.arange(1.0, 13.0, dtype=np.float32), np.tile(np.arange(1, 5, dtype=np.int32), 3)
    lengths, flat = np.full(3, 4, dtype=np.int32), np.zeros(20, dtype=np.float32)
    X, order, done, spare = np.ones((3, 4)), np.array([2, 0, 1]), np.zeros(3, dtype=bool), np.zeros(4)
    text, spans, out = np.arange(50, dtype=np.uint8), np.array([[1, 3], [5, 2]]), np.zeros(40, dtype=np.uint8)
    points, ends = np.zeros((3, 4), dtype=np.uint32), np.array([4, 8, 12])
    calls = [
        (_rows_kernels.fill_rows, (flat, 4, 1, values, columns, lengths)),
        (_rows_kernels.fill_rows, (flat, 5, 1, values, columns, lengths)),
        (_rows_kernels.count_entries, (flat, 4, lengths.copy())),
        (_rows_kernels.take_entries, (flat[:12], 4, 1, np.zeros(20, np.float32), np.zeros(20, np.int32))),
        (_rows_kernels.widen_rows, (flat, 3, 4, 5, 1)),
        (_rows_kernels.gather, (values, ends, order, np.zeros(12, np.float32))),
        (_rows_kernels.reorder_rows, (X, order, done, spare)),
        (_rows_kernels.spread_text, (text, lengths, points)),
        (_rows_kernels.take_spans, (text, spans, out)),
    ]
    for kernel, arguments in calls:
        arrays = [argument for argument in arguments if isinstance(argument, np.ndarray)]
        before = references(*arrays)
        kernel(*arguments)
        after = references(*arrays)
        assert after == before, kernel.__name__


def test_neither_parsing_nor_writing_keeps_a_reference():
    chunk = Chunk(Rules("x", np.dtype(np.float32), None, None))
    chunk.bytes = bytearray(b"1 qid:a 1:2 2:0.5 #docid = x\n" * 3 + b"2 qid:b 2:1 1:3 #y\n")
    chunk.size = len(chunk.bytes)
    chunk.parse()
    arrays = [*chunk._rows.values(), *chunk._entries.values(), *power_table()]
    before = references(*arrays)
    chunk.parse()
    after = references(*arrays)
    assert after == before
    data = tr.QueryDataset.from_arrays(np.eye(3), [0, 1, 2], doc_ids=["a", "b", "c"])
    before = references(data.X, data.y, data.doc_ids)
    tr.write_letor(data, io.BytesIO())
    after = references(data.X, data.y, data.doc_ids)
    assert after == before


def test_rows_are_reordered_in_place():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 50):
        X, order = rng.random((n, 3)), rng.permutation(n)
        want = X[order]
        _rows_kernels.reorder_rows(X, order, np.zeros(n, dtype=bool), np.zeros(3))
        assert np.array_equal(X, want)
