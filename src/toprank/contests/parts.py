"""What a contest is held on: training, validation and test queries, fold by fold, and the test queries of all folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from .._typing import AnyArray, Ints
from ..data.dataset import QueryDataset
from ..data.splits import Fold, query_train_test_split, widen
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
class ReadWhenNeeded(Sequence[Fold | Parts]):
    """Folds that are read one at a time, each when its turn comes."""

    readers: tuple[Callable[[], Fold | Parts], ...]

    def __len__(self) -> int:
        return len(self.readers)

    @overload
    def __getitem__(self, index: int) -> Fold | Parts: ...
    @overload
    def __getitem__(self, index: slice) -> ReadWhenNeeded: ...
    def __getitem__(self, index: int | slice) -> Fold | Parts | ReadWhenNeeded:
        """Read a fold, or cut the list."""
        return ReadWhenNeeded(self.readers[index]) if isinstance(index, slice) else self.readers[index]()

    def __iter__(self) -> Iterator[Fold | Parts]:
        return (reader() for reader in self.readers)


def folds_of(
    train: QueryDataset | Iterable[Fold | Parts], test: QueryDataset | None, valid: QueryDataset | None
) -> Sequence[Fold | Parts]:
    """Return the caller's data as folds."""
    if isinstance(train, QueryDataset):
        if test is None:
            raise InputError("a contest needs test queries that nobody learns from: contest(train, test)")
        return [Parts(train, test, valid)]
    if test is not None or valid is not None:
        raise InputError("folds bring their own test and validation parts: pass them alone")
    return train if isinstance(train, Sequence) else list(train)


def checked(fold: Fold | Parts, random_state: int, notes: list[str]) -> tuple[QueryDataset, QueryDataset, QueryDataset]:
    """Return training, validation and test queries that fit together; what a reader must know goes to `notes`."""
    train, valid, test = fold.train, fold.valid, fold.test
    for name, part in (("training", train), ("validation", valid), ("test", test)):
        if part is not None:
            _check_same_features(train, part, name)
            if part.n_queries == 0:
                raise InputError(f"the {name} part holds no queries")
    both = len(set(train.query_ids.tolist()) & set(test.query_ids.tolist()))
    if both:
        notes.append(
            f"{both} query ids of the test part occur in the training part too: if they are the same queries, the test "
            "flatters everybody who learned."
        )
    held_out = ""
    if valid is None:
        if train.n_queries < 2:
            raise InputError(
                "there is one training query, and settings are chosen on queries held out: give validation queries"
            )
        whole = train.n_queries
        train, valid = query_train_test_split(train, test_size=HELD_OUT, random_state=random_state)
        held_out = f" ({valid.n_queries} of {whole} queries were held out to choose settings by)"
        notes.append(
            f"No validation queries were given: {valid.n_queries} of the {whole} training queries were held out to "
            f"choose settings by (at random, seed {random_state}); nobody learned from them."
        )
    if not train.informative.any():
        raise InputError(f"no training query can teach: in each of them all documents have the same grade{held_out}")
    return train, valid, test


def _check_same_features(train: QueryDataset, other: QueryDataset, name: str) -> None:
    if other.n_features != train.n_features:
        raise InputError(
            f"the {name} part has {other.n_features} features and the training part {train.n_features}: "
            "all parts need the same ones"
        )
    if train.feature_names is None or other.feature_names is None or train.feature_names == other.feature_names:
        return
    at = next(i for i, (a, b) in enumerate(zip(train.feature_names, other.feature_names, strict=True)) if a != b)
    raise InputError(
        f"feature {at} is {other.feature_names[at]!r} in the {name} part and {train.feature_names[at]!r} in the "
        "training part: give the features in the same order"
    )


def pool(parts: Sequence[QueryDataset]) -> tuple[QueryDataset, Ints]:
    """Return the parts as one data set, one after the other, and the part that each query comes from.

    >>> one = QueryDataset.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> data, part = pool([one, one])
    >>> data.n_queries, data.y.tolist(), part.tolist()
    (2, [0.0, 1.0, 0.0, 1.0], [0, 1])
    """
    number = np.repeat(np.arange(len(parts)), [part.n_queries for part in parts])
    if len(parts) == 1:
        return parts[0], number
    width = max(part.n_features for part in parts)
    wide = [widen(part, width) for part in parts]
    lengths = np.concatenate([part.lengths for part in wide])
    names = {part.feature_names for part in parts}
    return QueryDataset(
        X=_stacked(wide),
        y=np.concatenate([part.y for part in wide]),
        ptr=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        query_ids=_joined([part.query_ids for part in wide]),
        feature_names=names.pop() if len(names) == 1 else None,
        doc_ids=_joined([part.doc_ids for part in wide]) if all(p.doc_ids is not None for p in wide) else None,
        query_weight=_weights(wide),
    ), number


def _stacked(parts: Sequence[QueryDataset]) -> Any:
    if all(part.is_sparse for part in parts):
        from scipy.sparse import csr_array, vstack

        return csr_array(vstack([part.X for part in parts], format="csr"))
    return np.concatenate([part.X.toarray() if part.is_sparse else part.X for part in parts])


def _joined(arrays: Sequence[Any]) -> AnyArray:
    """Concatenate ids; those of different kinds stay what they are, as objects."""
    if len({array.dtype.kind for array in arrays}) == 1:
        return np.concatenate(arrays)
    return np.concatenate([array.astype(object) for array in arrays])


def _weights(parts: Sequence[QueryDataset]) -> Any:
    if all(part.query_weight is None for part in parts):
        return None
    return np.concatenate([np.ones(p.n_queries) if p.query_weight is None else p.query_weight for p in parts])
