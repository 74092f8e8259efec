"""What a page leads with: who is best, who the baseline is, and how any two of them compare."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .._html import clip
from .._typing import AnyArray, Floats, Ints
from ..contests.base import Contest
from ..data import validation
from ..errors import InputError
from ..measures.presets import relevant_above
from ..statistics.comparison import Difference


@dataclass(frozen=True)
class ContestView:
    """A contest seen from its first measure; systems are numbered as the entrants are."""

    contest: Contest
    baseline: int
    """Whom the others are held against."""

    @classmethod
    def of(cls, contest: Contest, baseline: str | None = None) -> ContestView:
        """Choose the baseline: the one named, else the comparison's, else the first that learned nothing.

        Where nobody learned here, as of runs, all are contenders: the first that was given is the baseline, or the
        second best where the first is the best.
        """
        names = [entrant.name for entrant in contest.entrants]
        if sorted(names) != sorted(contest.comparison.systems):
            raise InputError(
                f"the entrants are {', '.join(names)} and the comparison is of {', '.join(contest.comparison.systems)}:"
                " compare the entrants' reports"
            )
        chosen = baseline or contest.comparison.baseline or contest.against
        if chosen:
            validation.check_choice(tuple(names), baseline=chosen)
            return cls(contest, names.index(chosen))
        baselines = [i for i, entrant in enumerate(contest.entrants) if not entrant.rankers]
        view = cls(contest, baselines[0] if baselines else 0)
        if len(baselines) < len(names):
            return view
        first, (best, *others) = names.index(contest.comparison.systems[0]), view.best_first(view.measures[0])
        return cls(contest, others[0] if first == best and others else first)

    @property
    def names(self) -> list[str]:
        """The entrants' names."""
        return [entrant.name for entrant in self.contest.entrants]

    @cached_property
    def labels(self) -> list[str]:
        """The names, short enough for a table."""
        return [clip(name, 48) for name in self.names]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures; the first decides who is best: the contest's own, where it names one."""
        main = self.contest.main
        return (main, *(measure for measure in self.contest.comparison.measures if measure != main))

    def means(self, measure: str) -> Floats:
        """Return each system's mean."""
        by_name = self.contest.comparison.means[measure]
        return np.array([by_name[name] for name in self.names])

    def best_first(self, measure: str) -> list[int]:
        """Return the systems from best to worst; equals keep their order."""
        return [int(i) for i in np.argsort(-self.means(measure), kind="stable")]

    @property
    def best(self) -> int:
        """The winner on the first measure."""
        return self.best_first(self.measures[0])[0]

    @property
    def challenger(self) -> int:
        """Whom the page first shows against the baseline: the best of the others."""
        return next(i for i in self.best_first(self.measures[0]) if i != self.baseline)

    def difference(self, measure: str, a: int, b: int) -> Difference | None:
        """Return the comparison a − b whichever way round it was made; None where it was not."""
        return self._differences.get((measure, self.names[a], self.names[b]))

    @cached_property
    def _differences(self) -> dict[tuple[str, str, str], Difference]:
        found = {}
        for d in self.contest.comparison.differences:
            low, high = d.interval
            found[d.measure, d.a, d.b] = d
            found[d.measure, d.b, d.a] = replace(
                d,
                a=d.b,
                b=d.a,
                difference=-d.difference,
                direction=-d.direction,
                interval=(-high, -low),
                wins=d.losses,
                losses=d.wins,
            )
        return found

    def values(self, measure: str) -> Floats:
        """Return the values of a measure, system × query."""
        return np.stack([entrant.report.per_query[measure] for entrant in self.contest.entrants])

    @cached_property
    def relevant_above(self) -> float:
        """The grade above which a document counts as relevant under the contest's conventions."""
        report = self.contest.entrants[0].report
        return float(min(relevant_above(measure.convention) for measure in report.measures))

    @property
    def query_ids(self) -> AnyArray:
        """The queries, by name."""
        data = self.contest.data
        return self.contest.entrants[0].report.query_ids if data is None else data.query_ids

    @cached_property
    def n_relevant(self) -> Ints | None:
        """Relevant documents of each query; None where documents are not known."""
        data = self.contest.data
        if data is None:
            return None
        hits = np.concatenate(([0], np.cumsum(data.y > self.relevant_above)))
        return np.asarray(hits[data.ptr[1:]] - hits[data.ptr[:-1]], dtype=np.int64)

    def feature(self, index: int) -> str:
        """Return a feature's name, counted from 1 where it has none."""
        names = None if self.contest.data is None else self.contest.data.feature_names
        return f"feature {index + 1}" if names is None else clip(names[index], 60)
