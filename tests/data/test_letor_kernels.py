"""Kernels that copy rows must let go of the arrays: memory that cannot be released is lost."""

from __future__ import annotations

import io
import sys

import numpy as np

import toprank as tr
from toprank.data import _letor_kernels as kernels
from toprank.data import _rows_kernels
from toprank.data._letor_chunk import _make_room


def references(*arrays: np.ndarray) -> list[int]:
    return [sys.getrefcount(array) for array in arrays]


def test_no_kernel_keeps_a_reference():
    values, columns = np.arange(1.0, 13.0, dtype=np.float32), np.tile(np.arange(1, 5, dtype=np.int32), 3)
    lengths, starts, grid = np.full(3, 4, dtype=np.int32), np.array([8, 0, 4]), np.zeros((3, 5), dtype=np.float32)
    text = np.frombuffer(b"1 qid:a 1:2 2:0.5 #docid = x\n" * 3 + b"2 qid:b 2:1 1:3e5 #y\n", dtype=np.uint8)
    rows, entries = _make_room(4, 20, np.dtype(np.float32))
    spans = np.array([1, 5, 7], dtype=np.int32)
    calls = [
        (kernels.parse_lines, (text, kernels.Limits(0, 10, True), rows, entries)),
        (kernels.count_byte, (text, kernels.LF)),
        (kernels.join_ids, (text, spans, lengths, np.zeros(15, np.uint8))),
        (_rows_kernels.count_stored, (values, lengths)),
        (_rows_kernels.fill_rows, (grid, 0, lengths, values, columns)),
        (
            _rows_kernels.place_entries,
            (starts, lengths, values, columns, np.zeros(12, np.float32), np.zeros(12, np.int32)),
        ),
    ]
    for kernel, arguments in calls:
        arrays = [argument for argument in (*arguments, *rows, *entries) if isinstance(argument, np.ndarray)]
        before = references(*arrays)
        kernel(*arguments)
        after = references(*arrays)
        assert after == before, kernel.__name__


def test_writing_keeps_no_reference():
    data = tr.QueryDataset.from_arrays(np.eye(3), [0, 1, 2], doc_ids=["a", "b", "c"])
    before = references(data.X, data.y, data.doc_ids)
    tr.write_letor(data, io.BytesIO())
    after = references(data.X, data.y, data.doc_ids)
    assert after == before
