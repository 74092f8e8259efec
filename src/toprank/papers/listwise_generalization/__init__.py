"""Generalization analysis of listwise learning-to-rank algorithms: its tables and statements, recomputed and checked.

Two exhibits are not in the paper: its theorems measured, and the gap between training and fresh data beside the bound.
"""

from __future__ import annotations

from collections.abc import Callable

from ..exhibits import Exhibit
from .measured import gap, letor, theorems
from .tables import list_length, rate, table_1, table_2, table_3

FIGURES: dict[str, Callable[..., Exhibit]] = {
    "table-1": table_1,
    "table-2": table_2,
    "table-3": table_3,
    "list-length": list_length,
    "rate": rate,
    "theorems": theorems,
    "gap": gap,
    "letor": letor,
}
