"""What an online learner went through, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._drawing import empty_figure
from .._typing import Floats
from ..certificates.performance import confidence_sequence
from ..data.validation import check_choice
from ..solvers.steps import Total

COLUMNS = ("measure", "surrogate", "mistake", "znorm2")
_SUMS = dict(zip(COLUMNS, (Total.MEASURE, Total.SURROGATE, Total.MISTAKES, Total.ZNORM2), strict=True))


class Trace(dict[str, Floats]):
    """One array per column, one entry per round: measure, surrogate f_t(w_t), mistake (0 or 1), znorm2 = ‖z_t‖².

    `cumulative` and `average` add up a column from the learner's first round on, also where the trace starts later.

    >>> trace = Trace(np.array([[0.5, 1.0, 1.0, 2.0], [1.0, 0.0, 0.0, 0.0]]))
    >>> trace["measure"].tolist(), trace.cumulative("mistake").tolist(), trace.average("measure").tolist()
    ([0.5, 1.0], [1.0, 1.0], [0.5, 0.75])
    >>> trace
    Trace(2 rounds, on average: measure 0.75, surrogate 0.5, mistake 0.5, znorm2 1)
    """

    def __init__(self, rows: Floats, before: Floats | None = None) -> None:
        super().__init__(zip(COLUMNS, rows.T, strict=True))
        self.rounds_before = 0 if before is None else int(before[Total.ROUNDS])
        self._before = before

    def __repr__(self) -> str:
        rounds = self.rounds_before + len(self["measure"])
        if len(self["measure"]) == 0:
            return f"Trace(no rounds after the first {rounds:,})" if rounds else "Trace(no rounds)"
        means = ", ".join(f"{name} {self.average(name)[-1]:.4g}" for name in COLUMNS)
        return f"Trace({rounds:,} rounds, on average: {means})"

    def cumulative(self, column: str) -> Floats:
        """Return the running sum of a column over all rounds so far."""
        before = 0.0 if self._before is None else self._before[_SUMS[column]]
        sums: Floats = before + np.cumsum(self[column])
        return sums

    def average(self, column: str) -> Floats:
        """Return the running mean of a column: the time average of the paper's figures."""
        rounds: Floats = self.rounds_before + np.arange(1.0, len(self[column]) + 1)
        return self.cumulative(column) / rounds

    def plot(self, column: str = "measure") -> Any:
        """Return a matplotlib figure (the `plot` extra) of a column: its running mean, over each single round.

        The measure comes with a band: with 95% confidence it holds, at every round at once, the mean of what each round
        so far was expected to reach given the rounds before it (`confidence_sequence` with `changing`).

        >>> figure = Trace(np.array([[0.5, 1.0, 1.0, 2.0], [1.0, 0.0, 0.0, 0.0]])).plot("surrogate")
        >>> figure.axes[0].get_ylabel()
        'surrogate'
        """
        check_choice(COLUMNS, column=column)
        figure = empty_figure()
        axes = figure.subplots()
        rounds = self.rounds_before + np.arange(1, len(self[column]) + 1)
        axes.plot(rounds, self[column], ".", color="0.75", markersize=3, label="each round")
        axes.plot(rounds, self.average(column), label="running mean")
        if column == "measure" and self.rounds_before == 0 and len(rounds) > 0:
            lower, upper = confidence_sequence(self[column], changing=True)
            axes.fill_between(rounds, lower, upper, alpha=0.2, label="95% at all rounds at once")
        axes.set(xlabel="round", ylabel=column)
        axes.legend()
        return figure
