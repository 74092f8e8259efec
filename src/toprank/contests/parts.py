"""What a contest is held on: training, validation and test queries, fold by fold, and the test queries of all folds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from .._typing import Ints
from ..data.dataset import QueryDataset
from ..data.ids import distinct_ids, id_text
from ..data.matching import match_columns
from ..data.splits import Fold, query_train_test_split, stacked
from ..data.validation import check_informative
from ..errors import InputError

HELD_OUT = 0.25
"""Share of the training queries that is held out to choose settings by, where no validation queries are given."""


@dataclass(frozen=True)
class Parts:
    """The parts of a fold, where there may be no validation queries."""

    train: QueryDataset
    test: QueryDataset
    valid: QueryDataset | None = None


@dataclass(frozen=True)
class ReadWhenNeeded:
    """Folds that are read one at a time, each when its turn comes."""

    readers: tuple[Callable[[], Fold | Parts], ...]

    def __len__(self) -> int:
        return len(self.readers)

    def __getitem__(self, index: int) -> Fold | Parts:
        return self.readers[index]()

    def __iter__(self) -> Iterator[Fold | Parts]:
        return (reader() for reader in self.readers)


def folds_of(
    train: QueryDataset | Iterable[Fold | Parts], test: QueryDataset | None, valid: QueryDataset | None
) -> Sequence[Fold | Parts] | ReadWhenNeeded:
    """Return the caller's data as folds."""
    if isinstance(train, QueryDataset):
        if test is None:
            raise InputError("a contest needs test queries that nobody learns from: contest(train, test)")
        return [Parts(train, test, valid)]
    if test is not None or valid is not None:
        raise InputError("folds bring their own test and validation parts: pass them alone")
    return train if isinstance(train, (Sequence, ReadWhenNeeded)) else list(train)


def checked(fold: Fold | Parts, random_state: int, notes: Notes) -> tuple[QueryDataset, QueryDataset, QueryDataset]:
    """Return training, validation and test queries that fit together; what a reader must know goes to `notes`."""
    train = fold.train
    valid = None if fold.valid is None else _like_training(train, fold.valid, "validation")
    test = _like_training(train, fold.test, "test")
    for name, part in (("training", train), ("validation", valid), ("test", test)):
        if part is not None and part.n_queries == 0:
            raise InputError(f"the {name} part holds no queries")
    held_out = ""
    if valid is None:
        if train.n_queries < 2:
            raise InputError(
                "there is one training query, and settings are chosen on queries held out: give validation queries"
            )
        whole = train.n_queries
        train, valid = query_train_test_split(train, test_size=HELD_OUT, random_state=random_state)
        held_out = f" ({valid.n_queries} of {whole} queries were held out to choose settings by)"
        notes.said.append(
            f"No validation queries were given: {valid.n_queries} of the {whole} training queries were held out to "
            f"choose settings by (at random, seed {random_state}); nobody learned from them."
        )
    check_informative(train.informative, also=held_out)
    notes.look_for_leaks(train, valid, test)
    return train, valid, test


_LEAKS = (
    ("test", "training", "the test flatters everybody who learned"),
    ("test", "validation", "settings were chosen on what they are judged by, and the test flatters them"),
    ("validation", "training", "settings were chosen on queries that were learned from"),
)


@dataclass
class Notes:
    """What a reader must know about the data, and the test queries seen so far."""

    said: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    """What casts doubt on the result."""
    clean: bool = True
    """Whether no test query was found in the parts that were learned from or chosen by."""
    seen: dict[tuple[object, bytes], int] = field(default_factory=dict)
    """The fold of each test query, by its id and its digest."""

    def look_for_leaks(self, train: QueryDataset, valid: QueryDataset, test: QueryDataset) -> None:
        """Compare all three pairs of parts; refuse test queries that were judged in an earlier fold."""
        digest = {"training": digests(train), "validation": digests(valid), "test": digests(test)}
        fold = max(self.seen.values(), default=0) + 1
        own = list(zip(id_text(test.query_ids).tolist(), digest["test"], strict=True))
        again = [self.seen[key] for key in own if key in self.seen]
        if again:
            raise InputError(
                f"{len(again)} of the {len(own)} test queries of fold {fold} are test queries of fold {again[0]} too: "
                "judged twice they count as evidence twice. Give each query to the test part of one fold"
            )
        self.seen.update(dict.fromkeys(own, fold))
        for part, other, harm in _LEAKS:
            known = set(digest[other])
            both = sum(one in known for one in digest[part])
            if both:
                self.warned.append(
                    f"{both} of {len(digest[part])} {part} queries stand in the {other} part too, with the same "
                    f"documents and grades: {harm}."
                )
                self.clean = self.clean and part != "test"
        ids = len(distinct_ids(train.query_ids, valid.query_ids) & distinct_ids(test.query_ids))
        if ids and not {*digest["training"], *digest["validation"]} & set(digest["test"]):
            self.said.append(
                f"{ids} query ids of the test part occur in the training or validation part too, with other documents: "
                "if they are the same queries, the test flatters everybody who learned."
            )


def digests(data: QueryDataset) -> list[bytes]:
    """Return one hash per query, of its documents' features and grades in their order; equal queries, equal hashes.

    >>> data = QueryDataset.from_arrays([[1.0], [2.0], [1.0], [2.0], [1.0]], [0, 1, 0, 1, 0], qid=list("aabbc"))
    >>> one, two, three = digests(data)
    >>> one == two, one == three
    (True, False)
    """
    X: Any = data.X
    result = []
    for start, end in pairwise(data.ptr.tolist()):
        found = hashlib.blake2b(np.ascontiguousarray(data.y[start:end]).data, digest_size=12)
        if data.is_sparse:
            low, high = int(X.indptr[start]), int(X.indptr[end])
            found.update(np.diff(X.indptr[start : end + 1]).astype(np.int64).data)
            found.update(np.ascontiguousarray(X.indices[low:high], dtype=np.int64).data)
            found.update(np.ascontiguousarray(X.data[low:high], dtype=np.float64).data)
        else:
            found.update(np.ascontiguousarray(X[start:end], dtype=np.float64).data)
        result.append(found.digest())
    return result


def _like_training(train: QueryDataset, other: QueryDataset, name: str) -> QueryDataset:
    """Return a part with the columns of the training part: by name where both have names, else by position."""
    if train.feature_names is None or other.feature_names is None:
        if other.n_features != train.n_features:
            raise InputError(
                f"the {name} part has {other.n_features} features and the training part {train.n_features}: "
                "all parts need the same ones"
            )
        return other
    try:
        return match_columns(other, train.n_features, train.feature_names, "the training part", stacklevel=5)
    except InputError as error:
        raise InputError(f"the {name} part: {error}") from None


def pool(parts: Sequence[QueryDataset]) -> tuple[QueryDataset, Ints]:
    """Return the parts as one data set, one after the other, and the part that each query comes from.

    >>> one = QueryDataset.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> data, part = pool([one, one])
    >>> data.n_queries, data.y.tolist(), part.tolist()
    (2, [0.0, 1.0, 0.0, 1.0], [0, 1])
    """
    return stacked(parts), np.repeat(np.arange(len(parts)), [part.n_queries for part in parts])
