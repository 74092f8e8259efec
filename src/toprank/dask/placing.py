"""X in parts on workers: functions travel to the parts, and what parts return is combined as on one machine."""

from __future__ import annotations

import itertools
import mmap
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from .._typing import AnyArray, Ints, Matrix
from ..data import blocks, csr, validation
from ..data.blocks import Grid, Kept, Node, Reducible
from ..data.dataset import QueryDataset
from ..data.remote import RemoteMatrix
from ..errors import InputError
from .workers import Asked, Workers, distributed

S = TypeVar("S")
T = TypeVar("T")

PART_BYTES = 1 << 27
"""Bytes of X in a part where the number of parts is not given: few enough to spread evenly, and to load again soon."""

IN_MEMORY = 0.4
"""Share of the workers' memory up to which X stays in it; a larger X lies in their local folders, mapped."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Spec:
    """How to read a part again, whenever and wherever: `read` depends on nothing but files or what it carries."""

    read: Callable[[], QueryDataset]
    grid: Grid
    queries: tuple[int, int]
    rows: tuple[int, int]
    mapped: bool


class Part:
    """The queries of a part in a worker's memory, and what was made of them."""

    def __init__(self, data: QueryDataset, grid: Grid, pages: Sequence[mmap.mmap] = ()) -> None:
        self.data, self.grid, self.pages = data, grid, pages
        self.made: dict[Names, Kept[Any]] = {}
        self.lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Part, (self.data, self.grid)

    def __sizeof__(self) -> int:
        """What Dask moves and counts: mapped rows take no memory that would have to be freed."""
        return 1 << 20 if self.pages else _size(self.data.X)

    def kept(self, chain: Chain, values: int, alive: Sequence[Names], executor: Any) -> Kept[Any]:
        """Return what a chain of functions makes of the blocks; as far as it was made before, it is not made again.

        Of each chain that is `alive` the last result is kept, and no earlier one.
        """
        with self.lock:
            names = _names(values, chain)
            start = self._made(names)
            found = self.made[start] if start else Kept.of(self.data, values, grid=self.grid)
            found = replace(found, executor=executor)
            for n in range(len(start) + 1, len(names) + 1):
                found = self.made[names[:n]] = found if n == 1 else found.keep(chain[n - 2][1])
                wanted = {names[:n], *map(self._made, alive)}
                self.made = {key: kept for key, kept in self.made.items() if key in wanted}
            return found

    def _made(self, names: Names) -> Names:
        """Return how far a chain was made."""
        return next((names[:n] for n in range(len(names), 0, -1) if names[:n] in self.made), ())

    def rest(self) -> None:
        """Give the pages of mapped rows back; they come from the file, or its cache, when they are needed again."""
        for page in self.pages:
            page.madvise(mmap.MADV_DONTNEED)


Chain = tuple[tuple[str, Callable[..., Any]], ...]
Names = tuple[str, ...]
"""How many values a block has, and the names of a chain's functions."""


def _names(values: int, chain: Chain) -> Names:
    return (str(values), *(name for name, _ in chain))


