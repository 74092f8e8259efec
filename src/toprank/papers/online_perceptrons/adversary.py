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
from ..exhibits import Claim, Exhibit, claim
from .learners import COLOURS, THREE, TWO


def upper_and_lower(*, margins: tuple[float, ...] = (0.25, 0.18, 0.125, 0.09, 0.0625, 0.05)) -> Exhibit:
    """Theorem 9's adversary: mistakes that it forces beside the 4R²/γ² that Corollary 11 allows, and losses in AP."""
    rows: list[tuple[Any, ...]] = []
    for gamma in margins:
        lost: dict[str, float] = {}
        wrong: dict[str, int] = {}
        for kind, name in ((SlamPerceptron, TWO), (MinimaxPerceptron, THREE)):
            adversary = LowerBoundAdversary(radius=1.0, margin=gamma, n_docs=10)
            # Algorithm 2 takes the step η = 1/A of Corollary 7; AP has vmax = 1.
            ranker = kind("map", eta=1 / (4 * 10), average=False)
            scored: list[Floats] = []

            def predict(X: Floats, ranker: Any = ranker, scored: list[Floats] = scored) -> Floats:
                scored.append(ranker.predict(X) if hasattr(ranker, "model_") else np.zeros(len(X)))
                return scored[-1]

            data = adversary.play(predict, ranker.partial_fit)
            found = adversary.verified_margin()
            values = measure("map:ties=input").per_query(np.concatenate(scored), data.y, data.ptr)  # as it was shown
            lost[name], wrong[name] = float((1 - values).sum()), int((values < 1).sum())
        forced = lower_bound("map", 1.0, gamma, min(lost.values())).value
        rows.append(
            (gamma, found, len(adversary), wrong[THREE], 4 / found**2, forced, lost[TWO], lost[THREE], 40 / found**2)
        )
    columns = (
        "γ asked",
        "γ realised",
        "rounds",
        "mistakes of Algorithm 3",
        "4R²/γ²",
        "AP loss forced",
        "Algorithm 2 loses",
        "Algorithm 3 loses",
        "Algorithm 2 at most",
    )

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        x = [1 / row[1] ** 2 for row in rows]
        axis.loglog(x, [row[4] for row in rows], "--", color=COLOURS[THREE], label="4R²/γ² (Corollary 11)")
        axis.loglog(
            x, [row[3] for row in rows], "s", color=COLOURS[THREE], label="mistakes of Algorithm 3", fillstyle="none"
        )
        axis.loglog(x, [row[8] for row in rows], "--", color=COLOURS[TWO], label="AP loss at most (Corollary 7)")
        axis.loglog(x, [row[6] for row in rows], "o", color=COLOURS[TWO], label="AP loss of Algorithm 2")
        axis.loglog(x, [row[5] for row in rows], "k-", label="AP loss at least (Theorem 9)")
        axis.set(xlabel="R²/γ², γ realised", ylabel="mistakes, cumulative AP loss")
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=8)

    return Exhibit(
        name="upper_and_lower",
        title="Upper and lower bounds against the adversary, 10 documents a list",
        data={"columns": columns, "rows": rows},
        table=Table(columns, rows, digits=2),
        notes=("Asked for γ the adversary's witness realises at least 2γ, and the upper bounds use that.",),
        draw=draw,
        claims=verdicts(rows),
    )


def verdicts(rows: Sequence[Sequence[Any]]) -> tuple[Claim, ...]:
    """The paper's sentences on its bounds, for the rows of the table."""
    share = min(row[3] / row[4] for row in rows)
    return (
        claim(
            "Algorithm 3 makes at most 4R²/γ² mistakes.",
            all(row[3] <= row[4] * (1 + 1e-9) for row in rows),
            f"{rows[-1][3]} of {rows[-1][4]:.0f} at γ = {rows[-1][1]:.3g}.",
        ),
        claim(
            "The bound of Algorithm 3 is the minimax bound: upper and lower bound meet.",
            share >= 0.9,
            f"The adversary forces at least {share:.1%} of the mistakes that the bound allows; read as: 90%.",
        ),
        claim(
            "Any deterministic learner loses at least what Theorem 9 says.",
            all(min(row[6], row[7]) >= row[5] - 1e-9 for row in rows),
            f"{min(rows[-1][6], rows[-1][7]):.1f} against {rows[-1][5]:.1f} at the smallest margin.",
        ),
    )
