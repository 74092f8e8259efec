"""Where a data set was read from: the file, the line of each row, and what became of the columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from ..errors import InputError
from ._text import open_bytes


@dataclass(frozen=True)
class Source:
    """What a reader knows of a file or table that a data set does not show.

    >>> Source(left_out={"query_id": "an id"}, missing_cells={"price": 3}).place(0)
    'row 0'
    >>> Source("train.parquet").place(0)
    'row 1 of train.parquet'
    """

    file: str | None = None
    """None for a table in memory."""
    kind: Literal["rows", "csv", "letor"] = "rows"
    """What a place in the file is counted by: rows from 1, or lines."""
    sep: str = ","
    """What stands between the cells of a text table."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Columns that are neither features nor have a role, and why."""
    missing_cells: Mapping[str, int] = field(default_factory=dict)
    """How many cells of a feature were empty and were filled."""

    def place(self, row: int) -> str:
        """Say where a row stands: a line of a file counts from 1, a row of a table in memory from 0."""
        if self.file is None:
            return f"row {row}"
        if self.kind == "rows":
            return f"row {row + 1} of {self.file}"
        return f"{line_of(self.file, row, self.kind, self.sep)} of {self.file}"


def line_of(file: str, row: int, kind: Literal["csv", "letor"], sep: str = ",") -> str:
    """Return the line of a row, which is looked for in the file: blank lines are no rows, and cells may span lines."""
    try:
        if file in ("-", "<stdin>"):
            return f"row {row + 1}"
        with open_bytes(file) as stream:
            if kind == "letor":
                lines = (n for n, line in enumerate(stream, 1) if line.split(b"#", 1)[0].strip())
                return f"line {next(islice(lines, row, None))}"
            reader = csv.reader(io.TextIOWrapper(stream, "utf-8", "replace", newline=""), delimiter=sep)
            ends = (reader.line_num for cells in reader if cells)
            return f"line {next(islice(ends, row + 1, None))}"
    except (InputError, OSError, StopIteration, csv.Error):  # it is gone, or has changed
        return f"row {row + 1}"
