"""What runs on a worker: reading a part, keeping what was made of it, and reducing the parts that one worker holds."""

from __future__ import annotations

import mmap
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from .._typing import AnyArray, Matrix
from ..data import blocks, csr, validation
from ..data.blocks import Grid, LocalResults, PartialResult
from ..data.dataset import QueryDataset
from ..errors import InputError
from .workers import distributed

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class PartSpec:
    """How to read a part, at any time and on any worker: `read` needs nothing but files or what it carries."""

    read: Callable[[], QueryDataset]
    grid: Grid
    queries: tuple[int, int]
    rows: tuple[int, int]
    mapped: bool


class Part:
    """The queries of a part in a worker's memory, and what was made of them."""

    def __init__(self, data: QueryDataset, grid: Grid, pages: Sequence[mmap.mmap] = ()) -> None:
        self.data, self.grid, self.pages = data, grid, pages
        self.made: dict[Names, LocalResults[Any]] = {}
        self.lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Part, (self.data, self.grid)

    def __sizeof__(self) -> int:
        """What Dask counts as its memory: that of mapped rows need not be freed."""
        return 1 << 20 if self.pages else _size(self.data.X)

    def results(self, chain: Chain, values: int, in_use: Sequence[Names], executor: Any) -> LocalResults[Any]:
        """Return what a chain of functions makes of the blocks; as far as it was made before, it is not made again.

        Of each chain that is `in_use` the latest result is kept, and no earlier one.
        """
        with self.lock:
            names = names_of(values, chain)
            start = self._longest_made(names)
            found = self.made[start] if start else LocalResults.of(self.data, values, grid=self.grid)
            found = replace(found, executor=executor)
            for n in range(len(start) + 1, len(names) + 1):
                found = self.made[names[:n]] = found if n == 1 else found.keep(chain[n - 2][1])
                wanted = {names[:n], *map(self._longest_made, in_use)}
                self.made = {key: kept for key, kept in self.made.items() if key in wanted}
            return found

    def _longest_made(self, names: Names) -> Names:
        """Return the longest beginning of a chain whose results are kept."""
        return next((names[:n] for n in range(len(names), 0, -1) if names[:n] in self.made), ())

    def release(self) -> None:
        """Give the pages of mapped rows back; they come from the file, or its cache, when they are needed again."""
        for page in self.pages:
            page.madvise(mmap.MADV_DONTNEED)


Chain = tuple[tuple[str, Callable[..., Any]], ...]
Names = tuple[str, ...]
"""How many values a block has, and the names of a chain's functions."""


def names_of(values: int, chain: Chain) -> Names:
    """Return what tells a chain over blocks of so many values from all others."""
    return (str(values), *(name for name, _ in chain))


def load(spec: PartSpec) -> Part:
    """Read a part; runs on a worker."""
    data = spec.read()
    if data.n_docs != spec.rows[1] - spec.rows[0] or data.n_queries != spec.queries[1] - spec.queries[0]:
        raise InputError(f"rows {spec.rows[0]} to {spec.rows[1]} are not what they were: a file changed meanwhile")
    validation.check_magnitude(data.X, data.feature_names)
    if not data.is_sparse and data.mapped is None:
        # What was sent here may not be written to: to the compiler that is another type, and compiling takes longer.
        data = data._with(**{name: np.require(getattr(data, name), requirements="W") for name in ("X", "y", "ptr")})
    if not spec.mapped or not hasattr(mmap, "MADV_DONTNEED"):
        return Part(data, spec.grid)
    if not csr.is_sparse(data.X):
        X, pages = _mapped(csr.dense(data.X))
        return Part(data._with(X=X, mapped=None), spec.grid, [pages])
    values, first = _mapped(data.X.data)
    columns, second = _mapped(data.X.indices)
    thin = csr.csr_of(values, columns, data.X.indptr, data.n_features)
    return Part(data._with(X=thin, mapped=None), spec.grid, [first, second])


def _mapped(array: AnyArray) -> tuple[AnyArray, mmap.mmap]:
    """Return the array in a file of the worker's folder that has no name: it is gone when it is no longer mapped.

    Nothing writes to it; as it could be written to (in a copy), kernels need not be compiled for another type.
    """
    with tempfile.TemporaryFile(dir=distributed().get_worker().local_directory) as file:
        np.ascontiguousarray(array).tofile(file)
        file.flush()
        pages = mmap.mmap(file.fileno(), max(1, array.nbytes), access=mmap.ACCESS_COPY)
    return np.frombuffer(pages, array.dtype, array.size).reshape(array.shape), pages


def _size(X: Matrix) -> int:
    parts = (X.data, X.indices, X.indptr) if validation.is_sparse(X) else (X,)
    return int(sum(part.nbytes for part in parts))


def relabel(part: Part, beside: dict[str, Any]) -> Part:
    """Return a part with other grades or weights; runs on a worker."""
    return Part(part.data._with(**beside), part.grid, part.pages)


def reduce_parts(
    parts: list[Part],
    chain: Chain,
    values: int,
    in_use: Sequence[Names],
    fn: Callable[..., T],
    combine: Callable[[T, T], T] | None,
) -> tuple[str, list[PartialResult[T]]]:
    """Reduce the parts of one worker, on all its threads; runs on the worker, and says which it was."""
    worker = distributed().get_worker()
    with ThreadPoolExecutor(worker.state.nthreads) as pool:
        executor = pool if worker.state.nthreads > 1 else None
        found: list[PartialResult[T]] = []
        for part in parts:
            found += part.results(chain, values, in_use, executor).partial_results(fn, combine)
            part.release()
    return worker.address, blocks.combine_neighbours(found, parts[0].grid.total, combine)


def step(part: Part, fn: Callable[[S, QueryDataset], T], state: S) -> T:
    """Return what fn makes of a state and a part; runs on a worker."""
    result = fn(state, part.data)
    part.release()
    return result
