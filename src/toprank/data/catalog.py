"""Published collections by name, read from the folder that `TOPRANK_DATA` names. Nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from .._suggest import did_you_mean
from ..errors import InputError
from .dataset import QueryDataset
from .splits import PART_FILES, find_file, find_part

VARIABLE = "TOPRANK_DATA"
_ALIASES = {"vali": "valid", "validation": "valid"}


@dataclass(frozen=True)
class Collection:
    """A published data set: where its files stand below `TOPRANK_DATA`, and what they hold."""

    name: str
    about: str
    n_features: int
    folders: tuple[str, ...] = ()
    """Further names of its folder, as published."""
    files: Mapping[str, str] = field(default_factory=dict)
    """File of each part; empty where the parts stand in Fold1, Fold2, …"""
    n_folds: int = 5
    label: str | None = None
    """Label column of a table; None where the files are LETOR (or LIBSVM) text."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts there are."""
        return tuple(self.files or PART_FILES)


def _folds(name: str, about: str, n_features: int, *folders: str) -> Collection:
    return Collection(name, about, n_features, folders)


def _files(name: str, about: str, n_features: int, label: str | None = None, **files: str) -> Collection:
    return Collection(name, about, n_features, files=MappingProxyType(files), n_folds=1, label=label)


def _yahoo(number: int) -> Collection:
    files = {part: f"set{number}.{part}.txt" for part in PART_FILES}
    entry = _files(f"yahoo-set{number}", f"Yahoo! Learning to Rank Challenge, set {number}", 700, **files)
    return replace(entry, folders=("yahoo", "ltrc_yahoo"))


_MSLR = "queries of a web search engine, raw values"

_COLLECTIONS = (
    _folds("ohsumed-letor2", "OHSUMED of LETOR 2.0: 106 queries, raw values", 25),
    _folds("ohsumed-letor3", "OHSUMED of LETOR 3.0: 106 queries, normalised per query", 45),
    _folds("mq2007-letor4", "Million Query 2007 of LETOR 4.0: 1,692 queries", 46, "mq2007", "MQ2007"),
    _folds("mq2008-letor4", "Million Query 2008 of LETOR 4.0: 784 queries", 46, "mq2008", "MQ2008"),
    _folds("td2003", "topic distillation 2003 of LETOR 3.0", 64, "TD2003"),
    _folds("td2004", "topic distillation 2004 of LETOR 3.0", 64, "TD2004"),
    _folds("hp2003", "homepage finding 2003 of LETOR 3.0", 64, "HP2003"),
    _folds("hp2004", "homepage finding 2004 of LETOR 3.0", 64, "HP2004"),
    _folds("np2003", "named page finding 2003 of LETOR 3.0", 64, "NP2003"),
    _folds("np2004", "named page finding 2004 of LETOR 3.0", 64, "NP2004"),
    _folds("mslr-web10k", f"MSLR-WEB10K: 10,000 {_MSLR}", 136, "MSLR-WEB10K"),
    _folds("mslr-web30k", f"MSLR-WEB30K: 31,531 {_MSLR}", 136, "MSLR-WEB30K"),
    _files(
        "mslr-msn1-5k",
        "heads of MSLR Fold 1, 5,000 rows each; the last query may be cut",
        136,
        train="msn1.fold1.train.5k.txt",
        test="msn1.fold1.test.5k.txt",
    ),
    _yahoo(1),
    _yahoo(2),
    _files("yandex", "Yandex, Internet Mathematics 2009: 9,124 queries", 245, train="imat2009_learning.txt"),
    _files("a9a", "Adult: who earns more than 50,000? One list, binary", 123, train="a9a", test="a9a.t"),
    _files("ijcnn1", "IJCNN 2001: one list, binary", 22, train="ijcnn1.trn", test="ijcnn1.t"),
    _files("covtype", "Covertype: one list, 7 classes, one file", 54, label="Cover_Type", train="covtype.csv"),
)

CATALOG: Mapping[str, Collection] = MappingProxyType({entry.name: entry for entry in _COLLECTIONS})
"""Every collection `load` knows."""


def load(name: str, fold: int = 1, part: str = "train", *, positive: float | None = None) -> QueryDataset:
    """Read one part of a published collection from the folder that `TOPRANK_DATA` names.

    `part` is train, valid (or vali) or test. Binary sets labelled −1/+1 come with grades 0/1. `positive` makes grades
    0/1 of classes: `load("covtype", positive=4)` asks for class 4 against the rest.

    >>> load("ohsumed")
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: no collection is called 'ohsumed' (did you mean 'ohsumed-letor3'?): known are a9a, ...
    """
    collection = find(name)
    part = _ALIASES.get(part, part)
    if part not in collection.parts:
        raise InputError(f"{name} has no part {part!r}: its parts are {', '.join(collection.parts)}")
    if not 1 <= fold <= collection.n_folds:
        folds = "no folds: leave fold out" if collection.n_folds == 1 else f"folds 1 to {collection.n_folds}"
        raise InputError(f"{name} has {folds}, got fold={fold!r}")
    path = _locate(collection, fold, part)
    data = _read(path, collection)
    if positive is not None:
        data = replace(data, y=(data.y == positive).astype(np.float64))
    elif set(np.unique(data.y)) == {-1.0, 1.0}:
        data = replace(data, y=(data.y > 0).astype(np.float64))
    return data


def find(name: str) -> Collection:
    """Return a collection by its name, or by the name of its folder where that is clear."""
    named = [c for c in CATALOG.values() if name.lower() in (known.lower() for known in (c.name, *c.folders))]
    if len(named) == 1:
        return named[0]
    known = ", ".join(sorted(CATALOG))
    raise InputError(f"no collection is called {name!r}{did_you_mean(name, CATALOG)}: known are {known}")


def _locate(collection: Collection, fold: int, part: str) -> Path:
    root = os.environ.get(VARIABLE)
    names = (collection.name, *collection.folders)
    wanted = f"Fold{fold}" if not collection.files else collection.files[part]
    if not root:
        raise InputError(
            f"set the environment variable {VARIABLE} to the folder that holds {names[0]}/{wanted}: "
            f"{collection.name} is read from there, it cannot be downloaded"
        )
    home = next((Path(root, name) for name in names if Path(root, name).is_dir()), None)
    if home is None:
        raise InputError(
            f"{collection.name} is not in {root} ({VARIABLE}): put its files at {Path(root, names[0], wanted)}"
        )
    return find_file(home, [wanted], part) if collection.files else find_part(home, fold, part)


def _read(path: Path, collection: Collection) -> QueryDataset:
    if collection.label is not None:
        from .tables import read_table

        return read_table(path, label=collection.label, qid=None)
    from .letor import read_letor

    return read_letor(path, n_features=collection.n_features, zero_based=False, one_list=True)
