"""Fig. 1: streams that a unit vector separates, an easy one and a hard one; and the regret of the three learners."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...data.csr import dense
from ...data.dataset import QueryDataset
from ...data.synthetic import make_separable
from ...rankers import ListNet
from ...rankers.replay import largest_weight_ratio
from ...surrogates import ListNet as CrossEntropy
from ...surrogates import Slam
from ..exhibits import Claim, Exhibit, claim
from .learners import COLOURS, LISTNET, MULTIPLES, NAMES, THREE, TWO, thin

NOISE = 6.0
"""How much wider the hard stream is across the separating direction."""


def streams(lists: int, margin: float, seed: int) -> dict[str, tuple[QueryDataset, float]]:
    """Return an easy and a hard stream with the margin that each really has.

    The hard one adds noise to every direction but the separating one: the margin stays, R_X²/γ² grows, and the means of
    the grades no longer give the order away.
    """
    made = make_separable(n_queries=lists, n_docs=20, n_features=20, n_grades=5, margin=margin, random_state=seed)
    noise = NOISE * np.random.default_rng(seed).standard_normal(made.data.X.shape)
    noise -= np.outer(noise @ made.ranker, made.ranker)
    hard = made.data.with_X(dense(made.data.X) + noise)
    return {"as the paper's": (made.data, made.margin), "hard": (hard, _margin(hard, made.ranker))}


def _margin(data: QueryDataset, u: Floats) -> float:
    from ...certificates.mistakes import ranking_margin

    return ranking_margin(data.X @ u, data.y, data.ptr)


def fig1(*, passes: int = 200, random_state: int = 0) -> Exhibit:
    """Fig. 1: time-averaged NDCG@10 of the three learners on separable streams, with the bounds of Corollaries 7, 11.

    20 documents with 20 features a list, five grades, one Gaussian each, separable with margin γ. As in the paper each
    learner has one fixed step, the best of a grid by its time average over all rounds. The paper names neither γ nor
    the number of rounds: here 1,000 lists come round again and again, with γ ≥ 0.02.
    """
    lists, rounds = 1000, 1000 * passes
    at = thin(rounds)
    rows: list[tuple[Any, ...]] = []
    claims: list[Claim] = []
    curves: dict[str, dict[str, Floats]] = {}
    held: dict[str, dict[str, float]] = {}
    for stream, (data, margin) in streams(lists, 0.02, random_state).items():
        radius2 = float((dense(data.X) ** 2).sum(axis=1).max())
        vmax = largest_weight_ratio(Slam("ndcg@10"), data)
        held[stream] = {TWO: 4 * 10 * radius2 * vmax / margin**2, THREE: 4 * radius2 / margin**2}
        curves[stream], last = {}, {}
        lost: dict[str, float] = {}
        for kind, name in NAMES.items():
            grid = (1.0,) if name == THREE else tuple(multiple / radius2 for multiple in MULTIPLES[:7])
            tried = [kind(measure="ndcg@10", eta=eta, epochs=passes, shuffle=False).fit_queries(data) for eta in grid]
            ranker = max(tried, key=lambda each: each.totals_["measure"])
            trace = ranker.trace_
            curves[stream][name] = trace.average("measure")
            mistakes = np.flatnonzero(trace["mistake"])
            last[name] = int(mistakes[-1]) + 1 if len(mistakes) else 0
            lost[name] = float((1 - trace["measure"]).sum())
            rows.append(
                (
                    stream,
                    name,
                    f"{ranker.eta * radius2:g}/R²",
                    float(curves[stream][name][-1]),
                    len(mistakes),
                    last[name],
                    lost[name],
                    held[stream].get(name),
                )
            )
        claims += verdicts(
            stream, {name: float(curve[-1]) for name, curve in curves[stream].items()}, last, lost, held[stream], rounds
        )
    columns = (
        "stream",
        "learner",
        "η",
        "time-averaged NDCG@10",
        "mistakes",
        "last mistake",
        "cumulative loss",
        "its bound",
    )

    def draw(figure: Any) -> None:
        figure.set_size_inches(8.0, 6.5)
        axes = figure.subplots(2, 2)
        for (left, right), (stream, found) in zip(axes, curves.items(), strict=True):
            for name, curve in found.items():
                left.semilogx(at + 1, curve[at], color=COLOURS[name], label=name)
                right.loglog(at + 1, np.maximum((1 - curve[at]) * (at + 1), 1e-3), color=COLOURS[name])
            for name, bound in held[stream].items():
                right.axhline(bound, linestyle="--", color=COLOURS[name])
            left.set(ylabel=f"NDCG@10, {stream}", xlabel="round")
            right.set(ylabel="cumulative loss, bounds dashed", xlabel="round")
        axes[0][0].legend(loc="lower right", fontsize=8)

    return Exhibit(
        name="fig1",
        title=f"Fig. 1: time-averaged NDCG@10 on separable streams of {rounds:,} rounds",
        data={
            "round": at + 1,
            "bounds": held,
            "curves": {s: {name: curve[at] for name, curve in found.items()} for s, found in curves.items()},
        },
        table=Table(columns, rows, digits=6),
        notes=(f"1,000 lists, {passes} times over. The hard stream has {NOISE:g} times the noise across u.",),
        draw=draw,
        claims=tuple(claims),
    )


def verdicts(
    stream: str,
    reached: dict[str, float],
    last: dict[str, int],
    lost: dict[str, float],
    bounds: dict[str, float],
    rounds: int,
) -> list[Claim]:
    """The paper's sentences on Fig. 1, for one stream."""
    both = (TWO, THREE)
    # A finite run can show that mistakes ended, or that there were more than the bound allows; else it is too short.
    ended = True if all(last[name] <= rounds / 2 for name in both) else None
    return [
        claim(
            f"Stream {stream}: both perceptrons rank all but a finite number of lists correctly.",
            False if any(lost[name] > bounds[name] for name in both) else ended,
            "Last mistakes in rounds "
            + " and ".join(f"{last[name]:,}" for name in both)
            + f" of {rounds:,}; read as: none in the second half.",
        ),
        claim(
            f"Stream {stream}: the perceptrons converge to 1 faster than ListNet.",
            all(reached[name] > reached[LISTNET] for name in both),
            ", ".join(f"{name} {value:.6f}" for name, value in reached.items()) + ".",
        ),
        claim(
            f"Stream {stream}: the two perceptrons differ imperceptibly.",
            abs(reached[TWO] - reached[THREE]) < 0.001,
            f"By {abs(reached[TWO] - reached[THREE]):.6f} at the end; read as: less than 0.001.",
        ),
        claim(
            f"Stream {stream}: the cumulative loss stays below the bounds of Corollaries 7 and 11.",
            all(lost[name] <= bounds[name] for name in both),
            ", ".join(f"{name} {lost[name]:.2f} of {bounds[name]:.3g}" for name in both) + ".",
        ),
    ]


