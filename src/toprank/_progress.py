"""What goes on and how long it will take: on a terminal when work takes seconds, silent everywhere else.

One display is on the screen at a time; one that opens inside another takes its place until it ends. Standard output is
never touched: it may be a file while standard error is a terminal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from operator import length_hint
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

_open: list[Any] = []
"""Displays that began and have not ended, the one on the screen last."""


@contextmanager
def _on_screen(display: Any) -> Iterator[None]:
    if _open:
        _open[-1].stop()
    _open.append(display)
    display.start()
    try:
        yield
    finally:
        display.stop()
        if display in _open:
            _open.remove(display)
            if _open:
                _open[-1].start()


def silence() -> None:
    """End every display, because results are about to be printed."""
    while _open:
        _open.pop().stop()


@contextmanager
def aside() -> Iterator[None]:
    """Take displays off the screen while something is printed."""
    hidden = [*_open]
    silence()
    try:
        yield
    finally:
        _open[:] = hidden
        if hidden:
            hidden[-1].start()


@contextmanager
def busy(what: str, *, show: bool | None = None) -> Iterator[Callable[[str], None]]:
    """Show that work is going on, on a terminal only; yield a function to call with other words for it."""
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda words: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    wheel = Spinner("dots", f"{what} …", style="status.spinner")
    console = Console(stderr=True)
    with _on_screen(Live(wheel, console=console, refresh_per_second=12.5, transient=True, redirect_stdout=False)):
        yield lambda words: wheel.update(text=f"{words} …")


def each_busy(items: Iterable[T], what: str) -> Iterator[T]:
    """Yield the items; that work is going on is shown while each is made, and not while the caller has it."""
    made = iter(items)
    while True:
        with busy(what):
            item = list(islice(made, 1))
        if not item:
            return
        yield item[0]


class OnProgress(Protocol):
    """Says what goes on; with `done`, that a step of that kind is over, and after how many seconds if it was made."""

    def __call__(self, what: str, done: str | None = None, seconds: float | None = None) -> None: ...


@dataclass
class Pace:
    """How long the rest will take: Σ over kinds of (steps left) · (mean seconds of a step of that kind).

    A kind that was not met yet is taken for the mean of all; the rest is at most what is left of `most` seconds.

    >>> pace = Pace({"fast": 4, "slow": 2})
    >>> pace.step("fast", 1.0), pace.step("slow", 9.0)
    (None, None)
    >>> pace.left()
    12.0
    """

    plan: dict[str, int]
    most: float | None = None
    took: dict[str, list[float]] = field(default_factory=dict)

    def step(self, kind: str, seconds: float | None) -> None:
        """Note a step that was made, or (None) one that is not made after all."""
        self.plan[kind] = max(self.plan.get(kind, 0) - 1, 0)
        if seconds is not None:
            self.took.setdefault(kind, []).append(seconds)

    def left(self, running: float = 0.0) -> float | None:
        """Return the seconds left, `running` of them gone since the last step; None before there is any."""
        every = [seconds for each in self.took.values() for seconds in each]
        if not every:
            return None
        usual = sum(every) / len(every)
        means = {kind: sum(took) / len(took) for kind, took in self.took.items()}
        rest = sum(count * means.get(kind, usual) for kind, count in self.plan.items())
        rest -= min(running, usual, rest)
        return rest if self.most is None else min(rest, max(self.most - sum(every) - running, 0.0))


@contextmanager
def steps(plan: Mapping[str, int], *, most: float | None = None, show: bool | None = None) -> Iterator[OnProgress]:
    """Yield what to call as things go on: `plan` has the steps of each kind, `most` the seconds they may take.

    >>> with steps({"fit": 2}, show=False) as tell:
    ...     tell("first", "fit", 0.5)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda what, done=None, seconds=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.text import Text

    pace, last = Pace(dict(plan), most), time.monotonic()

    class Left(ProgressColumn):
        def render(self, task: Task) -> Text:
            seconds = pace.left(time.monotonic() - last)
            return Text("" if seconds is None else f"{int(seconds) // 60}:{int(seconds) % 60:02d} left")

    # The wheel moves while a step takes its time.
    words = TextColumn("{task.description}")
    columns: tuple[Any, ...] = (SpinnerColumn(), words, BarColumn(bar_width=20), MofNCompleteColumn(), Left())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)
    task = bar.add_task("", total=sum(plan.values()) or None)

    def tell(what: str, done: str | None = None, seconds: float | None = None) -> None:
        nonlocal last
        if done is not None:
            pace.step(done, seconds)
            last = time.monotonic()
        bar.update(task, description=what, advance=int(done is not None))

    with _on_screen(bar):
        yield tell


def track(items: Iterable[T], description: str, total: int | None = None, *, show: bool | None = None) -> Iterator[T]:
    """Yield the items, with a bar and the time left on standard error when that is a terminal (or as `show` says).

    >>> sum(track([1, 2, 3], "adding", show=False))
    6
    """
    with steps({description: length_hint(items) if total is None else total}, show=show) as tell:
        tell(description)
        for item in items:
            began = time.monotonic()
            yield item
            tell(description, description, time.monotonic() - began)
