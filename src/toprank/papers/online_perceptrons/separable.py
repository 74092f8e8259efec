"""Streams that a unit vector separates: Fig. 1 on an easy and a hard one, regret, and Theorem 9's adversary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...certificates.generalization import largest_norm
from ...certificates.mistakes import lower_bound, ranking_margin
from ...data.adversary import LowerBoundAdversary
from ...data.csr import dense
from ...data.dataset import QueryDataset
from ...data.synthetic import make_separable
from ...measures import measure
from ...rankers import ListNet, MinimaxPerceptron, SlamPerceptron
from ...rankers.replay import largest_weight_ratio
from ...surrogates import ListNet as CrossEntropy
from ...surrogates import Slam
from ..exhibits import Claim, Exhibit, Own, Panel, Said, judge, panels
from .streams import LISTNET, MULTIPLES, NAMES, STYLES, THREE, TWO, thin

NOISE = 6.0  # how much wider the hard stream is across the separating direction


def streams(lists: int, margin: float, seed: int) -> dict[str, tuple[QueryDataset, float]]:
    """Return an easy and a hard stream with the margin that each really has.

    The hard one adds noise to every direction but the separating one: the margin stays, R_X²/γ² grows, and the means of
    the grades no longer give the order away.
    """
    made = make_separable(n_queries=lists, n_docs=20, n_features=20, n_grades=5, margin=margin, random_state=seed)
    noise = NOISE * np.random.default_rng(seed).standard_normal(made.data.X.shape)
    noise -= np.outer(noise @ made.ranker, made.ranker)
    hard = made.data.with_X(dense(made.data.X) + noise)
    real = ranking_margin(hard.X @ made.ranker, hard.y, hard.ptr)
    return {"as the paper's": (made.data, made.margin), "hard": (hard, real)}


def fig1(*, passes: int = 200, random_state: int = 0) -> Exhibit:
    """Fig. 1: time-averaged NDCG@10 of the three learners on separable streams, with the bounds of Corollaries 7, 11.

    20 documents with 20 features a list, five grades, one Gaussian each, separable with margin γ. As in the paper each
    learner has one fixed step, the best of a grid by its time average over all rounds. The paper names neither γ nor
    the number of rounds: here 1,000 lists come round again and again, with γ ≥ 0.02.
    """
    at = thin(1000 * passes)
    found: dict[str, dict[str, Floats]] = {}
    bounds: dict[str, dict[str, float]] = {}
    claims: list[Claim] = []
    drawn, rows = [], []
    dashed = {f"bound of {name}": f"{style}--" for name, style in STYLES.items()}
    for stream, (data, margin) in streams(1000, 0.02, random_state).items():
        radius2, vmax = largest_norm(data) ** 2, largest_weight_ratio(Slam("ndcg@10"), data)
        held = bounds[stream] = {TWO: 4 * 10 * radius2 * vmax / margin**2, THREE: 4 * radius2 / margin**2}
        curves, ends = found.setdefault(stream, {}), {}
        for kind, name in NAMES.items():
            grid = (1.0,) if name == THREE else tuple(multiple / radius2 for multiple in MULTIPLES[:7])
            tried = [kind(measure="ndcg@10", eta=eta, epochs=passes, shuffle=False).fit_queries(data) for eta in grid]
            ranker = max(tried, key=lambda each: each.totals_["measure"])
            average, mistakes = ranker.trace_.average("measure"), np.flatnonzero(ranker.trace_["mistake"])
            last, lost = int(mistakes[-1]) + 1 if len(mistakes) else 0, float((1 - ranker.trace_["measure"]).sum())
            curves[name], ends[name] = average[at], (float(average[-1]), last, lost)
            eta = "any" if name == THREE else f"{ranker.eta * radius2:g}/R²"
            rows.append((stream, name, eta, float(average[-1]), len(mistakes), last, lost, held.get(name)))
        apart = float(np.abs(curves[TWO] - curves[THREE])[at >= 10 * passes].max())
        claims += _separated(stream, ends, held, 1000 * passes, apart)
        losses = {name: np.maximum((1 - curve) * (at + 1), 1e-3) for name, curve in curves.items()}
        losses |= {f"bound of {name}": np.full(len(at), bound) for name, bound in held.items()}
        drawn += [
            Panel(curves, at + 1, "round", f"NDCG@10, {stream}", log="x", styles=STYLES),
            Panel(losses, at + 1, "round", "cumulative loss", log="xy", styles={**STYLES, **dashed}),
        ]
    columns = ("stream", "learner", "η", "time-averaged NDCG@10", "mistakes", "last mistake", "loss", "its bound")
    title = f"Fig. 1: time-averaged NDCG@10 on separable streams of {1000 * passes:,} rounds"
    notes = (f"1,000 lists, {passes} times over. The hard stream has {NOISE:g} times the noise across u.",)
    values, table = {"round": at + 1, "bounds": bounds, "curves": found}, Table(columns, rows, digits=6)
    return Exhibit("fig1", title, values, table, notes, panels(*drawn), tuple(claims))


@judge
def _separated(
    stream: str, ends: Mapping[str, tuple[float, int, float]], bounds: Mapping[str, float], rounds: int, apart: float
) -> Said:
    (last, lost), (latest, more) = (ends[name][1:] for name in (TWO, THREE))
    said = Own if stream == "hard" else str  # the paper has one stream
    # A finite run can show that mistakes ended, or that there were more than the bound allows; else it is too short.
    ended = True if max(last, latest) <= rounds / 2 else None
    text = f"Stream {stream}: both perceptrons rank all but a finite number of lists correctly."
    told = f"Last mistakes in rounds {last:,} and {latest:,} of {rounds:,}; read as: none in the second half."
    yield said(text), ended if lost <= bounds[TWO] and more <= bounds[THREE] else False, told
    text = f"Stream {stream}: the perceptrons converge to 1 faster than ListNet."
    told = ", ".join(f"{name} {end[0]:.6f}" for name, end in ends.items())
    yield said(text), min(ends[TWO][0], ends[THREE][0]) > ends[LISTNET][0], f"{told} at the end."
    text = f"Stream {stream}: the two perceptrons differ imperceptibly."
    told = f"By {apart:.6f} at most from a hundredth of the rounds on; read as: less than 0.001."
    yield said(text), apart < 0.001, told
    for name, number in ((TWO, 7), (THREE, 11)):
        text = f"Stream {stream}: the loss of {name} stays below the bound of Corollary {number}."
        told = f"{ends[name][2]:.2f} of {bounds[name]:.3g}; at most {rounds:,} can be lost in so many rounds."
        yield said(text), ends[name][2] <= bounds[name] if bounds[name] < rounds else None, told


def regret(*, passes: int = 100, random_state: int = 0) -> Exhibit:
    """Regret against the best fixed vector: of the SLAM and the ListNet losses, on the hard separable stream."""
    data, _ = streams(1000, 0.02, random_state)["hard"]
    best, at = ListNet(alpha=1e-8, max_iter=500).fit_queries(data).coef_, thin(1000 * passes)
    floor = {TWO: np.zeros(data.n_queries), LISTNET: CrossEntropy().per_query(data.X @ best, data.y, data.ptr)[0]}
    curves: dict[str, Floats] = {}
    rows = []
    for kind, name in ((kind, name) for kind, name in NAMES.items() if name in floor):
        tried = []
        for step in (multiple / largest_norm(data) ** 2 for multiple in MULTIPLES[:7]):
            eta = step if name == TWO else f"sqrt:{step!r}"
            ranker = kind(measure="ndcg@10", eta=eta, epochs=passes, shuffle=False).fit_queries(data)
            tried.append(np.cumsum(ranker.trace_["surrogate"] - np.tile(floor[name], passes)))
        curve = min(tried, key=lambda curve: float(curve[-1]))
        half, end = float(curve[len(curve) // 2 - 1]), float(curve[-1])
        rows.append((name, half, end, float(np.log2(max(end, 1e-9) / max(half, 1e-9)))))
        curves[name] = np.maximum(curve[at], 1e-3)
    drawn = Panel(curves, at + 1, "round", "Σ f_t(w_t) − Σ f_t(u)", log="xy", styles=STYLES)
    table = Table(("learner", "after half the rounds", "at the end", "power of t in the second half"), rows, digits=2)
    notes = (
        "u minimises each learner's own loss over all lists; a long separating vector has the SLAM loss 0. The steps "
        "are the best of a grid in units of 1/R_X² (ListNet: falling like 1/√t).",
    )
    title, values = "Regret against the best fixed vector, hard separable stream", {"round": at + 1, "curves": curves}
    return Exhibit("regret", title, values, table, notes, panels(drawn), _grow(*(row[3] for row in rows)))


@judge
def _grow(slam: float, listnet: float) -> Said:
    text = "Algorithm 2's cumulative surrogate loss is bounded on a separable stream."
    yield text, slam < 0.1, f"In the second half of the rounds it grows like t^{slam:.2f}; read as: a power below 0.1."
    told = f"In the second half it grows like t^{listnet:.2f}; read as: a power of at most 0.6."
    yield "ListNet's regret is O(√t).", listnet <= 0.6, told


COLUMNS = (
    *("γ asked", "γ realised", "rounds", "mistakes of Algorithm 3", "4R²/γ² (Corollary 11)"),
    *("AP loss forced (Theorem 9)", "AP loss of Algorithm 2", "AP loss of Algorithm 3"),
    "AP loss of Algorithm 2 at most (Corollary 7)",
)
_DRAWN = {COLUMNS[4]: "C1--", COLUMNS[3]: "C1s", COLUMNS[8]: "C0--", COLUMNS[6]: "C0o", COLUMNS[5]: "k-"}


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
    curves, x = {name: [row[COLUMNS.index(name)] for row in rows] for name in _DRAWN}, [1 / row[1] ** 2 for row in rows]
    drawn = Panel(curves, x, "R²/γ², γ realised", "mistakes, cumulative AP loss", log="xy", styles=_DRAWN)
    title = "Upper and lower bounds against the adversary, 10 documents a list"
    notes = ("Asked for γ the adversary's witness realises at least 2γ, and the upper bounds use that.",)
    stored, table = {"columns": COLUMNS, "rows": rows}, Table(COLUMNS, rows, digits=2)
    return Exhibit("upper_and_lower", title, stored, table, notes, panels(drawn), _meet(rows))


@judge
def _meet(rows: Sequence[Sequence[Any]]) -> Said:
    shares, last = [row[3] / row[4] for row in rows], rows[-1]
    told = f"{last[3]} of {last[4]:.0f} at γ = {last[1]:.3g}."
    yield "Algorithm 3 makes at most 4R²/γ² mistakes.", max(shares) <= 1 + 1e-9, told
    text = "The bound of Algorithm 3 is the minimax bound: upper and lower bound meet."
    told = f"The adversary forces at least {min(shares):.1%} of the mistakes that the bound allows; read as: 90%."
    yield text, min(shares) >= 0.9, told
    text, sure = "Any deterministic learner loses at least what Theorem 9 says.", [min(r[6:8]) - r[5] for r in rows]
    yield text, min(sure) >= -1e-9, f"{min(last[6:8]):.1f} against {last[5]:.1f} at the smallest margin."
