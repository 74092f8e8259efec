"""Data sets that live on disk: one folder of memory-mapped arrays."""

from __future__ import annotations

import json
import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from .._files import draft_of, sync
from .._typing import AnyArray, Ints, Matrix
from ..errors import InputError
from . import csr
from ._memory import mostly_empty
from .csr import is_sparse
from .dataset import PER_QUERY, PER_ROW, QueryDataset
from .ids import id_text
from .remote import RemoteMatrix

_FORMAT = {"format": "toprank-queries", "version": 1}
_ALWAYS_THERE = ("y", "query_ids")


def save_queries(data: QueryDataset, folder: str | os.PathLike[str]) -> Path:
    """Write a data set as a folder that `open_queries` maps without reading; it appears whole or not at all.

    >>> import tempfile
    >>> data = QueryDataset.from_arrays([[1.0], [2.0]], [0, 1])
    >>> open_queries(save_queries(data, Path(tempfile.mkdtemp()) / "queries")).X.tolist()
    [[1.0], [2.0]]
    """
    with drafting(folder) as draft:
        X = data.X
        arrays = {name: vars(data)[name] for name in ("ptr", *PER_ROW, *PER_QUERY, "order")}
        if is_sparse(X):
            arrays |= {"values": X.data, "indices": X.indices, "indptr": X.indptr}
        else:
            arrays["X"] = csr.dense(X)
        for name, array in arrays.items():
            if array is not None:
                save_array(draft, name, array)
        write_header(draft, n_features=data.n_features, feature_names=data.feature_names)
    return Path(folder)


def save_array(folder: Path, name: str, array: AnyArray) -> None:
    """Write one array; ids of any kind become text, all as wide as the longest, unless that would fill the disk."""
    if name in ("query_ids", "doc_ids"):
        array = id_text(array)
    if array.dtype == object:
        words = array.tolist()
        longest = max(map(len, words), default=0)
        size = 4 * len(words) * longest
        if mostly_empty(size, sum(map(len, words))):
            raise InputError(
                f"{name} has an id of {longest} letters among {len(words)}: they would take {size / 1e9:.1f} GB in a "
                "folder, shorten it"
            )
        array = np.array(words)
    np.save(folder / f"{name}.npy", array, allow_pickle=False)


