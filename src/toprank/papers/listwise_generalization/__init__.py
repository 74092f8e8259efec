"""Generalization analysis of listwise learning-to-rank algorithms: its tables and statements, recomputed and checked.

Two exhibits are not in the paper: its theorems measured, and the gap between training and fresh data beside the bound.
"""

from __future__ import annotations

from ..exhibits import by_name
from .measured import gap, letor, theorems
from .tables import list_length, rate, table_1, table_2, table_3

FIGURES = by_name(table_1, table_2, table_3, list_length, rate, theorems, gap, letor, sep="-")
