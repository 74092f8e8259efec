"""What a reader knows of a table and a data set does not show: columns that are no features, cells that were empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TableNotes:
    """What became of the columns of a table.

    >>> TableNotes(left_out={"query_id": "an id"}, missing_cells={"price": 3}).missing_cells
    {'price': 3}
    """

    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns that are neither features nor have a role, and why."""
    missing_cells: Mapping[str, int] = field(default_factory=dict)
    """How many cells of a feature were empty and were filled."""