def regret(*, passes: int = 100, random_state: int = 0) -> Exhibit:
    """Regret against the best fixed vector: of the SLAM and the ListNet losses, on the hard separable stream."""
    data, _ = streams(1000, 0.02, random_state)["hard"]
    radius2 = float((dense(data.X) ** 2).sum(axis=1).max())
    best = ListNet(alpha=1e-8, max_iter=500).fit_queries(data).coef_
    floor = {LISTNET: CrossEntropy().per_query(data.X @ best, data.y, data.ptr)[0], TWO: np.zeros(data.n_queries)}
    curves: dict[str, Floats] = {}
    rows, claims = [], []
    for kind, name in NAMES.items():
        if name == THREE:
            continue
        tried = []
        for multiple in MULTIPLES[:7]:
            eta: float | str = multiple / radius2 if name == TWO else f"sqrt:{multiple / radius2!r}"
            ranker = kind(measure="ndcg@10", eta=eta, epochs=passes, shuffle=False).fit_queries(data)
            tried.append(np.cumsum(ranker.trace_["surrogate"] - np.tile(floor[name], passes)))
        curves[name] = min(tried, key=lambda curve: float(curve[-1]))
        half = len(curves[name]) // 2
        rise = np.log(max(curves[name][-1], 1e-9) / max(curves[name][half - 1], 1e-9)) / np.log(2)
        rows.append((name, float(curves[name][half - 1]), float(curves[name][-1]), float(rise)))
    flat, grows = rows[0][3], rows[1][3]
    claims = [
        claim(
            "Algorithm 2's cumulative surrogate loss is bounded on a separable stream.",
            flat < 0.1,
            f"In the second half of the rounds it grows like t^{flat:.2f}; read as: a power below 0.1.",
        ),
        claim(
            "ListNet's regret is O(√t).",
            grows <= 0.6,
            f"In the second half it grows like t^{grows:.2f}; read as: a power of at most 0.6.",
        ),
    ]
    at = thin(len(curves[TWO]))

    def draw(figure: Any) -> None:
        axis = figure.subplots()
        for name, curve in curves.items():
            axis.loglog(at + 1, np.maximum(curve[at], 1e-3), color=COLOURS[name], label=name)
        axis.set(xlabel="round", ylabel="Σ f_t(w_t) − Σ f_t(u)")
        axis.grid(alpha=0.3)
        axis.legend()

    return Exhibit(
        "regret",
        "Regret against the best fixed vector, hard separable stream",
        {"round": at + 1, "curves": {name: curve[at] for name, curve in curves.items()}},
        Table(("learner", "after half the rounds", "at the end", "power of t in the second half"), rows, digits=2),
        (
            "u minimises each learner's own loss over all lists; a long separating vector has the SLAM loss 0. The "
            "steps are the best of a grid in units of 1/R_X² (ListNet: falling like 1/√t).",
        ),
        draw,
        tuple(claims),
    )
