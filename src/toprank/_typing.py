"""Names for the arrays that pass between the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .data.remote import RemoteMatrix

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
AnyArray: TypeAlias = npt.NDArray[Any]
ArrayLike: TypeAlias = npt.ArrayLike
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None


class CSR(Protocol):
    """What is used of scipy's `csr_array` (and its `tocsc()`): scipy comes without types."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray
    dtype: np.dtype[Any]
    shape: tuple[int, int]
    nnz: int
    has_canonical_format: bool
    has_sorted_indices: bool

    @property
    def T(self) -> CSR: ...
    def __getitem__(self, key: Any) -> CSR: ...
    def __matmul__(self, other: AnyArray) -> AnyArray: ...
    def __abs__(self) -> CSR: ...
    def astype(self, dtype: Any) -> CSR: ...
    def copy(self) -> CSR: ...
    def max(self, axis: int) -> CSR: ...
    def multiply(self, other: CSR) -> CSR: ...
    def sum(self, axis: int) -> AnyArray: ...
    def sum_duplicates(self) -> None: ...
    def toarray(self) -> AnyArray: ...
    def tocsc(self) -> CSR: ...


Matrix: TypeAlias = "AnyArray | CSR | RemoteMatrix"
"""C-order float32/float64 array, canonical CSR (`data.validation.as_matrix` makes it so), or rows on a cluster."""
