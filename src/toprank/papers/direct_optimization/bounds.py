"""Figs. 1 to 5 of the direct-optimisation paper: the bounds as curves, and the simulation in the plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._progress import track
from ..._tables import Table
from ..._typing import Floats
from ...measures import measure
from ...surrogates.direct import TypeOne, TypeTwo
from ..exhibits import Claim, Exhibit, claim, lines


def fig1() -> Exhibit:
    """Fig. 1: type-one bounds exp(−E) and log2(1 + exp(−E)) over the basic loss 1 − E."""
    E = np.linspace(0, 1, 101)
    curves = {"basic loss 1 − E": 1 - E, "exponential": np.exp(-E), "logistic": np.log2(1 + np.exp(-E))}
    tight = bool((curves["exponential"] <= curves["logistic"] + 1e-12).all())
    worst = float((curves["logistic"] - curves["exponential"]).min())
    said = claim(
        "The exponential bound is tighter than the logistic one for E in [0, 1].",
        tight,
        f"The smallest difference on a grid is {worst:.4f}.",
    )
    return _curves("fig1", "Fig. 1: type-one bounds", "E", E, curves, (said,))


def fig2(*, lost: float = 0.5) -> Exhibit:
    """Fig. 2: type-two bounds over the 0-1 loss as functions of F(π*) − F(π), where E(π*) − E(π) is 0.5."""
    x = np.linspace(-2, 2, 161)
    curves = {
        "0-1": lost * (x <= 0),
        "exponential": lost * np.exp(-x),
        "logistic": lost * np.log2(1 + np.exp(-x)),
        "hinge": lost * np.maximum(1 - x, 0),
        "margin-rescaled hinge": np.maximum(lost - x, 0),
    }
    bounds = np.array([values for name, values in curves.items() if name != "0-1"])
    always = [name for name, values in curves.items() if name != "0-1" and (values <= bounds.min(axis=0) + 1e-12).all()]
    said = claim(
        "It is not possible to say which type-two bound is the tightest.",
        not always,
        f"The tightest everywhere on the grid: {', '.join(always) or 'none'}.",
    )
    return _curves("fig2", "Fig. 2: type-two bounds", "F(π*) − F(π)", x, curves, (said,))


def _curves(
    name: str, title: str, axis: str, x: Floats, curves: dict[str, Floats], claims: tuple[Claim, ...]
) -> Exhibit:
    at = np.linspace(0, len(x) - 1, 9).astype(int)
    rows = [(float(x[i]), *(float(values[i]) for values in curves.values())) for i in at]
    return Exhibit(
        name,
        title,
        {"x": x, "curves": curves},
        Table((axis, *curves), rows),
        draw=lambda figure: lines(figure.subplots(), x, curves, xlabel=axis, ylabel="loss"),
        claims=claims,
    )


def simulate(spread: tuple[float, float], random_state: int = 0) -> tuple[Floats, Floats]:
    """Return 7 relevant points around (1, 1) and 14 irrelevant ones around (−1, −1), and their grades."""
    rng = np.random.default_rng(random_state)
    y = np.repeat([1.0, 0.0], [7, 14])
    centres = np.where(y[:, None] > 0, 1.0, -1.0)
    return centres + rng.normal(size=(21, 2)) * np.sqrt(spread), y


def _simulation(name: str, spread: tuple[float, float], angles: int, random_state: int) -> Exhibit:
    X, y = simulate(spread, random_state)
    ptr = np.array([0, len(y)])
    theta = np.linspace(0, 2 * np.pi, angles, endpoint=False)
    one, two, graded, E = (np.empty(angles) for _ in range(4))
    first, second, third = TypeOne("map"), TypeTwo("map"), TypeTwo("map", pairs="graded")
    for i, angle in enumerate(track(theta, name)):
        scores = X @ np.array([np.cos(angle), np.sin(angle)])
        one[i], two[i] = first.per_query(scores, y, ptr)[0][0], second.per_query(scores, y, ptr)[0][0]
        graded[i] = third.per_query(scores, y, ptr)[0][0]
        E[i] = measure("map").per_query(scores, y, ptr)[0]
    quarter = int(np.argmin(np.abs(theta - np.pi / 4)))
    flat = int((one <= one.min() + 1e-12).sum())
    notes = (
        f"Type one is smallest wherever the ranking is perfect or nearly so ({flat} of {angles} angles). Type two is "
        f"below it for {int((two < one).sum())} of {angles} angles with F over all pairs (Eq. 2) and for "
        f"{int((graded < one).sum())} with F over relevant × irrelevant pairs.",
        "With Eq. 2, which divides by all 420 ordered pairs, and |w| = 1 the differences of F are small and type two "
        "stays above; divided by the 98 relevant × irrelevant pairs they are larger.",
        "Type two is exact: all 116,280 orders of the grades are enumerated at every angle.",
    )
    step = 2 * np.pi / angles

    def near(values: Floats) -> bool:
        return bool(abs(float(theta[np.argmin(values)]) - np.pi / 4) <= step or values[quarter] <= values.min() + 1e-12)

    claims = (
        claim(
            "Both bounds are smallest at θ = π/4.",
            near(one) and near(two),
            f"Type one at θ = {theta[np.argmin(one)]:.3f}, type two at {theta[np.argmin(two)]:.3f} (relevant × "
            f"irrelevant pairs: {theta[np.argmin(graded)]:.3f}); π/4 = {np.pi / 4:.3f}, steps of {step:.3f}.",
        ),
        claim(
            "The type-two bound is the tighter one where the ranking model is close to the best.",
            bool(two[quarter] < one[quarter]),
            f"At π/4 type two is {two[quarter]:.4f} with Eq. 2's pairs and {graded[quarter]:.4f} with relevant × "
            f"irrelevant ones, type one {one[quarter]:.4f}.",
        ),
    )
    labels = ("1 − E", "type one", "type two, all pairs", "type two, relevant × irrelevant")
    bounds = (1 - E, one, two, graded)

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        for grade, marker, label in ((1.0, "o", "relevant"), (0.0, "x", "irrelevant")):
            left.plot(*X[y == grade].T, marker, label=label)
        left.legend()
        left.set_aspect("equal")
        lines(right, theta, dict(zip(labels, bounds, strict=True)), xlabel="θ")
        right.axvline(np.pi / 4, color="grey", linestyle=":")

    rows = [
        (label, float(values[quarter]), float(values.min()), float(theta[np.argmin(values)]), float(values.max()))
        for label, values in zip(labels, bounds, strict=True)
    ]
    table = Table(("bound", "at π/4", "smallest", "at θ", "largest"), rows)
    number, title = name[-1], f"Σ = diag({spread[0]:g}, {spread[1]:g})"
    data = {"theta": theta, "type_one": one, "type_two": two, "type_two_graded": graded, "E": E, "X": X, "y": y}
    return Exhibit(name, f"Fig. {number}: type-one and type-two bounds, {title}", data, table, notes, draw, claims)


def fig3(*, angles: int = 180, random_state: int = 0) -> Exhibit:
    """Fig. 3: both exponential bounds for every direction w, two separated clouds of points."""
    return _simulation("fig3", (0.2, 0.2), angles, random_state)


def fig4(*, angles: int = 180, random_state: int = 0) -> Exhibit:
    """Fig. 4: the same for two clouds that overlap."""
    return _simulation("fig4", (0.2, 1.3), angles, random_state)


def fig5(*, lists: int = 300, random_state: int = 0) -> Exhibit:
    """Fig. 5: how the bounds hang together, on random lists and scores: every one is above the basic loss."""
    rng = np.random.default_rng(random_state)
    kinds: dict[str, TypeOne | TypeTwo] = {
        "type one, exponential": TypeOne("map", loss="exponential"),
        "type one, logistic": TypeOne("map", loss="logistic"),
        "type two, exponential": TypeTwo("map", loss="exponential"),
        "type two, logistic": TypeTwo("map", loss="logistic"),
        "type two, hinge": TypeTwo("map", loss="hinge"),
    }
    values: dict[str, list[float]] = {name: [] for name in kinds}
    basic = []
    for _ in range(lists):
        y = np.zeros(8)
        y[: rng.integers(1, 8)] = 1.0
        scores, ptr = rng.normal(size=8) * rng.choice([0.1, 1.0, 10.0]), np.array([0, 8])
        basic.append(1 - float(measure("map").per_query(scores, y, ptr)[0]))
        for name, kind in kinds.items():
            values[name].append(float(kind.per_query(scores, y, ptr)[0][0]))
    lost = np.array(basic)
    rows, claims = [], []
    for name, found in values.items():
        above = np.array(found) - lost
        rows.append((name, float(np.mean(found)), float(above.min()), int((above < -1e-9).sum())))
        claims.append(
            claim(
                f"The {name} loss is an upper bound of 1 − E.",
                bool((above >= -1e-9).all()),
                f"On {lists} random lists it is above by {above.min():.4f} at least.",
            )
        )
    table = Table(("bound", "mean", "smallest distance to 1 − E", "lists below"), rows)
    title = "Fig. 5: the bounds above the basic loss"
    return Exhibit("fig5", title, {"basic": lost, "values": values}, table, claims=tuple(claims))
