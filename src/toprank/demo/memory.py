"""What the demo learned and indexed, kept between calls, so that a second question need not wait for either."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from .._files import read_whole, replacing
from .._version import __version__
from ..errors import InputError
from ..model import Model
from ..rankers.persistence import parse_model
from .collect import Document, home, sources
from .index import FIELDS, Index

if TYPE_CHECKING:
    from ..rankers.base import Ranker


def recall(packages: Collection[str] | None) -> tuple[Index, Model] | None:
    """Return what this version of the demo made of this Python's library; None where nothing was, or is readable."""
    place = _place(packages)
    try:
        return _read_index(place.with_suffix(".npz")), parse_model(*read_whole(place))
    except (InputError, OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, msgspec.MsgspecError):
        return None


def remember(packages: Collection[str] | None, index: Index, ranker: Ranker) -> None:
    """Keep both for `recall`; where the folder cannot be written, nothing is kept."""
    place = _place(packages)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _write_index(place.with_suffix(".npz"), index)
        ranker.save(place)
    except (InputError, OSError):
        return


def _write_index(place: Path, index: Index) -> None:
    texts = msgspec.json.encode((index.documents, list(index.vocabulary)))
    arrays: dict[str, Any] = {"texts": np.frombuffer(texts, dtype=np.uint8)}
    for field in FIELDS:
        counts = index.counts[field]
        arrays |= {f"{field}.{part}": getattr(counts, part) for part in ("data", "indices", "indptr")}
    with replacing(place) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)


def _read_index(place: Path) -> Index:
    from scipy.sparse import csr_array

    with np.load(place, allow_pickle=False) as arrays:
        documents, words = msgspec.json.decode(arrays["texts"].tobytes(), type=tuple[list[Document], list[str]])
        shape = (len(documents), len(words))
        counts = {
            field: csr_array(tuple(arrays[f"{field}.{part}"] for part in ("data", "indices", "indptr")), shape=shape)
            for field in FIELDS
        }
    return Index.of_counts(documents, {word: number for number, word in enumerate(words)}, counts)


def _place(packages: Collection[str] | None) -> Path:
    """Return the file for this library and this code, in the user's cache folder; sources are looked at, not read."""
    made_of = sha256(f"{__version__} {sys.version} {home()} {sorted(packages or ())}".encode())
    for source in (*sorted(Path(__file__).parent.glob("*.py")), *sources(home())):
        seen = source.stat()
        made_of.update(f"{source} {seen.st_size} {seen.st_mtime_ns}".encode())
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "toprank" / "demo" / f"{made_of.hexdigest()[:32]}.json"
