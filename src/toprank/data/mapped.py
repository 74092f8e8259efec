"""Data sets that live on disk: one folder of memory-mapped arrays."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Matrix
from ..errors import InputError
from . import validation
from .dataset import QueryDataset

_FORMAT = {"format": "toprank-queries", "version": 1}


def save_queries(data: QueryDataset, folder: str | os.PathLike[str]) -> Path:
    """Write a data set as a folder that `open_queries` maps without reading; it appears whole or not at all.

    >>> import tempfile
    >>> data = QueryDataset.from_arrays([[1.0], [2.0]], [0, 1])
    >>> open_queries(save_queries(data, Path(tempfile.mkdtemp()) / "queries")).X.tolist()
    [[1.0], [2.0]]
    """
    with drafting(folder) as draft:
        X: Any = data.X
        arrays = {"y": data.y, "ptr": data.ptr, "query_ids": data.query_ids}
        if data.is_sparse:
            arrays |= {"values": X.data, "indices": X.indices, "indptr": X.indptr}
        else:
            arrays["X"] = X
        if data.doc_ids is not None:
            arrays["doc_ids"] = data.doc_ids
        if data.query_weight is not None:
            arrays["query_weight"] = data.query_weight
        if data.doc_weight is not None:
            arrays["doc_weight"] = data.doc_weight
        if data.order is not None:
            arrays["order"] = data.order
        for name, array in arrays.items():
            if array.dtype == object:
                array = array.astype(str)
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        write_header(draft, n_features=data.n_features, feature_names=data.feature_names)
    return Path(folder)


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
        # Not a folder of its own by tempfile, whose rights would be the owner's alone.
        draft = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
        draft.mkdir()
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None
    try:
        yield draft
        os.rename(draft, target)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError):
            raise InputError(f"cannot write {target}: {error.strerror or error}") from None
        raise


def write_header(folder: Path, *, n_features: int, feature_names: tuple[str, ...] | None = None) -> None:
    """Write the small JSON file that makes a folder of arrays a data set."""
    header = _FORMAT | {"n_features": n_features, "feature_names": feature_names}
    (folder / "header.json").write_text(json.dumps(header), encoding="utf-8")


def open_queries(folder: str | os.PathLike[str], start: int = 0, stop: int | None = None) -> QueryDataset:
    """Open a folder written by `save_queries` or `stream_letor`, mapping its features instead of reading them.

    `start` and `stop` choose a run of queries, as in `data[start:stop]`.
    """
    path = Path(folder)
    header = _read_header(path)

    def load(name: str, *, optional: bool = False, mapped: bool = False) -> Any:
        file = path / f"{name}.npy"
        if optional and not file.exists():
            return None
        try:
            return np.load(file, mmap_mode="r" if mapped else None, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(f"{file} cannot be read: {error}") from None

    y, names = load("y"), header["feature_names"]
    X = load("X", optional=True, mapped=True)
    if X is None:
        parts = [load(name, mapped=True) for name in ("values", "indices", "indptr")]
        X = _as_csr(path, parts, (len(y), header["n_features"]))
    doc_ids = load("doc_ids", optional=True, mapped=True)
    if X.shape != (len(y), header["n_features"]) or (doc_ids is not None and len(doc_ids) != len(y)):
        raise InputError(f"{path} holds arrays of different lengths: it is damaged, write it again")
    ptr = validation.as_ptr(load("ptr"), len(y))
    data = QueryDataset(
        X=X,
        y=y,
        ptr=ptr,
        query_ids=load("query_ids"),
        feature_names=None if names is None else tuple(names),
        doc_ids=doc_ids,
        query_weight=load("query_weight", optional=True),
        doc_weight=validation.as_doc_weight(load("doc_weight", optional=True), len(y)),
        order=load("order", optional=True),
        mapped=(path.resolve(), 0, len(ptr) - 1),
    )
    return data if start == 0 and stop is None else data[start:stop]


def _read_header(path: Path) -> dict[str, Any]:
    try:
        header = json.loads((path / "header.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{path} is not a folder written by toprank: it has no readable header.json") from None
    if not isinstance(header, dict) or {key: header.get(key) for key in _FORMAT} != _FORMAT:
        raise InputError(f"{path}/header.json is not version {_FORMAT['version']} of the toprank-queries format")
    return header


def _as_csr(path: Path, parts: list[Any], shape: tuple[int, int]) -> Matrix:
    from scipy.sparse import csr_array

    try:
        X = csr_array(tuple(parts), shape=shape)
    except ValueError as error:
        raise InputError(f"{path} is damaged, write it again: {error}") from None
    X.has_canonical_format = True  # as it was written; to find out would be to read it all
    return X
