"""The readers under test, each as a function of bytes that also uses what it read, the way a caller would."""

from __future__ import annotations

import io
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import toprank as tr
from toprank.data import letor
from toprank.data._columns import _plain_csv
from toprank.errors import InputError

from .promise import BrokenPromiseError, Promise

_HOME = Path(tempfile.mkdtemp(prefix="toprank-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))


def _file(data: bytes, name: str) -> Path:
    path = _HOME / f"{os.getpid()}-{name}"
    path.write_bytes(data)
    return path


def read_letor(data: bytes) -> Any:
    """LETOR text: the cut into chunks changes neither the data nor the message, and writing keeps the data."""
    outcomes = []
    for size in (1 << 16, 24):
        try:
            outcomes.append(letor._read(io.BytesIO(data), None, np.float64, None, None, 1, size=size))
        except InputError as error:
            outcomes.append(str(error))
    whole, pieces = outcomes
    if isinstance(whole, str) or isinstance(pieces, str):
        if whole != pieces:
            raise BrokenPromiseError(f"in one chunk: {whole}; in many: {pieces}")
        raise InputError(whole)
    _same(whole, pieces)
    text = io.BytesIO()
    letor.write_letor(whole, text)
    again = letor.read_letor(
        io.BytesIO(text.getvalue()), dense=not whole.is_sparse, dtype=np.float64, n_features=whole.n_features, threads=1
    )
    _same(whole, again)
    return whole


def _same(a: Any, b: Any) -> None:
    for name in ("y", "ptr", "query_ids", "doc_ids"):
        left, right = getattr(a, name), getattr(b, name)
        if (left is None) != (right is None) or (left is not None and left.tolist() != right.tolist()):
            raise BrokenPromiseError(f"{name} differs: {left!r}, {right!r}")
    if a.X.shape != b.X.shape or (a.X != b.X).sum():
        raise BrokenPromiseError("X differs")


def read_trec(data: bytes) -> Any:
    """Runs and judgements: any bytes go through both readers; what is read can be written and is read the same."""
    refusals, found = [], None
    for read, write, values in (
        (tr.read_run, tr.write_run, lambda run: run.scores[np.lexsort((run.rank, run.qid))]),
        (tr.read_qrels, tr.write_qrels, lambda qrels: qrels.grades),
    ):
        try:
            found = read(io.BytesIO(data))
        except InputError as error:
            refusals.append(error)
            continue
        path = _file(b"", "trec.txt")
        write(found, path)
        if not np.array_equal(values(found), values(read(path))):
            raise BrokenPromiseError(f"{write.__name__} and {read.__name__} do not agree")
    if len(refusals) == 2:
        raise refusals[0]
    return found


def read_model(data: bytes) -> Any:
    """Model files: a model that loads can score rows of its width and go on learning, and is saved as it is."""
    ranker = tr.load(_file(data, "model.json"))
    width = ranker.n_features_in_
    if width > 1000:
        return ranker
    X = np.random.default_rng(0).standard_normal((3, width)) if width else np.empty((3, 0))
    scores = ranker.model_.scores(X)
    if scores.shape != (3,):
        raise BrokenPromiseError(f"scores of shape {scores.shape}")
    again = _file(b"", "again.json")
    ranker.save(again)
    if not np.array_equal(tr.load(again).model_.scores(X), scores, equal_nan=True):
        raise BrokenPromiseError("a saved model scores differently")
    if hasattr(ranker, "partial_fit") and width:
        # A hyper-parameter that cannot be used is refused as if given by hand; a kernel with intrinsics of the compiler
        # does not run as plain Python.
        with suppress(ValueError, TypeError, NotImplementedError):
            ranker.partial_fit(X, np.array([0, 1, 0]))  # state of a wrong shape must not reach a kernel
    return ranker


def read_table(data: bytes) -> Any:
    """Tables: Parquet by its magic, else CSV, which both Arrow and the reader without Arrow must stand."""
    if data[:4] == b"PAR1":
        return tr.read_table(_file(data, "table.parquet"))
    refusal = None
    try:
        found = tr.read_table(_file(data, "table.csv"))
    except InputError as error:
        refusal = error
    try:
        columns = _plain_csv(io.BytesIO(data), ",", "table.csv")
        [(column.missing(), column.values()) for column in columns]
    except InputError as error:
        refusal = refusal or error
    if refusal:
        raise refusal
    return found


MB = 1 << 20
PROMISES = {
    "letor": Promise("letor", read_letor, fixed=64 * MB, factor=64),
    "trec": Promise("trec", read_trec, fixed=16 * MB, factor=64),
    "model": Promise("model", read_model, fixed=16 * MB, factor=64),
    "table": Promise("table", read_table, fixed=64 * MB, factor=64),
}
