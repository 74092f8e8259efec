"""Progress bars: on a terminal when work takes seconds, silent everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def track(items: Iterable[T], description: str, total: int | None = None, *, show: bool | None = None) -> Iterator[T]:
    """Yield the items, with a bar and the time left on standard error when that is a terminal (or as `show` says).

    >>> sum(track([1, 2, 3], "adding", show=False))
    6
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield from bar.track(items, total=total, description=description)
