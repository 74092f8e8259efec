"""What a contest is once it has been held: who took part, what each scored, and which differences are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._typing import Floats, Ints
from ..certificates.base import Certificate
from ..comparison import Comparison
from ..data.dataset import QueryDataset
from ..evaluation import Report
from ..rankers.base import Ranker


@dataclass(frozen=True)
class Entrant:
    """One contestant: its scores of the test documents and, if it learned anything, what it learned."""

    name: str
    scores: Floats
    """One per document of the contest's `data`."""
    report: Report
    rankers: tuple[Ranker, ...] = ()
    """The fitted rankers, one per fold; empty for a baseline that learns nothing."""
    params: tuple[Mapping[str, Any], ...] = ()
    """The chosen hyper-parameters, one mapping per fold."""
    curves: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Learning curves by name (`"train"`, `"valid"`, `"objective"`), of the first fold."""
    certificates: tuple[Certificate, ...] = ()
    seconds: float = 0.0
    """Training time of the chosen settings, all folds together."""


@dataclass(frozen=True)
class Contest:
    """A contest that has been held; `data` are the test queries of all folds, one fold after the other."""

    title: str
    data: QueryDataset
    entrants: tuple[Entrant, ...]
    comparison: Comparison
    fold: Ints
    """The fold that each test query belongs to: zeros where there was only one test file."""
    notes: tuple[str, ...] = ()
    """What a reader must know: how hyper-parameters were chosen, what was left out and why."""

    def entrant(self, name: str) -> Entrant:
        """Return the contestant of that name."""
        return next(entrant for entrant in self.entrants if entrant.name == name)
