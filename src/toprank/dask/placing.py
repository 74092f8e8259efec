"""X in parts on workers: functions travel to the parts, and what parts return is combined as on one machine."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import cycle, pairwise
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np

from .._typing import AnyArray, Ints, Matrix
from ..data import blocks, validation
from ..data.blocks import BlockResults, Grid, PartialResult
from ..data.dataset import QueryDataset
from ..data.remote import RemoteMatrix
from ..errors import InputError
from .parts import Chain, Part, PartSpec, load, names_of, reduce_parts, relabel, step
from .unchanged import Marks, check_marks, marks_of_folder
from .workers import ATTEMPTS, Request, Workers

S = TypeVar("S")
T = TypeVar("T")

PART_BYTES = 1 << 27
"""Bytes of X in a part where the number of parts is not given: few enough to spread evenly, and to load again soon."""

IN_MEMORY = 0.4
"""Share of the workers' memory up to which X stays in it; a larger X lies in their local folders, mapped."""

LOOK_SECONDS = 5.0
"""Seconds between two looks for new workers."""

_numbers = itertools.count()


class PlacedMatrix(RemoteMatrix):
    """Features in parts on the workers of a cluster."""

    def __init__(
        self, workers: Workers, specs: list[PartSpec], shape: tuple[int, int], dtype: Any, row_values: float
    ) -> None:
        self.workers, self.specs, self.shape, self.dtype, self.row_values = workers, specs, shape, dtype, row_values
        self.base: PlacedMatrix | None = None
        """The same features beside other grades or weights, from whose parts these are made."""
        self.changes: list[dict[str, Any]] = []
        """The grades and weights of each part that are not those of `base`."""
        self.beside_X: dict[str, Any] = {}
        self.variants: WeakSet[PlacedMatrix] = WeakSet()
        """Matrices whose base this is."""
        self.last_used: PlacedMatrix | None = None
        self.results: WeakSet[PlacedResults[Any]] = WeakSet()
        self.parts_of_worker: dict[str, list[int]] | None = None
        self.futures: list[Any] = []
        self.sources: list[Any] = []
        """The futures of `base` that these were made of."""
        self.moving: dict[int, tuple[str, Any]] = {}
        """Parts that workers which came later are loading: the worker and the future."""
        self.last_look, self.failed_moves = 0.0, 0

    def start(self) -> None:
        """Ask the workers to load the parts, wherever there is room."""
        self.parts_of_worker, self.moving, self.last_look = None, {}, time.monotonic()
        if self.base is None:
            self.futures = self._submit(load, self.specs)
        else:
            self.sources = list(self.base.futures)
            self.futures = self._submit(relabel, self.sources, self.changes)

    def _submit(self, fn: Callable[..., Part], *each: list[Any], **where: Any) -> list[Any]:
        keys = [f"toprank-part-{next(_numbers)}" for _ in each[0]]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # `place` says that arrays travel so
            futures: list[Any] = self.workers.client.map(self.workers.task(fn), *each, key=keys, pure=False, **where)
        return futures

    def share_out(self) -> None:
        """Let new workers take parts over: they load them while the others go on, and work when all are loaded."""
        if self.base is not None:
            self.base.share_out()
            moved = [i for i, source in enumerate(self.base.futures) if source is not self.sources[i]]
            if moved:
                self.sources = list(self.base.futures)
                new = self._submit(relabel, [self.sources[i] for i in moved], [self.changes[i] for i in moved])
                self._replace(dict(zip(moved, new, strict=True)))
        elif self.moving and all(future.done() for _, future in self.moving.values()):
            came = {i: future for i, (_, future) in self.moving.items() if future.status == "finished"}
            self.failed_moves += len(came) < len(self.moving)
            self.workers.free(came.values())
            self._replace(came)
        elif time.monotonic() - self.last_look > LOOK_SECONDS and self.failed_moves < ATTEMPTS:
            self.last_look, there, groups = time.monotonic(), self.workers.threads(), self._placement()
            if any(address not in there for address, _ in self.moving.values()):
                self.failed_moves += 1
                self._replace({})
            if not self.moving:
                share = -(-len(self.specs) // max(1, len(there)))
                spare = [i for group in groups.values() for i in group[share:]]
                for i, address in zip(spare, cycle(address for address in there if address not in groups)):
                    self.moving[i] = address, self._submit(load, [self.specs[i]], workers=[address])[0]

    def _replace(self, new: dict[int, Any]) -> None:
        self.futures = [new.get(i, old) for i, old in enumerate(self.futures)]
        self.parts_of_worker, self.moving = None, {}

    def reload(self, attempt: int) -> None:
        """Look again where the parts are; from the second time on, load all of them under new keys."""
        self.parts_of_worker = None
        if attempt:
            if self.base is not None:
                self.base.reload(attempt)
            self.workers.drop(self.futures)
            self.start()

    def keep(self, data: QueryDataset, fn: Callable[[QueryDataset], T], values: int) -> BlockResults[T]:
        """Keep fn of each block on its worker."""
        return PlacedResults(self.beside(data), values).keep(fn)

    def collect(self, fn: Callable[[Matrix, Ints], AnyArray]) -> AnyArray:
        """Return fn(X, ptr) of runs of queries in order, one behind the other."""
        return np.concatenate(PlacedResults[QueryDataset](self, blocks.RUN_VALUES).map_reduce(partial(_listed, fn)))

    def walk_parts(
        self, data: QueryDataset, fn: Callable[[S, QueryDataset], tuple[S, T]], state: S
    ) -> tuple[S, list[T]]:
        """Send a state from part to part."""
        matrix, results = self.beside(data), []
        self.last_used = matrix if matrix is not self else None  # the next epoch asks for it again
        for i in range(len(matrix.specs)):
            state, result = matrix._result(i, partial(step, fn=fn, state=state))
            results.append(result)
        return state, results

    def beside(self, data: QueryDataset) -> PlacedMatrix:
        """Return these features beside the grades and weights of `data`."""
        names = ("y", "query_weight", "doc_weight")
        changed = {name: getattr(data, name) for name in names if getattr(data, name) is not self.beside_X.get(name)}
        if not changed:
            return self
        for other in self.variants:
            if all(getattr(data, name) is other.beside_X.get(name) for name in names):
                return other
        made = PlacedMatrix(self.workers, self.specs, self.shape, self.dtype, self.row_values)
        made.base, made.beside_X = self, self.beside_X | changed
        for spec in self.specs:
            spans = {"y": spec.rows, "doc_weight": spec.rows, "query_weight": spec.queries}
            made.changes.append({k: None if v is None else v[slice(*spans[k])] for k, v in changed.items()})
        made.start()
        self.variants.add(made)
        return made

    def reduce(self, kept: PlacedResults[Any], fn: Callable[..., T], combine: Callable[[T, T], T] | None) -> T:
        """Reduce what is kept: one task for each worker that holds parts."""
        self.share_out()
        in_use = [names_of(one.values, one.chain) for one in self.results]
        work = partial(
            self.workers.task(reduce_parts), chain=kept.chain, values=kept.values, in_use=in_use, fn=fn, combine=combine
        )

        def ask() -> Request:
            placed = self._placement()
            futures = [
                self.workers.client.submit(
                    work, [self.futures[i] for i in group], pure=False, key=f"toprank-reduce-{next(_numbers)}",
                    workers=[address], allow_other_workers=True,
                )
                for address, group in placed.items()
            ]  # fmt: skip
            return Request(futures, tuple(placed))

        found = self.workers.results(ask, self.reload, self.futures)
        if [address for address, _ in found] != list(self.parts_of_worker or ()):
            self.parts_of_worker = None  # another worker did it: parts have moved
        results: list[PartialResult[T]] = [result for _, part in found for result in part]
        return blocks.combined(results, combine, self.specs[0].grid.total)

    def _result(self, i: int, work: Callable[[Part], T]) -> T:
        def ask() -> Request:
            key = f"toprank-step-{next(_numbers)}"
            return Request([self.workers.client.submit(self.workers.task(work), self.futures[i], key=key, pure=False)])

        found: list[T] = self.workers.results(ask, self.reload, self.futures)
        return found[0]

    def _placement(self) -> dict[str, list[int]]:
        """Return the workers with the parts that each of them holds, once all are loaded."""
        while self.parts_of_worker is None:
            self.workers.ready(lambda: Request(self.futures), self.reload)
            holders = self.workers.client.who_has(self.futures)
            groups: dict[str, list[int]] = {}
            for i, future in enumerate(self.futures):
                held = holders.get(future.key)
                if not held:  # lost again since
                    break
                groups.setdefault(min(held, key=lambda one: len(groups.get(one, ()))), []).append(i)
            else:
                self.parts_of_worker = groups
        return self.parts_of_worker


class PlacedResults(BlockResults[T]):
    """What a chain of functions makes of the blocks of placed data. It is made on first use, where the blocks are."""

    def __init__(self, matrix: PlacedMatrix, values: int, chain: Chain = ()) -> None:
        self.matrix, self.values, self.chain = matrix, values, chain
        matrix.results.add(self)

    def keep(self, fn: Callable[[T], S]) -> BlockResults[S]:
        """Return fn of each, to be kept."""
        return PlacedResults(self.matrix, self.values, (*self.chain, (str(next(_numbers)), fn)))

    def map_reduce(self, fn: Callable[[T], S], combine: Callable[[S, S], S] | None = None) -> S:
        """Combine fn of each on the workers, then what they return here."""
        return self.matrix.reduce(self, fn, combine)


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
    borders, size = blocks.block_boundaries(ptr, whole.docs), n_docs * row_values * np.dtype(dtype).itemsize
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
        specs.append(PartSpec(read(first, last, *rows), grid, (first, last), rows, mapped))
    X = PlacedMatrix(workers, specs, (n_docs, n_features), np.dtype(dtype), row_values)
    data = QueryDataset(X=X, **beside)
    X.beside_X = {"y": data.y, "query_weight": data.query_weight, "doc_weight": data.doc_weight}
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
    seconds may pass without a worker before `WorkersLost` is raised, and without progress before work is given out
    again.
    """
    workers = checked(client, parts, timeout)
    if data.has_missing:
        raise InputError(
            "the data set has missing cells (NaN), and on the workers of a cluster nothing fills them: make it with "
            'missing="zero", or stay on one machine'
        )

    marks = None if data.mapped is None else marks_of_folder(data.mapped[0])

    def read(first: int, last: int, start: int, stop: int) -> Callable[[], QueryDataset]:
        return partial(_same, data[first:last], marks)

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


def _same(data: QueryDataset, marks: dict[str, Marks] | None) -> QueryDataset:
    """Return data that travelled here; a folder that travelled by its name must be what it was."""
    if data.mapped is not None and marks is not None:
        folder, now = data.mapped[0], marks_of_folder(data.mapped[0])
        for name in sorted({*marks, *now}):
            check_marks(str(folder / name), marks.get(name, {}), now.get(name, {}))
    return data
