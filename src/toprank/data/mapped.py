"""Data sets that live on disk: one folder of memory-mapped arrays."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from .dataset import QueryDataset

_FORMAT = {"format": "toprank-queries", "version": 1}


def save_queries(data: QueryDataset, folder: str | Path) -> Path:
    """Write a data set as a folder of arrays that `open_queries` maps without reading; the folder appears whole or not at all."""
    target = Path(folder)
    if target.exists():
        raise InputError(f"{target} exists already: choose another folder or remove it")
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
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
        for name, array in arrays.items():
            if array.dtype == object:
                array = array.astype(str)
            np.save(draft / f"{name}.npy", array, allow_pickle=False)
        write_header(draft, n_features=data.n_features, feature_names=data.feature_names)
        os.rename(draft, target)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return target


def write_header(folder: Path, *, n_features: int, feature_names: tuple[str, ...] | None = None) -> None:
    """Write the small JSON file that makes a folder of arrays a data set."""
    header = _FORMAT | {"n_features": n_features, "feature_names": feature_names}
    (folder / "header.json").write_text(json.dumps(header), encoding="utf-8")


def open_queries(folder: str | Path, start: int = 0, stop: int | None = None) -> QueryDataset:
    """Open a folder written by `save_queries`, mapping its features instead of reading them."""
    path = Path(folder)
    try:
        header = json.loads((path / "header.json").read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        raise InputError(f"{path} is not a folder written by toprank: it has no readable header.json") from None
    if not isinstance(header, dict) or {k: header.get(k) for k in _FORMAT} != _FORMAT:
        raise InputError(f"{path}/header.json is not version {_FORMAT['version']} of the toprank-queries format")

    def load(name: str, *, optional: bool = False, mapped: bool = False) -> Any:
        file = path / f"{name}.npy"
        if optional and not file.exists():
            return None
        try:
            return np.load(file, mmap_mode="r" if mapped else None, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read: {error}") from None

    X = load("X", optional=True, mapped=True)
    if X is None:
        from scipy.sparse import csr_array

        y = load("y")
        parts = (load("values", mapped=True), load("indices", mapped=True), load("indptr", mapped=True))
        X = csr_array(parts, shape=(len(y), int(header["n_features"])))
    names = header.get("feature_names")
    data = QueryDataset(
        X=X,
        y=load("y"),
        ptr=load("ptr"),
        query_ids=load("query_ids"),
        feature_names=None if names is None else tuple(names),
        doc_ids=load("doc_ids", optional=True),
        query_weight=load("query_weight", optional=True),
    )
    object.__setattr__(data, "mapped", (path.resolve(), 0, data.n_queries))
    return data if stop is None else data[start:stop]
