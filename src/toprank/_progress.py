"""Progress bars: on a terminal when work takes seconds, silent everywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

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


@contextmanager
def busy(what: str) -> Iterator[None]:
    """Show that work is going on, on a terminal only."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} …"):
        yield


@contextmanager
def steps(total: int, *, most: float | None = None, show: bool | None = None) -> Iterator[Callable[[str, int], None]]:
    """Yield a function to call with what goes on and how many steps are done since the last call.

    The time left is that of the mean step, and at most what is left of `most` seconds.

    >>> with steps(2, show=False) as tell:
    ...     tell("first", 1)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda what, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.text import Text

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            if not task.completed or task.elapsed is None or task.total is None:
                return Text("")
            seconds = task.elapsed / task.completed * (task.total - task.completed)
            if most is not None and most > task.elapsed:
                seconds = min(seconds, most - task.elapsed)
            return Text(f"{int(seconds) // 60}:{int(seconds) % 60:02d} left")

    # Something moves while a step takes its time.
    words = TextColumn("{task.description}")
    columns: tuple[Any, ...] = (SpinnerColumn(), words, BarColumn(bar_width=20), MofNCompleteColumn(), Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda what, done: bar.update(task, description=what, advance=done)
