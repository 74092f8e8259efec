"""Figs. 1 to 5 of the direct-optimisation paper: the bounds as curves, and the simulation in the plane."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._tables import Table
from ..._typing import Floats
from ...measures import measure
from ...surrogates.direct import TypeOne, TypeTwo
from ..exhibits import Claim, Exhibit, Panel, Said, judge, panels

Curves = Mapping[str, Floats]


def fig1() -> Exhibit:
    """Fig. 1: type-one bounds exp(−E) and log2(1 + exp(−E)) over the basic loss 1 − E."""
    E = np.linspace(0, 1, 101)
    curves = {"basic loss 1 − E": 1 - E, "exponential": np.exp(-E), "logistic": np.log2(1 + np.exp(-E))}
    return _curves("fig1", "Fig. 1: type-one bounds", "E", E, curves, _tighter(curves))


@judge
def _tighter(curves: Curves) -> Said:
    gap = float(np.min(curves["logistic"] - curves["exponential"]))
    text = "The exponential bound is tighter than the logistic one for E in [0, 1]."
    yield text, gap >= -1e-12, f"The smallest difference on a grid is {gap:.4f}."


def fig2(*, lost: float = 0.5) -> Exhibit:
    """Fig. 2: type-two bounds over the 0-1 loss as functions of F(π*) − F(π), where E(π*) − E(π) is 0.5."""
    x = np.linspace(-2, 2, 161)
    bounds = {"exponential": lost * np.exp(-x), "logistic": lost * np.log2(1 + np.exp(-x))}
    bounds |= {"hinge": lost * np.maximum(1 - x, 0), "margin-rescaled hinge": np.maximum(lost - x, 0)}
    curves = {"0-1": lost * (x <= 0), **bounds}
    return _curves("fig2", "Fig. 2: type-two bounds", "F(π*) − F(π)", x, curves, _tightest(bounds))


@judge
def _tightest(bounds: Curves) -> Said:
    lowest = np.min(list(bounds.values()), axis=0)
    always = [name for name, values in bounds.items() if (values <= lowest + 1e-12).all()]
    text = "It is not possible to say which type-two bound is the tightest."
    yield text, not always, f"The tightest everywhere on the grid: {', '.join(always) or 'none'}."


def _curves(name: str, title: str, axis: str, x: Floats, curves: Curves, claims: tuple[Claim, ...]) -> Exhibit:
    at = np.linspace(0, len(x) - 1, 9).astype(int)
    table = Table((axis, *curves), [(float(x[i]), *(float(values[i]) for values in curves.values())) for i in at])
    drawn = panels(Panel(curves, x, axis, "loss"))
    return Exhibit(name, title, {"x": x, "curves": curves}, table, draw=drawn, claims=claims)


def simulate(spread: tuple[float, float], random_state: int = 0) -> tuple[Floats, Floats]:
    """Return 7 relevant points around (1, 1) and 14 irrelevant ones around (−1, −1), and their grades."""
    rng = np.random.default_rng(random_state)
    y = np.repeat([1.0, 0.0], [7, 14])
    centres = np.where(y[:, None] > 0, 1.0, -1.0)
    return centres + rng.normal(size=(21, 2)) * np.sqrt(spread), y


def _simulation(name: str, spread: tuple[float, float], angles: int, draws: int) -> Exhibit:
    theta, found = np.linspace(0, 2 * np.pi, angles, endpoint=False), []
    losses = {"type_one": TypeOne("map"), "type_two": TypeTwo("map"), "type_two_graded": TypeTwo("map", pairs="graded")}
    for seed in reversed(range(draws)):  # the first draw comes last, and is drawn
        X, y = simulate(spread, seed)
        scores = np.array([np.cos(theta), np.sin(theta)]).T @ X.T
        lists = scores.ravel(), np.tile(y, angles), len(y) * np.arange(angles + 1)
        found.append({kind: loss.per_query(*lists)[0] for kind, loss in losses.items()})
    one, two, graded, good = (last := {**found[-1], "E": measure("map").per_query(*lists)}).values()
    notes = (
        f"Drawn is the first of {draws} draws. There type two is below type one at {(two < one).sum()} of "
        f"{angles} angles with F over all pairs (Eq. 2), at {(graded < one).sum()} with relevant × irrelevant ones.",
        "With Eq. 2, which divides by all 420 ordered pairs, and |w| = 1 the differences of F are small and type two "
        "stays above; divided by the 98 relevant × irrelevant pairs they are larger.",
        "Type two is exact: all 116,280 orders of the grades are enumerated at every angle.",
    )
    labels = ("1 − E", "type one", "type two, all pairs", "type two, relevant × irrelevant")
    bounds = dict(zip(labels, (1 - good, one, two, graded), strict=True))
    shown = {name: (v[_quarter(theta)], v.min(), theta[np.argmin(v)], v.max()) for name, v in bounds.items()}
    table = Table(("bound", "at π/4", "smallest", "first at θ", "largest"), [(name, *v) for name, v in shown.items()])
    points = {kind: (*X[y == grade].T, None) for grade, kind in ((1.0, "relevant"), (0.0, "irrelevant"))}
    clouds = Panel(points, styles={"relevant": "o", "irrelevant": "x"})
    curves = Panel(bounds, theta, "θ", log="y", at={"x": np.pi / 4})
    title = f"Fig. {name[-1]}: type-one and type-two bounds, Σ = diag({spread[0]:g}, {spread[1]:g})"
    stacks = {kind: np.array([each[kind] for each in found]) for kind in losses}
    data = {"theta": theta, **last, "X": X, "y": y, "draws": stacks}
    return Exhibit(name, title, data, table, notes, panels(clouds, curves), _smallest(theta, *stacks.values()))


def _quarter(theta: Floats) -> int:
    return int(np.argmin(np.abs(theta - np.pi / 4)))


@judge
def _smallest(theta: Floats, one: Floats, two: Floats, graded: Floats) -> Said:
    """Judge the bounds of each draw (a row) at each angle."""
    at, draws = _quarter(theta), len(one)
    lowest = one <= one.min(axis=1, keepdims=True) + 1e-12
    told = f"Its smallest value is taken at {lowest.sum(axis=1).mean():.0f} of {len(theta)} angles, by π/4 in"
    text, good = "The type-one bound is smallest at θ = π/4.", int(lowest[:, at].sum())
    yield text, good == draws, f"{told} {good} of {draws} draws; read as: in all of them."
    off, other = (np.degrees(np.abs(theta[values.argmin(axis=1)] - np.pi / 4)) for values in (two, graded))
    off, other = (np.minimum(each, 360 - each) for each in (off, other))
    told = f"It is {off.min():.0f}° to {off.max():.0f}° away over {draws} draws, with relevant × irrelevant pairs"
    text, near = "The type-two bound is smallest at θ = π/4.", f"{other.min():.0f}° to {other.max():.0f}°"
    yield text, bool(off.max() <= 10), f"{told} {near}; read as: at most 10° in each."
    text = "The type-two bound is the tighter one where the ranking model is close to the best."
    tight, loose = (int((values[:, at] < one[:, at]).sum()) for values in (two, graded))
    told = f"At π/4 it is with Eq. 2's pairs in {tight} of {draws} draws, with relevant × irrelevant ones in {loose}"
    high, low, flat = (float(values[:, at].mean()) for values in (two, graded, one))
    yield text, tight == draws, f"{told} (on average {high:.3f} and {low:.3f}, type one {flat:.3f})."


def fig3(*, angles: int = 120, draws: int = 10) -> Exhibit:
    """Fig. 3: both exponential bounds for every direction w, two separated clouds of points."""
    return _simulation("fig3", (0.2, 0.2), angles, draws)


def fig4(*, angles: int = 120, draws: int = 10) -> Exhibit:
    """Fig. 4: the same for two clouds that overlap."""
    return _simulation("fig4", (0.2, 1.3), angles, draws)


def fig5(*, lists: int = 300, random_state: int = 0) -> Exhibit:
    """Fig. 5: how the bounds hang together, on random lists and scores: every one is above the basic loss."""
    rng, ptr = np.random.default_rng(random_state), 8 * np.arange(lists + 1)
    y = (np.arange(8) < rng.integers(1, 8, size=(lists, 1))).astype(np.float64).ravel()
    scores = (rng.normal(size=(lists, 8)) * rng.choice([0.1, 1.0, 10.0], size=(lists, 1))).ravel()
    kinds: dict[str, Any] = {f"type one, {loss}": TypeOne("map", loss=loss) for loss in ("exponential", "logistic")}
    kinds |= {f"type two, {loss}": TypeTwo("map", loss=loss) for loss in ("exponential", "logistic", "hinge")}
    values = {"basic": 1 - measure("map").per_query(scores, y, ptr)}
    values |= {name: kind.per_query(scores, y, ptr)[0] for name, kind in kinds.items()}
    above = {name: values[name] - values["basic"] for name in kinds}
    rows = [(n, float(values[n].mean()), float(gap.min()), int((gap < -1e-9).sum())) for n, gap in above.items()]
    table = Table(("bound", "mean", "smallest distance to 1 − E", "lists below"), rows)
    return Exhibit("fig5", "Fig. 5: the bounds above the basic loss", values, table, claims=_above(above))


@judge
def _above(above: Curves) -> Said:
    for name, gap in above.items():
        told = f"On {len(gap)} random lists it is above by {np.min(gap):.4f} at least."
        yield f"The {name} loss is an upper bound of 1 − E.", bool(np.min(gap) >= -1e-9), told
