"""Features that are not in this memory: what a data set's X is where its rows lie on the workers of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .._typing import AnyArray, Ints, Matrix
from ..errors import InputError

if TYPE_CHECKING:
    from .blocks import BlockResults
    from .dataset import QueryDataset

S = TypeVar("S")
T = TypeVar("T")

ALL_ROWS = (
    "all rows of X are needed in one memory, and these lie on the workers of a cluster: read the data on one machine "
    "(tr.read_table, tr.stream_letor)"
)


class NotInMemoryError(InputError, AttributeError):
    """Something needs all rows of X in one memory."""


class RemoteMatrix(ABC):
    """A matrix whose rows lie elsewhere, in parts of whole queries: functions are sent to the rows.

    Grades, boundaries and ids of the queries are here, in the data set. Anything else that needs X is refused in one
    sentence.
    """

    shape: tuple[int, int]
    dtype: Any
    row_values: float
    """Stored values in a row, in the mean."""

    @abstractmethod
    def keep(self, data: QueryDataset, fn: Callable[[QueryDataset], T], values: int) -> BlockResults[T]:
        """Do what `QueryDataset.keep` does for the queries of `data`, whose features these are."""

    @abstractmethod
    def collect(self, fn: Callable[[Matrix, Ints], AnyArray]) -> AnyArray:
        """Return fn(X, ptr) of all parts, concatenated in their order."""

    @abstractmethod
    def walk_parts(
        self, data: QueryDataset, fn: Callable[[S, QueryDataset], tuple[S, T]], state: S
    ) -> tuple[S, list[T]]:
        """Take a state from part to part in order: return the state after the last one, and what each returned."""

    def refuse(self) -> NoReturn:
        """Say that the rows are not here."""
        raise NotInMemoryError(ALL_ROWS)

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()

    def __getitem__(self, rows: Any) -> NoReturn:
        self.refuse()

    def __array__(self, *unused: Any, **also_unused: Any) -> NoReturn:
        self.refuse()

    def __len__(self) -> NoReturn:
        self.refuse()
