"""Names for the arrays that pass between the layers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
AnyArray: TypeAlias = npt.NDArray[Any]
ArrayLike: TypeAlias = npt.ArrayLike
Matrix: TypeAlias = Any
"""C-order float32/float64 array or canonical CSR: `data.validation.as_matrix` makes it so."""
