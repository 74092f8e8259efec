"""Parts of a data set, cut between queries and never through one.

Two documents of one query share everything the query brings; a split by rows would leak it into the test part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from .._typing import AnyArray, ArrayLike, Floats, Ints, Matrix, Seed
from ..errors import InputError
from . import validation
from ._text import PACKED
from .csr import csr_of, dense, is_sparse
from .dataset import QueryDataset
from .grouping import bounds_of, numbered

ROUTING = (
    'switch on sklearn.set_config(enable_metadata_routing=True), then pass params={"qid": qid} to cross_validate and '
    "cross_val_score, or qid=qid to GridSearchCV.fit"
)
"""How query ids get through scikit-learn's model selection: there is one way, and every message names it."""


@dataclass(frozen=True)
class QueryKFold:
    """K folds of whole queries: a scikit-learn splitter.

    Each fold holds a run of queries in order of first appearance (after a permutation, with `shuffle=True`), and the
    numbers of queries differ by at most one. Query ids come as `groups`, as in scikit-learn's group splitters. In
    `cross_validate` and `GridSearchCV` switch on metadata routing: `params={"qid": qid}` (`fit(X, y, qid=qid)`) then
    reaches fit, score and the splitter; without it, score gets no ids.

    >>> folds = QueryKFold(n_splits=2).split(np.zeros((5, 1)), groups=["b", "a", "b", "c", "a"])
    >>> [(train.tolist(), test.tolist()) for train, test in folds]
    [([3], [0, 1, 2, 4]), ([0, 1, 2, 4], [3])]

    A data set is split directly:

    >>> data = QueryDataset.from_arrays(np.zeros((6, 1)), range(6), qid=[1, 1, 2, 2, 3, 3])
    >>> [(train.query_ids.tolist(), test.query_ids.tolist()) for train, test in QueryKFold(3).datasets(data)]
    [([2, 3], [1]), ([1, 3], [2]), ([1, 2], [3])]
    """

    n_splits: int = 5
    shuffle: bool = False
    random_state: Seed = None

    def __post_init__(self) -> None:
        validation.check_count(n_splits=self.n_splits)
        if self.n_splits < 2:
            raise InputError(f"n_splits must be at least 2, got {self.n_splits}")
        if self.random_state is not None and not self.shuffle:
            raise InputError("random_state has no effect without shuffle=True: set shuffle, or leave random_state out")

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None, qid: object = None) -> int:
        """Return the number of folds; the arguments are scikit-learn's and are not looked at."""
        return self.n_splits

    def split(
        self, X: Any, y: object = None, groups: ArrayLike | None = None, qid: ArrayLike | None = None
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield the rows of the train part and of the test part, fold by fold, each in the caller's order."""
        ids = groups if qid is None else qid
        if ids is None:
            raise InputError(
                "QueryKFold needs the query of each row: split(X, groups=qid); in scikit-learn's model selection "
                + ROUTING
            )
        query = numbered(validation.as_qid(ids, _n_rows(X)))
        for test in self._folds(int(query.max()) + 1):
            in_test = test[query]
            yield np.flatnonzero(~in_test), np.flatnonzero(in_test)

    def datasets(self, data: QueryDataset) -> Iterator[tuple[QueryDataset, QueryDataset]]:
        """Yield the train part and the test part of a data set, fold by fold."""
        for test in self._folds(data.n_queries):
            yield data[~test], data[test]

    def _folds(self, n_queries: int) -> Iterator[AnyArray]:
        """Yield one mask over the queries per fold."""
        if n_queries < self.n_splits:
            raise InputError(
                f"{n_queries} queries cannot fill {self.n_splits} folds: choose n_splits of at most {n_queries}"
            )
        queries = np.arange(n_queries)
        if self.shuffle:
            queries = validation.as_generator(self.random_state).permutation(n_queries)
        for fold in np.array_split(queries, self.n_splits):
            mask = np.zeros(n_queries, dtype=bool)
            mask[fold] = True
            yield mask

    def get_metadata_routing(self) -> Any:
        """Tell scikit-learn's metadata routing that `split` takes `groups` or `qid`."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.split.add_request(param="groups", alias=True).add_request(param="qid", alias=True)
        return request


@overload
def query_train_test_split(
    data: QueryDataset, /, *, test_size: float = ..., random_state: Seed = ...
) -> tuple[QueryDataset, QueryDataset]: ...
@overload
def query_train_test_split(
    X: Any, y: ArrayLike, qid: ArrayLike, /, *, test_size: float = ..., random_state: Seed = ...
) -> tuple[Any, Any, AnyArray, AnyArray, AnyArray, AnyArray]: ...
def query_train_test_split(
    data: Any,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    /,
    *,
    test_size: float = 0.25,
    random_state: Seed = None,
) -> tuple[Any, ...]:
    """Split at random by query: a data set into (train, test), arrays into X, X, y, y, qid, qid (train before test).

    `test_size` is a share of the queries (rounded up) or, as a whole number, how many. The parts keep the caller's
    order of queries and rows.

    >>> data = QueryDataset.from_arrays(np.zeros((8, 1)), range(8), qid=[1, 1, 2, 2, 3, 3, 4, 4])
    >>> train, test = query_train_test_split(data, test_size=0.5, random_state=0)
    >>> sorted([*train.query_ids.tolist(), *test.query_ids.tolist()])
    [1, 2, 3, 4]
    >>> X_train, X_test, y_train, y_test, q_train, q_test = query_train_test_split(
    ...     data.X, data.y, data.qid, test_size=1, random_state=0)
    >>> X_train.shape, y_test.shape, len(set(q_train) & set(q_test))
    ((6, 1), (2,), 0)
    """
    if isinstance(data, QueryDataset):
        if y is not None or qid is not None:
            raise InputError("a QueryDataset holds its labels and query ids: pass it alone")
        test = _test_mask(data.n_queries, test_size, random_state)
        return data[~test], data[test]
    if y is None or qid is None:
        raise InputError("query_train_test_split takes a QueryDataset, or X, y and qid")
    query = numbered(validation.as_qid(qid, _n_rows(data)))
    labels = validation.as_labels(y, len(query))
    in_test = _test_mask(int(query.max()) + 1, test_size, random_state)[query]
    parts = np.flatnonzero(~in_test), np.flatnonzero(in_test)
    arrays = (data, labels, np.asarray(qid))
    return tuple(_take_rows(array, rows) for array in arrays for rows in parts)


def _test_mask(n_queries: int, test_size: float, random_state: Seed) -> AnyArray:
    if validation.is_whole(test_size):
        n_test = int(test_size)
    elif 0 < test_size < 1:
        n_test = int(np.ceil(test_size * n_queries))
    else:
        raise InputError(f"test_size must be a share between 0 and 1 or a number of queries, got {test_size!r}")
    if not 0 < n_test < n_queries:
        raise InputError(
            f"test_size={test_size!r} of {n_queries} queries leaves {n_queries - n_test} to train and {n_test} to test:"
            " both parts need at least one"
        )
    mask = np.zeros(n_queries, dtype=bool)
    mask[validation.as_generator(random_state).permutation(n_queries)[:n_test]] = True
    return mask


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _take_rows(X: Any, rows: Ints) -> Any:
    if hasattr(X, "iloc"):  # pandas indexes columns where arrays index rows
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else np.asarray(X)[rows]


@dataclass(frozen=True)
class Fold:
    """The three parts of one fold of a published collection, with the same columns."""

    train: QueryDataset
    valid: QueryDataset
    test: QueryDataset


PART_FILES = {
    "train": ("train", "trainingset"),
    "valid": ("vali", "validationset", "valid"),
    "test": ("test", "testset"),
}
"""How LETOR 2.0 (…set.txt), 3.0, 4.0 and MSLR name the parts of a fold."""


def widen(data: QueryDataset, n_features: int) -> QueryDataset:
    """Return the data set with columns of zeros up to `n_features`; the same object where nothing is missing."""
    if data.n_features >= n_features:
        return data
    X = data.X
    if is_sparse(X):
        return data.with_X(csr_of(X.data, X.indices, X.indptr, n_features))
    wide = np.zeros((data.n_docs, n_features), dtype=X.dtype)
    wide[:, : data.n_features] = dense(X)
    return data.with_X(wide)


def stacked(parts: Sequence[QueryDataset]) -> QueryDataset:
    """Return the queries of all parts as one data set, widened where a part has fewer features.

    Document ids stay where every part has them; a part without weights weighs 1.

    >>> one = QueryDataset.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> stacked([one, one]).ptr.tolist()
    [0, 2, 4]
    """
    if len(parts) == 1:
        return parts[0]
    wide = [widen(part, max(part.n_features for part in parts)) for part in parts]
    names = {part.feature_names for part in parts}
    return QueryDataset(
        X=_stacked_rows([part.X for part in wide]),
        ptr=bounds_of(np.concatenate([part.lengths for part in wide])),
        feature_names=names.pop() if len(names) == 1 else None,
        **{name: joined([vars(part)[name] for part in wide]) for name in ("y", "query_ids", "doc_ids")},
        query_weight=_joined_weights([(part.query_weight, part.n_queries) for part in wide]),
        doc_weight=_joined_weights([(part.doc_weight, part.n_docs) for part in wide]),
    )


def _stacked_rows(parts: Sequence[Matrix]) -> Any:
    if all(is_sparse(X) for X in parts):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate([dense(X) for X in parts])


def joined(arrays: Sequence[Any]) -> Any:
    """Return the arrays of all parts as one; ids of different kinds become objects. None where a part has none."""
    if any(array is None for array in arrays):
        return None
    same = len({array.dtype.kind for array in arrays}) == 1
    return np.concatenate(arrays if same else [array.astype(object) for array in arrays])


def _joined_weights(weights: Sequence[tuple[Floats | None, int]]) -> Floats | None:
    if all(weight is None for weight, _ in weights):
        return None
    return np.concatenate([np.ones(n) if weight is None else weight for weight, n in weights])


SUFFIXES = ("", *PACKED)
"""How a published file may be compressed."""


def read_fold(
    folder: str | Path, fold: int = 1, *, dense: bool | None = None, dtype: npt.DTypeLike = np.float32
) -> Fold:
    """Read one fold of a LETOR collection: `Fold1/train.txt` and so on, also compressed.

    The parts get the same number of features, whichever of them mentions the last one, and the storage of the train
    part; `dense` and `dtype` are those of `read_letor`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     home = Path(folder, "Fold1")
    ...     home.mkdir()
    ...     for name in ("train", "vali", "test"):
    ...         _ = (home / f"{name}.txt").write_text("1 qid:1 1:0.5 2:1\\n0 qid:1 1:0.25\\n")
    ...     fold = read_fold(folder, 1)
    >>> fold.train
    QueryDataset(1 queries, 2 documents, 2 features, float32)
    """
    from .letor import read_letor

    files = {part: find_part(Path(folder), fold, part) for part in PART_FILES}
    parts: dict[str, QueryDataset] = {}
    for part, file in files.items():
        parts[part] = read_letor(file, dense=dense, dtype=dtype, zero_based=False)
        dense = not parts["train"].is_sparse
    width = max(data.n_features for data in parts.values())
    return Fold(**{part: widen(data, width) for part, data in parts.items()})


def read_folds(folder: str | Path, *, dense: bool | None = None, dtype: npt.DTypeLike = np.float32) -> Iterator[Fold]:
    """Yield the folds of a LETOR collection (`Fold1`, `Fold2`, …) one after the other: one is in memory at a time.

    >>> list(read_folds("no-such-folder"))
    Traceback (most recent call last):
    ...
    toprank.errors.InputError: no-such-folder holds no folder Fold1
    """
    return (read_fold(folder, number, dense=dense, dtype=dtype) for number in fold_numbers(folder))


def fold_numbers(folder: str | Path) -> list[int]:
    """Return the numbers of the folds that a folder holds, of which 1 must be one."""
    home = Path(folder)
    if not (home / "Fold1").is_dir():
        raise InputError(f"{home} holds no folder Fold1")
    return sorted(int(path.name[4:]) for path in home.glob("Fold*") if path.name[4:].isdigit() and path.is_dir())


def find_part(home: Path, fold: int, part: str) -> Path:
    """Return the file of one part, whatever the collection calls it and however it is compressed."""
    return find_file(home / f"Fold{fold}", [f"{name}.txt" for name in PART_FILES[part]], part)


def find_file(folder: Path, names: Sequence[str], part: str) -> Path:
    """Return the first of these files that a folder holds, plain or compressed."""
    for path in (folder / f"{name}{suffix}" for name in names for suffix in SUFFIXES):
        if path.is_file():
            return path
    raise InputError(f"{folder} has no {part} part: looked for {', '.join(names)} (plain, .gz, .bz2, .xz or .zst)")
