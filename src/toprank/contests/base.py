"""What a contest is once it has been held: who took part, what each scored, and which differences are shown."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._suggest import did_you_mean
from .._tables import Shown, Table
from .._typing import Floats, Ints
from ..certificates.base import Certificate
from ..data.dataset import QueryDataset
from ..statistics.comparison import Comparison
from ..statistics.evaluation import Report

if TYPE_CHECKING:
    from .repeats import Repeats


@dataclass(frozen=True)
class Entrant:
    """One contestant: its scores of the test documents and, if it learned anything, what it learned."""

    name: str
    scores: Floats
    """One per document of the contest's `data`; −∞ for one that was not retrieved. Empty where there are no data."""
    report: Report
    rankers: tuple[Any, ...] = ()
    """The fitted rankers, or anybody's estimators, one per fold; empty for a baseline that learns nothing."""
    params: tuple[Mapping[str, Any], ...] = ()
    """The chosen hyper-parameters, one mapping per fold."""
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Learning curves by name (`"train"`, `"valid"`, `"objective"`), of the first fold."""
    certificates: tuple[Certificate, ...] = ()
    """First what new queries will see of it (and of its gain over the baseline), then what the papers prove."""
    seconds: float = 0.0
    """Training time of the chosen settings, all folds together."""
    valid: tuple[float, ...] = ()
    """What the chosen settings reached on the validation queries, one value per fold."""
    tried: int = 0
    """How many settings were tried, all folds together."""
    planned: int = 0
    """How many there were to try."""
    searched: float = 0.0
    """Training time of everything that was tried."""
    cut: int = 0
    """How many of the settings were stopped before they were done, because their time ran out."""
    processor: float = 0.0
    """Processor seconds of everything that was tried."""
    learned_here: bool = True
    """Whether it learned in this contest; else it took part as given."""
    unseen: bool | None = None
    """Of one that took part as given: whether it learned from none of the test queries; None where nothing tells."""


@dataclass(frozen=True)
class Contest(Shown):
    """A contest that has been held; `data` are the test queries of all folds, one fold after the other."""

    title: str
    data: QueryDataset | None
    """None where only values per query are known."""
    entrants: tuple[Entrant, ...]
    comparison: Comparison
    fold: Ints
    """The fold that each test query belongs to: zeros where there was only one test file."""
    notes: tuple[str, ...] = ()
    """What a reader must know: how hyper-parameters were chosen, what was left out and why."""
    warnings: tuple[str, ...] = ()
    """Those of the notes that cast doubt on a result: who was left out, queries that stand in two parts, limits."""
    measure: str = ""
    """The measure that settings were chosen by, as the reports name it; empty where nothing was chosen."""
    chosen_by: str = ""
    """What settings were chosen by: the measure, or "click value" where the validation queries were clicks."""
    against: str = ""
    """Whom gains are certified over."""
    repeats: Repeats | None = None
    """What is known about the learners, where learning was repeated."""

    def entrant(self, name: str) -> Entrant:
        """Return the contestant of that name."""
        for entrant in self.entrants:
            if entrant.name == name:
                return entrant
        names = [entrant.name for entrant in self.entrants]
        raise KeyError(f"no {name!r} in this contest{did_you_mean(name, names)}: there are {', '.join(names)}")

    @property
    def main(self) -> str:
        """The measure that the table is sorted by: that of the choice, else the first."""
        return self.measure or self.comparison.measures[0]

    @property
    def best(self) -> Entrant:
        """The contestant with the highest mean on the test queries: a winner by luck, where no difference is shown."""
        return max(self.entrants, key=lambda entrant: entrant.report.mean[self.main])

    @property
    def cut_short(self) -> str:
        """How far the search went where it did not try all that was planned; empty where it did."""
        tried, planned, stopped = (sum(getattr(e, name) for e in self.entrants) for name in ("tried", "planned", "cut"))
        if tried == planned and not stopped:
            return ""
        return f"{tried} of {planned} settings tried" + (
            f", {stopped} stopped before they were done" if stopped else ""
        )

    @property
    def n_folds(self) -> int:
        """How many folds there were."""
        return int(self.fold.max(initial=0)) + 1

    def save(self, folder: str | os.PathLike[str]) -> list[str]:
        """Write what every winner learned into a folder and return the files; who has no format is warned of.

        Rankers of ours are read by `toprank.load` and the server, trees of other libraries by `toprank.export`.
        """
        from .saving import save_winners

        written, left = save_winners(self, folder)
        for reason in left:
            warnings.warn(reason, stacklevel=2)
        return written

    def tables(self) -> tuple[Table, ...]:
        """Return who scored what with which differences are shown, and what was chosen and tried."""
        from .tables import means, settings

        learned = [settings(self)] if any(entrant.params for entrant in self.entrants) else []
        return (means(self), *([] if self.repeats is None else [self.repeats.table()]), *learned)

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return everything but the data and the models as plain values, for JSON."""
        from .tables import as_dict

        return as_dict(self, per_query=per_query)

    def __repr__(self) -> str:
        names = ", ".join(entrant.name for entrant in self.entrants)
        return f"Contest({names}; {len(self.fold)} queries, best by {self.main}: {self.best.name})"
