"""Two rankers on one page: team-draft interleaving, and the test of who is clicked more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, overload

import numpy as np

from .._typing import AnyArray, ArrayLike, Ints
from ..data.validation import as_generator, check_count, check_fraction
from ..errors import InputError
from .monitor import InterleavingMonitor, monitor_of


@dataclass(frozen=True, eq=False)
class Interleaved:
    """What to show, and which ranker (0 or 1) put each document there."""

    shown: AnyArray
    team: Ints

    def credit(self, clicked: ArrayLike) -> tuple[int, int]:
        """Return the clicks of the first and of the second ranker; `clicked` has one flag per document shown.

        >>> Interleaved(np.array(["d", "e", "f"]), np.array([0, 1, 0])).credit([True, False, True])
        (2, 0)
        """
        flags = np.asarray(clicked)
        if flags.shape != self.shown.shape or (flags.size and flags.dtype.kind not in "biuf"):
            raise InputError(f"clicked must have one flag per document shown ({len(self.shown)}), got {flags.shape}")
        bad = flags[(flags != 0) & (flags != 1)]
        if len(bad):
            raise InputError(f"clicked has {bad[0]}: write 0 or 1 for each document shown")
        flags = flags.astype(bool)
        second = int((flags & (self.team == 1)).sum())
        return int(flags.sum()) - second, second


def interleave(
    first: ArrayLike, second: ArrayLike, length: int = 10, random_state: int | np.random.Generator = 0
) -> Interleaved:
    """Let two rankings of documents, best first, choose in turns; a coin says who begins each round (team draft).

    Under the null hypothesis that users do not tell the rankers apart, a click is as likely for one as for the other
    (Radlinski, Kurup and Joachims 2008).

    >>> page = interleave(["a", "b", "c"], ["b", "d", "a"], length=3)
    >>> sorted(page.shown.tolist()[:2]), len(page.shown)
    (['a', 'b'], 3)
    """
    check_count(length=length)
    rng = as_generator(random_state)
    try:
        rankings = [np.asarray(first), np.asarray(second)]
        queues = [list(dict.fromkeys(ranking.tolist())) for ranking in rankings]
    except (ValueError, TypeError):  # lists, of several lengths or of one
        rankings = []
    if [ranking.ndim for ranking in rankings] != [1, 1]:
        raise InputError("a ranking is a list of documents, best first")
    shown: list[object] = []
    team: list[int] = []
    at, seen = [0, 0], set()
    while len(shown) < length:
        begins = int(rng.integers(2))
        picked = len(shown)
        for who in (begins, 1 - begins):
            queue = queues[who]
            while at[who] < len(queue) and queue[at[who]] in seen:
                at[who] += 1
            if at[who] < len(queue) and len(shown) < length:
                seen.add(queue[at[who]])
                shown.append(queue[at[who]])
                team.append(who)
        if len(shown) == picked:
            break
    documents = np.empty(len(shown), dtype=object)
    documents[:] = shown
    kind = np.result_type(*rankings) if all(len(ranking) for ranking in rankings) else object
    return Interleaved(documents.astype(kind), np.array(team, dtype=np.int64))


@dataclass(frozen=True)
class InterleavingResult:
    """Sessions won by each ranker, and how likely a split at least as uneven is if users do not tell them apart."""

    wins_first: int
    wins_second: int
    ties: int
    p: float
    alpha: float

    def __str__(self) -> str:
        counts = f"first {self.wins_first:,}, second {self.wins_second:,}, neither {self.ties:,} sessions"
        if self.p > self.alpha:
            return f"{counts}: no difference shown at {self.alpha:.0%} (sign test, p = {self.p:.4g})"
        better = "first" if self.wins_first > self.wins_second else "second"
        return f"{counts}: the {better} is clicked more (sign test, p = {self.p:.4g})"


@overload
def interleaving_test(
    credits: ArrayLike, alpha: float = 0.05, *, anytime: Literal[False] = False
) -> InterleavingResult: ...


@overload
def interleaving_test(credits: ArrayLike, alpha: float = 0.05, *, anytime: Literal[True]) -> InterleavingMonitor: ...


def interleaving_test(
    credits: ArrayLike, alpha: float = 0.05, *, anytime: bool = False
) -> InterleavingResult | InterleavingMonitor:
    """Compare two rankers by the sessions each won; `credits` has two columns, the clicks of each in a session.

    An exact sign test over the sessions that one of them won, for a number of sessions that was fixed beforehand.
    Whoever looks while sessions come in and stops when there is something to see needs `anytime=True`: the result is
    then an `InterleavingMonitor` after these sessions, valid under any rule for stopping.

    >>> print(interleaving_test([[1, 0]] * 9 + [[0, 1]] + [[1, 1]]))
    first 9, second 1, neither 1 sessions: the first is clicked more (sign test, p = 0.02148)
    >>> interleaving_test([[1, 0]] * 90 + [[0, 1]] * 10, anytime=True).verdict
    'first'
    """
    from scipy.stats import binomtest

    check_fraction(alpha=alpha)
    table = np.asarray(credits)
    if table.ndim != 2 or table.shape[1] != 2:
        raise InputError(f"credits must have two columns, the clicks of each ranker, got shape {table.shape}")
    counts = table.dtype.kind in "biuf"
    bad = np.flatnonzero(~((table >= 0) & (table < np.inf) & (table == np.floor(table))).all(axis=1)) if counts else [0]
    if len(bad):
        raise InputError(
            f"credits has {table[bad[0]].tolist()} in row {int(bad[0])}: they are counts of clicks, from 0"
        )
    if anytime:
        return monitor_of(table, alpha)
    first, second = int((table[:, 0] > table[:, 1]).sum()), int((table[:, 0] < table[:, 1]).sum())
    p = float(binomtest(first, first + second).pvalue) if first + second else 1.0
    return InterleavingResult(first, second, len(table) - first - second, p, alpha)
