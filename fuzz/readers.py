"""The readers under test, each as a function of bytes that also uses what it read, the way a caller would."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import tempfile
import zipfile
from collections.abc import Callable
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
    """LETOR text: chunks, threads and the way over a folder change neither data nor message; writing keeps the data."""
    folder = _HOME / f"{os.getpid()}-streamed"
    shutil.rmtree(folder, ignore_errors=True)
    threads = 1 if os.environ.get("NUMBA_DISABLE_JIT") else 3  # plain Python warns of overflow, thread by thread
    ways: tuple[Callable[[], Any], ...] = (
        lambda: letor._read(io.BytesIO(data), None, np.float64, None, None, 1, size=1 << 16)[0],
        lambda: letor._read(io.BytesIO(data), None, np.float64, None, None, 1, size=24)[0],
        lambda: letor._read(io.BytesIO(data), None, np.float64, None, None, threads, size=max(24, len(data) // 50))[0],
        lambda: letor.stream_letor(io.BytesIO(data), folder, dtype=np.float64, threads=threads, one_list=True),
    )
    outcomes: list[Any] = []
    for way in ways:
        try:
            outcomes.append(way())
        except InputError as error:
            outcomes.append(str(error))
    whole = outcomes[0]
    for other in outcomes[1:]:
        if isinstance(whole, str) or isinstance(other, str):
            # Only a folder keeps all document ids as wide as the longest, and refuses what would fill the disk.
            if whole != other and "in a folder" not in str(other):
                raise BrokenPromiseError(f"in one chunk: {whole}; another way: {other}")
        else:
            _same(whole, other)
    if isinstance(whole, str):
        raise InputError(whole)
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
    rows = tr.QueryDataset.from_arrays(X, np.array([0, 1, 0]), feature_names=ranker.inputs_.names)
    scores = ranker.model_.scores(rows)
    if scores.shape != (3,):
        raise BrokenPromiseError(f"scores of shape {scores.shape}")
    again = _file(b"", "again.json")
    ranker.save(again)
    if not np.array_equal(tr.load(again).model_.scores(rows), scores, equal_nan=True):
        raise BrokenPromiseError("a saved model scores differently")
    with suppress(InputError):  # a hyper-parameter that cannot be used is refused as if given by hand
        tr.certify(ranker, rows)
    if hasattr(ranker, "partial_fit"):
        with suppress(InputError):
            ranker.partial_fit(X, np.array([0, 1, 0]))  # state of a wrong shape must not reach a kernel
    return ranker


def read_folder(data: bytes) -> Any:
    """Folders of arrays, packed as a zip file: what opens can be learned from, scored, cut and read whole."""
    folder = _HOME / f"{os.getpid()}-folder"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist()[:20]:
                if entry.file_size <= 1 << 20 and "/" not in entry.filename and entry.filename.strip("."):
                    (folder / entry.filename).write_bytes(archive.read(entry))
    except Exception:  # damage of the zip file is not what is looked for
        (folder / "header.json").write_bytes(data)
    found = tr.open_queries(folder)
    for part in (found, found[: found.n_queries // 2], pickle.loads(pickle.dumps(found[1:]))):
        if part.n_docs and 0 < part.n_features <= 1000:
            with suppress(InputError):
                tr.SlamPerceptron(epochs=1).fit_queries(part).predict(part)
    return found


def read_export(data: bytes) -> Any:
    """Exported models: what is read scores rows of its width as the engine would."""
    target, replica = tr.export.read(_file(data, "export"))
    if replica.n_features <= 1000:
        X = np.random.default_rng(0).standard_normal((3, replica.n_features))
        if replica.score_rows(X).shape != (3,) or replica.rounding(X).shape != (3,):
            raise BrokenPromiseError(f"{target}: not one score per row")
    return replica


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
        columns = _plain_csv(io.BytesIO(data), ",", "table.csv", ("query", "doc_id"))
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
    "folder": Promise("folder", read_folder, fixed=64 * MB, factor=64),
    "export": Promise("export", read_export, fixed=64 * MB, factor=64),
}