def load(spec: Spec) -> Part:
    """Read a part; runs on a worker."""
    data = spec.read()
    if data.n_docs != spec.rows[1] - spec.rows[0] or data.n_queries != spec.queries[1] - spec.queries[0]:
        raise InputError(f"rows {spec.rows[0]} to {spec.rows[1]} are not what they were: a file changed meanwhile")
    validation.check_magnitude(data.X, data.feature_names)
    if not data.is_sparse and data.mapped is None:
        # What travelled may not be written to: to the compiler that is another type, and compiling takes longer.
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
    """Return the array in a file of the worker's folder that has no name any more: it goes when nobody maps it.

    Nothing writes to it; that it could be written to, in a copy, saves compiling all kernels for another type.
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
    alongs: list[Any],
    chain: Chain,
    values: int,
    alive: Sequence[Names],
    fn: Callable[..., T],
    combine: Callable[[T, T], T] | None,
) -> tuple[str, list[Node[T]]]:
    """Reduce the parts of one worker, on all its threads; runs on the worker, and says which it was."""
    worker = distributed().get_worker()
    with ThreadPoolExecutor(worker.state.nthreads) as pool:
        executor = pool if worker.state.nthreads > 1 else None
        nodes: list[Node[T]] = []
        for part, along in zip(parts, alongs, strict=True):
            nodes += part.kept(chain, values, alive, executor).nodes(fn, combine, along)
            part.rest()
    return worker.address, blocks.climb(nodes, parts[0].grid.total, combine)


def step(part: Part, fn: Callable[[S, QueryDataset], T], state: S) -> T:
    """Let a state go over a part; runs on a worker."""
    result = fn(state, part.data)
    part.rest()
    return result


class PlacedMatrix(RemoteMatrix):
    """Features in parts on the workers of a cluster."""

    def __init__(
        self, workers: Workers, specs: list[Spec], shape: tuple[int, int], dtype: Any, row_values: float
    ) -> None:
        self.workers, self.specs, self.shape, self.dtype, self.row_values = workers, specs, shape, dtype, row_values
        self.base: PlacedMatrix | None = None
        self.beside: list[dict[str, Any]] = []
        self.own: dict[str, Any] = {}
        self.alike: WeakSet[PlacedMatrix] = WeakSet()
        self.latest: PlacedMatrix | None = None
        self.kept: WeakSet[PlacedKept[Any]] = WeakSet()
        self.groups: dict[str, list[int]] | None = None
        self.futures: list[Any] = []

    def start(self) -> None:
        """Ask the workers to load the parts, wherever there is room."""
        client, keys = self.workers.client, [f"toprank-part-{next(_numbers)}-{i}" for i in range(len(self.specs))]
        self.groups = None
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # `place` says that arrays travel so
            if self.base is None:
                self.futures = client.map(load, self.specs, key=keys, pure=False)
            else:
                self.futures = client.map(relabel, self.base.futures, self.beside, key=keys, pure=False)

    def renew(self, attempt: int) -> None:
        """Look again where the parts are; from the second time on, load all of them under new keys."""
        self.groups = None
        if attempt:
            if self.base is not None:
                self.base.renew(attempt)
            self.workers.drop(self.futures)
            self.start()

    def keep(self, data: QueryDataset, fn: Callable[[QueryDataset], T], values: int) -> Reducible[T]:
        """Keep fn of each block on its worker."""
        return PlacedKept(self.of(data), values).keep(fn)

    def collect(self, fn: Callable[[Matrix, Ints], AnyArray]) -> AnyArray:
        """Return fn(X, ptr) of runs of queries in order, one behind the other."""
        return np.concatenate(PlacedKept[QueryDataset](self, blocks.RUN_VALUES).map_reduce(partial(_listed, fn)))

    def along(self, data: QueryDataset, fn: Callable[[S, QueryDataset], tuple[S, T]], state: S) -> tuple[S, list[T]]:
        """Send a state from part to part."""
        own, results = self.of(data), []
        self.latest = own if own is not self else None  # the next epoch asks for it again
        for i in range(len(own.specs)):
            state, result = own._result(i, partial(step, fn=fn, state=state))
            results.append(result)
        return state, results

    def of(self, data: QueryDataset) -> PlacedMatrix:
        """Return these features beside the grades and weights of `data`."""
        names = ("y", "query_weight", "doc_weight")
        changed = {name: getattr(data, name) for name in names if getattr(data, name) is not self.own.get(name)}
        if not changed:
            return self
        for other in self.alike:
            if all(getattr(data, name) is other.own.get(name) for name in names):
                return other
        made = PlacedMatrix(self.workers, self.specs, self.shape, self.dtype, self.row_values)
        made.base, made.own = self, self.own | changed
        for spec in self.specs:
            spans = {"y": spec.rows, "doc_weight": spec.rows, "query_weight": spec.queries}
            made.beside.append({k: None if v is None else v[slice(*spans[k])] for k, v in changed.items()})
        made.start()
        self.alike.add(made)
        return made

    def call(
        self, kept: PlacedKept[Any], fn: Callable[..., T], combine: Callable[[T, T], T] | None, along: AnyArray | None
    ) -> T:
        """Reduce what is kept: one task for each worker that holds parts."""
        alive = [_names(one.values, one.chain) for one in self.kept]
        work = partial(reduce_parts, chain=kept.chain, values=kept.values, alive=alive, fn=fn, combine=combine)
        cut = [None if along is None else along[slice(*spec.queries)] for spec in self.specs]

        def ask() -> Asked:
            placed = self._placement()
            futures = [
                self.workers.client.submit(
                    work, [self.futures[i] for i in group], [cut[i] for i in group], pure=False,
                    key=f"toprank-reduce-{next(_numbers)}", workers=[address], allow_other_workers=True,
                )
                for address, group in placed.items()
            ]  # fmt: skip
            return Asked(futures, tuple(placed))

        found = self.workers.results(ask, self.renew, self.futures)
        if [address for address, _ in found] != list(self.groups or ()):
            self.groups = None  # somebody else did it: parts have moved
        nodes: list[Node[T]] = [node for _, part in found for node in part]
        return blocks.root(nodes, combine, self.specs[0].grid.total)

    def _result(self, i: int, work: Callable[[Part], T]) -> T:
        def ask() -> Asked:
            key = f"toprank-step-{next(_numbers)}"
            return Asked([self.workers.client.submit(work, self.futures[i], key=key, pure=False)])

        found: list[T] = self.workers.results(ask, self.renew, self.futures)
        return found[0]

    def _placement(self) -> dict[str, list[int]]:
        """Return the workers with the parts that each of them holds, once all are loaded."""
        while self.groups is None:
            self.workers.ready(lambda: Asked(self.futures), self.renew)
            holders = self.workers.client.who_has(self.futures)
            groups: dict[str, list[int]] = {}
            for i, future in enumerate(self.futures):
                held = holders.get(future.key)
                if not held:  # lost again since
                    break
                groups.setdefault(min(held, key=lambda one: len(groups.get(one, ()))), []).append(i)
            else:
                self.groups = groups
        return self.groups


class PlacedKept(Reducible[T]):
    """What a chain of functions makes of the blocks of placed data. It is made on first use, where the blocks are."""

    def __init__(self, matrix: PlacedMatrix, values: int, chain: Chain = ()) -> None:
        self.matrix, self.values, self.chain = matrix, values, chain
        matrix.kept.add(self)

    def keep(self, fn: Callable[[T], S]) -> Reducible[S]:
        """Return fn of each, to be kept."""
        return PlacedKept(self.matrix, self.values, (*self.chain, (str(next(_numbers)), fn)))

    def map_reduce(
        self, fn: Callable[..., S], combine: Callable[[S, S], S] | None = None, along: AnyArray | None = None
    ) -> S:
        """Combine fn of each on the workers, then what they return here."""
        return self.matrix.call(self, fn, combine, along)


def _listed(fn: Callable[[Matrix, Ints], AnyArray], block: QueryDataset) -> list[AnyArray]:
    return [fn(block.X, block.ptr)]


def placed(
    workers: Workers,
    read: Callable[[int, int, int, int], Callable[[], QueryDataset]],
    *,
    n_features: int,
    dtype: Any,
    row_values: float,
    parts: int | None,
    mapped: bool | None,
    **beside: Any,
) -> QueryDataset:
    """Return a data set whose features are loaded in parts by workers.

    `beside` is everything in it but X; read(q0, q1, row0, row1) returns a function that reads all of these queries,
    which are these rows, again.
    """
    ptr = beside["ptr"]
    whole, n_docs = Grid.of(ptr, row_values), int(ptr[-1])
    borders, size = blocks.cuts(ptr, whole.docs), n_docs * row_values * np.dtype(dtype).itemsize
    wanted = parts or max(int(size / PART_BYTES), 4 * max(1, len(workers.threads())))
    if mapped is None:
        memory = workers.memory()
        mapped = bool(memory) and size > IN_MEMORY * memory
    if parts is None:  # so many runs, a power of two, that what a part comes to is one result
        each = 1 << (max(1, whole.total // wanted).bit_length() - 1)
        runs = np.append(np.arange(0, whole.total, each), whole.total)
    else:
        runs = np.unique(np.linspace(0, whole.total, min(wanted, whole.total) + 1).round().astype(int))
    specs = []
    for a, b in pairwise(runs.tolist()):
        first, last = borders[a], borders[b]
        rows = int(ptr[first]), int(ptr[last])
        grid = replace(whole, row=rows[0], run=a)
        specs.append(Spec(read(first, last, *rows), grid, (first, last), rows, mapped))
    X = PlacedMatrix(workers, specs, (n_docs, n_features), np.dtype(dtype), row_values)
    data = QueryDataset(X=X, **beside)
    X.own = {"y": data.y, "query_weight": data.query_weight, "doc_weight": data.doc_weight}
    X.start()
    return data


def place(
    data: QueryDataset, client: Any, *, parts: int | None = None, mapped: bool | None = None, timeout: float = 120.0
) -> QueryDataset:
    """Put the features of a data set on the workers of a Dask cluster; learning from it gives the same bits.

    Arrays travel through the scheduler, which keeps them for workers that come later: for data of some GB open a
    folder that all workers see (`open_queries`), which travels by its name, or read files where the workers are
    (`read_table`, `read_letor`). Grades, query ids and document ids stay here.

    `parts` is how many pieces X is cut into (None: some per worker). `mapped` puts them into files in the workers'
    local folders instead of their memory (None: where they would take more than 40% of it). `timeout` is how many
    seconds may pass without a worker before `WorkersLost` is raised, and without progress before work is handed out
    anew.
    """
    workers = checked(client, parts, timeout)

    def read(first: int, last: int, start: int, stop: int) -> Callable[[], QueryDataset]:
        return partial(_same, data[first:last])

    names = ("y", "ptr", "query_ids", "feature_names", "doc_ids", "query_weight", "doc_weight", "order")
    beside = {name: getattr(data, name) for name in names}
    return placed(
        workers, read, n_features=data.n_features, dtype=data.X.dtype, row_values=data.row_values, parts=parts,
        mapped=mapped, **beside,
    )  # fmt: skip


def checked(client: Any, parts: int | None, timeout: float) -> Workers:
    """Return the workers of a client, after a look at what the caller gave."""
    validation.check_count(parts=1 if parts is None else parts)
    validation.check_positive(timeout=timeout)
    return Workers(client, timeout)


def _same(data: QueryDataset) -> QueryDataset:
    return data
