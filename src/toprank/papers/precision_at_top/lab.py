"""Where the experiments are run: the tasks that are there, and the results that are kept."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..exhibits import Checkpoint, Exhibit
from ..experiments import data_folder, piece
from .methods import METHODS, Settings, Trial, baselines, choose
from .tasks import COVERTYPE, KNOWN, TASKS, Split, digest_of, split_of


@dataclass(frozen=True)
class Lab:
    """What an exhibit may be asked for: its fields are the options of `fig2`."""

    data: str | None = None
    checkpoint: Path | None = None
    tasks: Sequence[str] = tuple(TASKS)
    seeds: int = 5
    passes: int = 25
    max_rows: int | None = None
    _settings: dict[tuple[str, str, float], Settings] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def root(self) -> Path:
        """The folder of the collections."""
        return data_folder(self.data)

    @cached_property
    def there(self) -> list[str]:
        """Those of the tasks that are there; none at all, or an unknown one, is an error."""
        unknown = [name for name in self.tasks if name not in KNOWN]
        if unknown:
            raise InputError(f"unknown task {unknown[0]!r}: known are {', '.join(KNOWN)}")
        found = [name for name in self.tasks if KNOWN[name].paths(self.root)]
        if not found:
            raise InputError(f"none of {', '.join(self.tasks)} is in {self.root}")
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What is left out, and where it would stand."""
        gone = [KNOWN[name] for name in self.tasks if name not in self.there]
        return tuple(f"Left out: {task.title}, put {', '.join(task.files)} in {task.folder}/." for task in gone)

    def run(self, task: str, name: str, trial: Trial, timed: bool = False) -> Any:
        """Return the curve of one method on one split; settings are chosen once per task, on the first seed's rows."""
        cells, method = Checkpoint(self.checkpoint), {**METHODS, **baselines()}[name]
        which, first = (task, name, trial.kappa), Trial(trial.kappa, trial.passes)
        rows = digest_of(KNOWN[task], self.root) if self.checkpoint else None
        key: dict[str, Any] = {"method": name, "rows": self.max_rows, "data": rows}
        if which not in self._settings:
            self._settings[which] = piece(
                cells, lambda: choose(method, self._split(task, 0), first), chosen=asdict(first), **key
            )
        settings = self._settings[which]
        key |= {**asdict(trial), "settings": settings, "timed": timed}
        del key["limit"]  # it follows from other times
        return piece(cells, lambda: method.run(self._split(task, trial.seed), trial, settings), **key)

    def _split(self, task: str, seed: int) -> Split:
        return split_of(KNOWN[task], self.root, seed, self.max_rows)


@dataclass(frozen=True)
class Sweeps(Lab):
    """The options of `fig3`."""

    kappas: Sequence[float] = (0.05, 0.1, 0.25, 0.5, 0.75, 1.0)
    lengths: Sequence[int] = (100, 200, 500, 1000, 2000, 5000)


@dataclass(frozen=True)
class Classes(Lab):
    """The options of `covertype`."""

    tasks: Sequence[str] = tuple(COVERTYPE)
    seeds: int = 3
    max_rows: int | None = 100_000


def in_lab(kind: Callable[..., Any]) -> Callable[[Callable[[Any], Exhibit]], Callable[..., Exhibit]]:
    """Let a function of a lab take the lab's fields as its options."""

    def decorate(make: Callable[[Any], Exhibit]) -> Callable[..., Exhibit]:
        @wraps(make)
        def made(*args: Any, **options: Any) -> Exhibit:
            return make(kind(*args, **options))

        made.__signature__ = inspect.signature(kind)  # type: ignore[attr-defined]
        return made

    return decorate