@contextmanager
def drafting(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder beside `folder`, and rename it when the block ends without an error."""
    if not isinstance(folder, str | os.PathLike):
        raise InputError(f"folder must be the name of a folder, got {folder!r}")
    target = Path(folder)
    if target.exists():
        raise InputError(f"{target} exists already: choose another folder or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = draft_of(target)
        draft.mkdir()
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    try:
        yield draft
        for file in (*draft.iterdir(), draft):
            sync(file)
        os.rename(draft, target)
        sync(target.parent)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot write {target}: {error.strerror or error}") from None
        raise


def write_header(folder: Path, *, n_features: int, feature_names: tuple[str, ...] | None = None) -> None:
    """Write the small JSON file that makes a folder of arrays a data set."""
    header = _FORMAT | {"n_features": int(n_features), "feature_names": feature_names}
    (folder / "header.json").write_text(json.dumps(header), encoding="utf-8")


def open_queries(folder: str | os.PathLike[str], start: int = 0, stop: int | None = None) -> QueryDataset:
    """Open a folder written by `save_queries` or `stream_letor`, mapping its features instead of reading them.

    `start` and `stop` choose a run of queries, as in `data[start:stop]`. Everything is checked but the values of the
    features; the indices of a sparse matrix are read once for that, since a kernel would follow them anywhere.
    """
    path = Path(folder)
    header = _read_header(path)
    there = [n for n in (*PER_ROW, *PER_QUERY, "order") if n in _ALWAYS_THERE or (path / f"{n}.npy").exists()]
    beside: dict[str, Any] = {name: _load(path, name) for name in ("ptr", *there)}
    beside |= {name: np.array(array) for name, array in beside.items() if name != "doc_ids"}  # the largest stay mapped
    beside |= {name: id_text(beside[name]) for name in ("query_ids", "doc_ids") if name in beside}
    try:
        X = _map_X(path, header["n_features"])
        data = QueryDataset(
            X=X,
            feature_names=header["feature_names"],
            mapped=(path.resolve(), 0, max(0, beside["ptr"].size - 1)),
            **beside,
        )
        if data.n_features != header["n_features"]:
            raise InputError(f"X has {data.n_features} columns and header.json says {header['n_features']}")
        if is_sparse(data.X) and is_sparse(X) and data.X.indptr is not X.indptr:
            raise InputError("the columns of a row are not sorted")
    except InputError as error:
        raise InputError(f"{path} is damaged, write it again: {error}") from None
    return data if start == 0 and stop is None else data[start:stop]


def map_rows(folder: Path, start: int, stop: int) -> Matrix:
    """Map the features of queries start:stop of a folder that was opened, and so checked, before."""
    X, ptr = _map_X(folder, _read_header(folder)["n_features"]), _load(folder, "ptr")
    return csr.rows(X, int(ptr[start]), int(ptr[stop]))


def read_in_any_order(X: Matrix, order: Ints) -> AbstractContextManager[None]:
    """Tell the system that rows of a mapped X are read in this order: it would read megabytes around each of them.

    Rows in memory, and rows in their own order, are left alone. Only what is read from disk changes: 40 GiB for .58 GiB
    of rows became 1.
    """
    return nullcontext() if len(order) < 2 else _advised(X, order)


@contextmanager
def _advised(X: Any, order: Ints) -> Iterator[None]:
    parts = (X.data, X.indices) if csr.is_sparse(X) else (X,)
    back = bool((order[1:] < order[:-1]).any())
    maps = {id(found): found for part in parts if back and (found := _map_of(part)) is not None}.values()
    for found in maps:
        found.madvise(mmap.MADV_RANDOM)
    try:
        yield
    finally:
        for found in maps:
            found.madvise(mmap.MADV_NORMAL)


def check_whole(X: Any) -> None:
    """Refuse a mapped X whose file was cut since it was opened: reading on would end the process.

    >>> check_whole(np.zeros((2, 2)))
    """
    if isinstance(X, RemoteMatrix):
        return
    for part in (X.data, X.indices) if csr.is_sparse(X) else (X,):
        found = _map_of(part)
        size = None if found is None else _size_of_file(found)
        if found is not None and size is not None and size < len(found):
            raise InputError(
                f"the mapped file is {size:,} bytes long and was {len(found):,} when it was opened: it was cut "
                "meanwhile; write the folder again and open it anew"
            )


def _size_of_file(mapped: mmap.mmap) -> int | None:
    """Return how long the file behind a map is now; None for memory without a file."""
    try:
        return mapped.size()
    except OSError:
        return None


def _map_of(array: Any) -> mmap.mmap | None:
    """Return the map that an array is a view of."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array if isinstance(array, mmap.mmap) and hasattr(array, "madvise") else None


def _map_X(path: Path, n_features: int) -> Matrix:
    if (path / "X.npy").exists():
        return _load(path, "X", np.float32, np.float64)
    values, columns = _load(path, "values", np.float32, np.float64), _load(path, "indices", np.int32, np.int64)
    return csr.csr_of(values, columns, _load(path, "indptr", np.int32, np.int64), n_features)


def _load(path: Path, name: str, *dtypes: Any) -> AnyArray:
    """Map an array, row by row and of one of these types: a mapped array cannot be converted."""
    file = path / f"{name}.npy"
    try:
        array: AnyArray = np.load(file, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy parses a header of any contents: what it raises then is anything
        raise InputError(f"{file} cannot be read: {error}") from None
    if not isinstance(array, np.ndarray) or (dtypes and array.dtype not in dtypes) or not array.flags.c_contiguous:
        kinds = " or ".join(np.dtype(kind).name for kind in dtypes) or "one type"
        raise InputError(f"{file} must hold an array of {kinds}, row by row, in the byte order of this machine")
    return array


def _read_header(path: Path) -> dict[str, Any]:
    try:
        header = json.loads((path / "header.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise InputError(f"{path} is not a folder written by toprank: it has no readable header.json") from None
    if not isinstance(header, dict) or {key: header.get(key) for key in _FORMAT} != _FORMAT:
        raise InputError(f"{path}/header.json is not version {_FORMAT['version']} of the toprank-queries format")
    names, width = header.get("feature_names"), header.get("n_features")
    if type(width) is not int or not 0 <= width < 2**31:
        raise InputError(f"{path}/header.json: n_features must be a whole number, got {width!r}")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InputError(f"{path}/header.json: feature_names must be a list of text, or null")
    return {"n_features": width, "feature_names": names}
