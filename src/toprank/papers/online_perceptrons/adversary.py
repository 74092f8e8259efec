"""Theorem 9's adversary against both perceptrons: what it forces, and what the bounds allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...certificates.mistakes import lower_bound
from ...data.adversary import LowerBoundAdversary
from ...measures import measure
from ...rankers import MinimaxPerceptron, SlamPerceptron
from ..exhibits import Exhibit, Panel, Said, judge, panels

COLUMNS = (
    *("γ asked", "γ realised", "rounds", "mistakes of Algorithm 3", "4R²/γ²", "AP loss forced"),
    *("Algorithm 2 loses", "Algorithm 3 loses", "Algorithm 2 at most"),
)
_CURVES = {
    "4R²/γ² (Corollary 11)": (4, "C1--"),
    "mistakes of Algorithm 3": (3, "C1s"),
    "AP loss at most (Corollary 7)": (8, "C0--"),
    "AP loss of Algorithm 2": (6, "C0o"),
    "AP loss at least (Theorem 9)": (5, "k-"),
}
"""What is drawn: a column of the table, and how."""


def upper_and_lower(*, margins: tuple[float, ...] = (0.25, 0.18, 0.125, 0.09, 0.0625, 0.05)) -> Exhibit:
    """Theorem 9's adversary: mistakes that it forces beside the 4R²/γ² that Corollary 11 allows, and losses in AP."""
    rows: list[tuple[Any, ...]] = []
    for gamma in margins:
        lost, wrong = [], 0
        for kind in (SlamPerceptron, MinimaxPerceptron):
            adversary = LowerBoundAdversary(radius=1.0, margin=gamma, n_docs=10)
            # Algorithm 2 takes the step η = 1/A of Corollary 7; AP has vmax = 1.
            ranker = kind("map", eta=1 / (4 * 10), average=False)
            scored: list[Floats] = []

            def predict(X: Floats, ranker: Any = ranker, scored: list[Floats] = scored) -> Floats:
                scored.append(ranker.predict(X) if hasattr(ranker, "model_") else np.zeros(len(X)))
                return scored[-1]

            data = adversary.play(predict, ranker.partial_fit)
            values = measure("map:ties=input").per_query(np.concatenate(scored), data.y, data.ptr)  # as it was shown
            lost.append(float((1 - values).sum()))
            wrong = int((values < 1).sum())
        real, forced = adversary.verified_margin(), lower_bound("map", 1.0, gamma, min(lost)).value
        rows.append((gamma, real, len(adversary), wrong, 4 / real**2, forced, *lost, 40 / real**2))
    curves = {name: [row[column] for row in rows] for name, (column, _) in _CURVES.items()}
    styles, x = {name: style for name, (_, style) in _CURVES.items()}, [1 / row[1] ** 2 for row in rows]
    drawn = Panel(curves, x, "R²/γ², γ realised", "mistakes, cumulative AP loss", log="xy", styles=styles)
    title = "Upper and lower bounds against the adversary, 10 documents a list"
    notes = ("Asked for γ the adversary's witness realises at least 2γ, and the upper bounds use that.",)
    stored, table = {"columns": COLUMNS, "rows": rows}, Table(COLUMNS, rows, digits=2)
    return Exhibit("upper_and_lower", title, stored, table, notes, panels(drawn), _meet(rows))


@judge
def _meet(rows: Sequence[Sequence[Any]]) -> Said:
    share, last = min(row[3] / row[4] for row in rows), rows[-1]
    text, most = "Algorithm 3 makes at most 4R²/γ² mistakes.", max(row[3] / row[4] for row in rows)
    yield text, most <= 1 + 1e-9, f"{last[3]} of {last[4]:.0f} at γ = {last[1]:.3g}."
    text = "The bound of Algorithm 3 is the minimax bound: upper and lower bound meet."
    told = f"The adversary forces at least {share:.1%} of the mistakes that the bound allows; read as: 90%."
    yield text, share >= 0.9, told
    text, least = "Any deterministic learner loses at least what Theorem 9 says.", min(last[6:8])
    sure = all(min(row[6:8]) >= row[5] - 1e-9 for row in rows)
    yield text, sure, f"{least:.1f} against {last[5]:.1f} at the smallest margin."
